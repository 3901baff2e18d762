package replay

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"

	"github.com/mcpseal/mcpseal"
)

// uses holds the used tokens of a shard. It finds a token by its hash, and finds expired
// tokens in the order of their expiry.
type uses struct {
	tokens shrinking[token, struct{}]
	queue  []bucket // in the order of their seconds
}

// bucket holds the entries that the method expire checks in the second due.
type bucket struct {
	due     int64
	entries []entry
}

type (
	// token is the hash of a token, with a seed that only this process knows. An unused
	// token with the same hash as a used one is refused. With 100,000 used tokens, the chance
	// that this happens to any of a billion unused ones is less than one in 100,000.
	token uint64
	// owner is the hash of a user. Two users with the same hash share the limit of one user,
	// and nothing else. 0 means no user.
	owner uint32
)

// entry is what the store remembers of a token.
type entry struct {
	token token
	until uint32 // when the token expires by the wall clock, in seconds since the store started
	owner owner
}

const never = math.MaxUint32

func (s *SingleProcess) newEntry(use *mcpseal.Use, until int64) entry {
	c := entry{until: uint32(max(until, 0))}
	c.token = token(maphash.Comparable(s.seed, struct {
		flow  [16]byte
		round int
	}{use.Flow, use.Round}))
	if use.Owner != [16]byte{} {
		c.owner = max(1, owner(maphash.Comparable(s.seed, use.Owner)))
	}
	return c
}

func (u *uses) has(t token) bool { _, ok := u.tokens.get(t); return ok }

// add remembers a token that is not in u yet. due is the second in which the method expire
// checks whether the token has expired.
func (u *uses) add(c entry, due int64) {
	u.tokens.set(c.token, struct{}{})
	u.enqueue(c, due)
}

func (u *uses) enqueue(c entry, due int64) {
	i := len(u.queue) - 1
	if i < 0 || u.queue[i].due != due { // rare, because most tokens live equally long
		var found bool
		i, found = slices.BinarySearchFunc(u.queue, due, func(b bucket, due int64) int { return cmp.Compare(b.due, due) })
		if !found {
			u.queue = slices.Insert(u.queue, i, bucket{due: due})
		}
	}
	entries := &u.queue[i].entries
	if n := len(*entries); n == cap(*entries) {
		*entries = append(make([]entry, 0, n+n/4+1), *entries...) // append alone would double it, which wastes memory
	}
	*entries = append(*entries, c)
}

// expire removes tokens that have expired by both the wall clock and the monotonic clock.
// The parameter most limits how many tokens it checks. more is true if it stopped
// at this limit.
func (u *uses) expire(now moment, most int, removed func(entry)) (more bool) {
	for len(u.queue) > 0 && u.queue[0].due <= now.running {
		for ; len(u.queue[0].entries) > 0; most-- {
			if most == 0 {
				return true
			}
			entries := &u.queue[0].entries
			n := len(*entries) - 1
			c := (*entries)[n]
			*entries = (*entries)[:n]
			if left := int64(c.until) - now.wall; left > 0 {
				u.enqueue(c, now.running+min(left, lookAgain))
				continue
			}
			u.tokens.remove(c.token)
			removed(c)
		}
		u.queue = slices.Delete(u.queue, 0, 1)
		if cap(u.queue) > 2*len(u.queue)+16 {
			u.queue = slices.Clone(u.queue) // frees memory
		}
	}
	return false
}
