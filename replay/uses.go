package replay

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/mcpseal/mcpseal"
)

// uses are the tokens that were used, to be found by name and in the order in which
// they expire.
//
// A token is its hash, under a seed that only this process knows. Of 100,000 fresh
// tokens among 100,000 used ones, one in two billion is refused because it shares
// the hash of another.
type uses struct {
	seed    maphash.Seed
	byToken shrinking[token, claim]
	byDue   map[int64][]token // by the second in which to look at them
	dues    []int64           // the keys of byDue, in order
	owned   shrinking[owner, int32]
}

type (
	token uint64
	owner uint32 // 0 is nobody; two users who share one share their bound, and nothing else
)

// claim is what is remembered of a token.
type claim struct {
	until uint32 // when it expires by the wall clock, in seconds since the start
	owner owner
}

const never = math.MaxUint32

func newUses() uses { return uses{seed: maphash.MakeSeed(), byDue: make(map[int64][]token)} }

func (u *uses) tokenOf(use *mcpseal.Use) token {
	return token(maphash.Comparable(u.seed, struct {
		flow  [16]byte
		round int
	}{use.Flow, use.Round}))
}

func (u *uses) ownerOf(use *mcpseal.Use) owner {
	if use.Owner == [16]byte{} {
		return 0
	}
	return max(1, owner(maphash.Comparable(u.seed, use.Owner)))
}

func (u *uses) len() int { return u.byToken.count }

func (u *uses) has(t token) bool { _, ok := u.byToken.get(t); return ok }

func (u *uses) heldBy(o owner) int { n, _ := u.owned.get(o); return int(n) }

// add remembers a token that is not there yet, and will look at it when it is due.
func (u *uses) add(t token, c claim, due int64) {
	u.byToken.set(t, c)
	if c.owner != 0 {
		u.owned.set(c.owner, int32(u.heldBy(c.owner)+1))
	}
	u.enqueue(t, due)
}

func (u *uses) enqueue(t token, due int64) {
	list, ok := u.byDue[due]
	if !ok {
		i, _ := slices.BinarySearch(u.dues, due) // most often the end: most tokens live equally long
		u.dues = slices.Insert(u.dues, i, due)
	}
	u.byDue[due] = append(list, t)
}

// expire removes tokens that have expired by both clocks. It looks at no more than
// most, and reports whether others are due.
func (u *uses) expire(now moment, most int, removed func(claim)) (more bool) {
	for len(u.dues) > 0 && u.dues[0] <= now.running {
		due := u.dues[0]
		list := u.byDue[due]
		for ; len(list) > 0; most-- {
			if most == 0 {
				u.byDue[due] = list
				return true
			}
			t := list[len(list)-1]
			list = list[:len(list)-1]
			c, _ := u.byToken.get(t)
			if left := int64(c.until) - now.wall; left > 0 {
				u.enqueue(t, now.running+min(left, lookAgain))
				continue
			}
			u.remove(t, c)
			removed(c)
		}
		u.dues = slices.Delete(u.dues, 0, 1)
		delete(u.byDue, due)
	}
	return false
}

func (u *uses) remove(t token, c claim) {
	u.byToken.remove(t)
	switch n := u.heldBy(c.owner); {
	case n > 1:
		u.owned.set(c.owner, int32(n-1))
	case n == 1:
		u.owned.remove(c.owner)
	}
}
