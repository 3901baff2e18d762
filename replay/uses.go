package replay

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/mcpseal/mcpseal"
)

// uses holds the used tokens. It finds a token by its hash, and finds expired tokens in the
// order of their expiry.
type uses struct {
	seed   maphash.Seed
	tokens shrinking[token, struct{}]
	owned  shrinking[owner, int32] // how many used tokens each user has in the store
	byDue  map[int64]*[]entry      // maps a second to the entries that the method expire checks in that second
	dues   []int64                 // the keys of byDue, in ascending order
	last   int64                   // the key in byDue under which the last entry was added
	list   *[]entry                // the same as byDue[last]
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

func newUses() uses { return uses{seed: maphash.MakeSeed(), byDue: make(map[int64]*[]entry)} }

func (u *uses) newEntry(use *mcpseal.Use, until int64) entry {
	c := entry{until: uint32(max(until, 0))}
	c.token = token(maphash.Comparable(u.seed, struct {
		flow  [16]byte
		round int
	}{use.Flow, use.Round}))
	if use.Owner != [16]byte{} {
		c.owner = max(1, owner(maphash.Comparable(u.seed, use.Owner)))
	}
	return c
}

func (u *uses) len() int { return u.tokens.count }

func (u *uses) has(t token) bool { _, ok := u.tokens.get(t); return ok }

func (u *uses) heldBy(o owner) int {
	if o == 0 {
		return 0
	}
	n, _ := u.owned.get(o)
	return int(n)
}

// add remembers a token that is not in u yet. due is the second in which the method expire
// checks whether the token has expired.
func (u *uses) add(c entry, due int64) {
	u.tokens.set(c.token, struct{}{})
	if c.owner != 0 {
		u.owned.set(c.owner, int32(u.heldBy(c.owner)+1))
	}
	u.enqueue(c, due)
}

func (u *uses) enqueue(c entry, due int64) {
	if u.list == nil || u.last != due {
		u.last, u.list = due, u.listOf(due)
	}
	*u.list = append(*u.list, c)
}

func (u *uses) listOf(due int64) *[]entry {
	list := u.byDue[due]
	if list == nil {
		list = new([]entry)
		u.byDue[due] = list
		i, _ := slices.BinarySearch(u.dues, due) // i is usually the end of dues, because most tokens live equally long
		u.dues = slices.Insert(u.dues, i, due)
	}
	return list
}

// expire removes tokens that have expired by both the wall clock and the monotonic clock.
// The parameter most limits how many tokens it checks. more is true if it stopped
// at this limit.
func (u *uses) expire(now moment, most int, removed func(entry)) (more bool) {
	for len(u.dues) > 0 && u.dues[0] <= now.running {
		list := u.byDue[u.dues[0]]
		for ; len(*list) > 0; most-- {
			if most == 0 {
				return true
			}
			n := len(*list) - 1
			c := (*list)[n]
			*list = (*list)[:n]
			if left := int64(c.until) - now.wall; left > 0 {
				u.enqueue(c, now.running+min(left, lookAgain))
				continue
			}
			u.remove(c)
			removed(c)
		}
		delete(u.byDue, u.dues[0])
		u.dues = slices.Delete(u.dues, 0, 1)
		u.list = nil
	}
	return false
}

func (u *uses) remove(c entry) {
	u.tokens.remove(c.token)
	switch n := u.heldBy(c.owner); {
	case n > 1:
		u.owned.set(c.owner, int32(n-1))
	case n == 1:
		u.owned.remove(c.owner)
	}
}
