package replay

import (
	"bytes"
	"time"
)

type (
	// token says which token was used.
	token struct {
		flow  [16]byte
		round uint16
	}
	// entry is what the store remembers of a used token.
	entry struct {
		until uint32 // when the token expires by the wall clock, in seconds since the store started
		free  bool   // true if the token was given back, so that it works again
		owner *owner // nil means no user
		call  *call  // nil if the token was used by Spend
	}
	// call is what the store remembers of the call that used a token.
	call struct {
		id     [16]byte
		tag    [32]byte
		done   bool
		ends   time.Duration // when the lease ends, or how long the result is kept, by moment.exact
		result []byte        // nil if it is not kept
	}
	// owner counts what one user has in the store.
	owner struct {
		id          [16]byte
		uses, bytes int
	}
)

const (
	// maxSwept is how many uses and results one call checks while it holds the lock, so that
	// no request has to wait until all that has expired is removed.
	maxSwept = 64
	// lookAgain is for a use that has expired by the monotonic clock, but not yet by the wall clock.
	// The store keeps the use, and checks it again after at most lookAgain seconds.
	lookAgain = 60
)

// deadline is when the store looks at a use, or at its result.
type deadline struct {
	token  token
	result bool
}

// schedule makes the store look at a use or a result at a time by the monotonic clock, in seconds.
func (s *SingleProcess) schedule(d deadline, at int64) {
	at = max(at, s.next)
	s.due[at] = append(s.due[at], d)
}

// expire removes uses that have expired by both clocks, and results that need not be kept any
// more. It returns true if there may be more of them.
func (s *SingleProcess) expire(now moment) (more bool) {
	for range maxSwept {
		for len(s.due[s.next]) == 0 && s.next <= now.running {
			delete(s.due, s.next)
			s.next++
			if now.running-s.next > int64(len(s.due)) { // look for the next deadline instead of trying each second
				s.next = now.running + 1
				for at := range s.due {
					s.next = min(s.next, at)
				}
			}
		}
		if s.next > now.running {
			return false
		}
		list := s.due[s.next]
		d := list[len(list)-1]
		s.due[s.next] = list[:len(list)-1]
		e := s.uses[d.token]
		left := int64(e.until) - now.wall
		if !d.result && left > 0 {
			s.schedule(d, now.running+min(left, lookAgain))
			continue
		}
		if e.call != nil && e.call.result != nil {
			s.count(e.owner, 0, -len(e.call.result))
			e.call.result = nil
		}
		if !d.result {
			s.count(e.owner, -1, 0)
			delete(s.uses, d.token)
			s.forgotten = max(s.forgotten, int64(e.until))
		}
	}
	return true
}

// count changes how many uses and bytes a user has in the store.
func (s *SingleProcess) count(o *owner, uses, bytes int) {
	s.bytes += bytes
	if o == nil {
		return
	}
	o.uses, o.bytes = o.uses+uses, o.bytes+bytes
	if o.uses == 0 {
		delete(s.owners, o.id)
	}
}

// keep keeps the result of a call if there is room for it.
func (s *SingleProcess) keep(now moment, id token, e entry, result []byte, during time.Duration) {
	n, c := len(result), &s.config
	if n == 0 || during <= 0 || n > c.MaxResult || s.bytes+n > c.Bytes || e.owner != nil && e.owner.bytes+n > max(c.MaxResult, c.Bytes/10) {
		return
	}
	s.count(e.owner, 0, n)
	e.call.result, e.call.ends = bytes.Clone(result), now.exact+min(during, maxKeep)
	s.schedule(deadline{id, true}, floorSeconds(e.call.ends)+1)
}

const maxKeep = 100 * 365 * 24 * time.Hour // can be added to a moment
