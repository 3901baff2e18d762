package replay

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"github.com/tripseal/tripseal"
)

// usedTokens holds the used tokens of a shard. It finds a token by its hash, and finds expired
// tokens in the order of their expiry.
type usedTokens struct {
	entries map[token]entry
	largest int      // the largest number of entries since the map was made
	buckets []bucket // sorted by the field due
}

// bucket is a list of tokens.
type bucket struct {
	// due is the earliest time at which a sweep checks whether these tokens have expired. It is in
	// seconds since the store started, by the monotonic clock.
	due   int64
	first token
}

type (
	// token is the hash of a token, with a seed that only this process knows. An unused
	// token with the same hash as a used one is refused. With 100,000 used tokens, the chance
	// that this happens to any of a billion unused ones is less than one in 100,000.
	// 0 means no token.
	token uint64
	// owner is the hash of a user. 0 means no user.
	owner uint32
)

// entry is what the store remembers of a token.
type entry struct {
	until uint32 // when the token expires by the wall clock, in seconds since the store started
	owner owner
	next  token // the next token of the bucket, or 0 at its end
}

const never = math.MaxUint32

func (s *SingleProcess) newEntry(use *tripseal.Use, until int64) (token, entry) {
	hash := maphash.Comparable(s.seed, struct {
		flow  [16]byte
		round int
	}{use.Flow, use.Round})
	e := entry{until: uint32(max(until, 0))}
	if use.Owner != [16]byte{} {
		e.owner = max(1, owner(maphash.Comparable(s.seed, use.Owner)))
	}
	return max(1, token(hash)), e
}

// add remembers a token that is in no bucket, and puts it into the bucket that is due at the
// given time.
func (u *usedTokens) add(t token, e entry, due int64) {
	i := len(u.buckets) - 1
	if i < 0 || u.buckets[i].due != due {
		var found bool
		i, found = slices.BinarySearchFunc(u.buckets, due, func(b bucket, due int64) int { return cmp.Compare(b.due, due) })
		if !found {
			u.buckets = slices.Insert(u.buckets, i, bucket{due: due})
		}
	}
	e.next, u.buckets[i].first = u.buckets[i].first, t
	if u.entries == nil {
		u.entries = make(map[token]entry)
	}
	u.entries[t] = e
	u.largest = max(u.largest, len(u.entries))
}

// expire removes tokens that have expired by both the wall clock and the monotonic clock.
// It checks as many tokens as the limit says. It returns true if it stopped at this limit.
func (u *usedTokens) expire(now moment, limit int, removed func(entry)) (more bool) {
	defer u.shrink()
	for len(u.buckets) > 0 && u.buckets[0].due <= now.running {
		for t := u.buckets[0].first; t != 0; t = u.buckets[0].first {
			if limit == 0 {
				return true
			}
			limit--
			e := u.entries[t]
			u.buckets[0].first = e.next
			if left := int64(e.until) - now.wall; left > 0 {
				u.add(t, e, now.running+min(left, lookAgain))
				continue
			}
			delete(u.entries, t)
			removed(e)
		}
		u.buckets = u.buckets[1:]
	}
	return false
}

// shrink frees memory if many entries were removed, because a Go map keeps the memory of
// removed entries.
func (u *usedTokens) shrink() {
	if n := len(u.entries); u.largest > 64 && n < u.largest*3/5 {
		smaller := make(map[token]entry, n)
		maps.Copy(smaller, u.entries)
		u.entries, u.largest, u.buckets = smaller, n, slices.Clone(u.buckets)
	}
}
