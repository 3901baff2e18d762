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
	tokens  shrinking[token, struct{}]
	entries []entry
	unused  link     // leads to the entries that hold no token
	buckets []bucket // in the order of their seconds
}

// bucket is a list of entries. The method expire checks them in the second due.
type bucket struct {
	due   uint32
	first link
}

// link leads to an entry of a list. It is the entry's index plus 1, or 0 at the end of the
// list.
type link uint32

type (
	// token is the hash of a token, with a seed that only this process knows. An unused
	// token with the same hash as a used one is refused. With 100,000 used tokens, the chance
	// that this happens to any of a billion unused ones is less than one in 100,000.
	// It is not a uint64, because an entry would then have to be larger.
	token [2]uint32
	// owner is the hash of a user. Two users with the same hash share the limit of one user,
	// and nothing else. 0 means no user.
	owner uint32
)

// entry is what the store remembers of a token.
type entry struct {
	token token
	until uint32 // when the token expires by the wall clock, in seconds since the store started
	owner owner
	next  link
}

const never = math.MaxUint32

func (s *SingleProcess) newEntry(use *mcpseal.Use, until int64) entry {
	c := entry{until: uint32(max(until, 0))}
	hash := maphash.Comparable(s.seed, struct {
		flow  [16]byte
		round int
	}{use.Flow, use.Round})
	c.token = token{uint32(hash >> 32), uint32(hash)}
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
	at := u.unused
	if at == 0 {
		if n := len(u.entries); n == cap(u.entries) {
			u.entries = append(make([]entry, 0, n+n/4+4), u.entries...) // append alone would double it, which wastes memory
		}
		u.entries = append(u.entries, entry{})
		at = link(len(u.entries))
	}
	u.unused, u.entries[at-1] = u.entries[at-1].next, c
	u.enqueue(at, due)
}

// enqueue puts an entry into the bucket of a second.
func (u *uses) enqueue(at link, due int64) {
	i := len(u.buckets) - 1
	if i < 0 || int64(u.buckets[i].due) != due {
		var found bool
		i, found = slices.BinarySearchFunc(u.buckets, uint32(due), func(b bucket, due uint32) int { return cmp.Compare(b.due, due) })
		if !found {
			u.buckets = slices.Insert(u.buckets, i, bucket{due: uint32(due)})
		}
	}
	u.entries[at-1].next, u.buckets[i].first = u.buckets[i].first, at
}

// expire removes tokens that have expired by both the wall clock and the monotonic clock.
// The parameter most limits how many tokens it checks. more is true if it stopped
// at this limit.
func (u *uses) expire(now moment, most int, removed func(entry)) (more bool) {
	defer u.shrink()
	for len(u.buckets) > 0 && int64(u.buckets[0].due) <= now.running {
		for at := u.buckets[0].first; at != 0; at = u.buckets[0].first {
			if most == 0 {
				return true
			}
			most--
			c := u.entries[at-1]
			u.buckets[0].first = c.next
			if left := int64(c.until) - now.wall; left > 0 {
				u.enqueue(at, now.running+min(left, lookAgain))
				continue
			}
			u.entries[at-1].next, u.unused = u.unused, at
			u.tokens.remove(c.token)
			removed(c)
		}
		u.buckets = u.buckets[1:]
	}
	return false
}

// shrink frees memory if few entries hold a token.
func (u *uses) shrink() {
	held := len(u.tokens.entries)
	if cap(u.entries) <= small || held >= cap(u.entries)/2 {
		return
	}
	kept := make([]entry, 0, held)
	buckets := slices.Clone(u.buckets)
	for i := range buckets {
		at := buckets[i].first
		for buckets[i].first = 0; at != 0; {
			c := u.entries[at-1]
			at, c.next = c.next, buckets[i].first
			kept = append(kept, c)
			buckets[i].first = link(len(kept))
		}
	}
	u.entries, u.unused, u.buckets = kept, 0, buckets
}
