package replay

import (
	"math"
	"sync"
	"sync/atomic"
)

const (
	shardBits = 5
	shards    = 1 << shardBits
)

// shard holds the claims of one part of all tokens.
type shard struct {
	mu     sync.Mutex
	claims table[token, claim] // a heap: claim n is due no later than arity*n+1 and the next ones
	due    atomic.Uint32       // when the first one is; never when there is none
	_      [48]byte            // a shard's lock is in no other's cache line
}

type token struct {
	flow  [16]byte
	round uint32
}

// claim says how long a token stays claimed, in seconds since the start.
type claim struct {
	due   uint32 // when to look at it, by the running clock
	until uint32 // when it is over, by the wall clock
	owner ownerID
}

const never = math.MaxUint32

// arity is how many claims stand below one in the heap: with more, fewer have to
// move, and moving is what costs.
const arity = 4

func (s *shard) push(t token, c claim) {
	n := s.claims.add(t, c)
	if n > 0 && c.due < s.dueAt((n-1)/arity) {
		risen, place := s.claims.lift(n)
		for n > 0 && c.due < s.dueAt((n-1)/arity) {
			s.claims.move((n-1)/arity, n)
			n = (n - 1) / arity
		}
		s.claims.settle(n, risen, place)
	}
	s.setDue()
}

// expire removes claims that are over by both clocks and passes them on. It
// looks at so many at most, and returns at how many it did.
func (s *shard) expire(now moment, most int, freed func(claim)) (looked int) {
	for ; looked < most && s.claims.count > 0 && int64(s.dueAt(0)) <= now.running; looked++ {
		first := &s.claims.at(0).value
		if left := int64(first.until) - now.wall; left > 0 {
			first.due = uint32(min(now.running+min(left, lookAgain), never-1))
		} else {
			freed(*first)
			s.claims.swap(0, s.claims.count-1)
			s.claims.removeLast()
		}
		s.sink()
	}
	s.setDue()
	return looked
}

// sink moves the first claim to where it belongs.
func (s *shard) sink() {
	if s.claims.count < 2 {
		return
	}
	n := 0
	sunk, place := s.claims.lift(n)
	for {
		next, due := n, sunk.value.due
		for child := arity*n + 1; child <= arity*n+arity && child < s.claims.count; child++ {
			if d := s.dueAt(child); d < due {
				next, due = child, d
			}
		}
		if next == n {
			break
		}
		s.claims.move(next, n)
		n = next
	}
	s.claims.settle(n, sunk, place)
}

func (s *shard) dueAt(n int) uint32 { return s.claims.at(n).value.due }

func (s *shard) setDue() {
	due := uint32(never)
	if s.claims.count > 0 {
		due = s.dueAt(0)
	}
	s.due.Store(due)
}
