package replay

import "sync"

// owners counts how many used tokens each user has in the store. Each user has two counters,
// and shares each of them with other users. The smaller of the two is the user's count. This
// count is never too small. It is too large only if other users add to both counters. So if one
// user has reached the limit, about one of two million other users is refused too.
type owners [shards]struct {
	mu   sync.Mutex // guards rows
	rows [2][counters]int32
}

// counters is how many counters a row has. All rows together take 64 KiB.
const counters = 256

// take adds one to the number of tokens that a user has. It returns false if the user has
// already reached the limit. Tokens without a user are not counted.
func (o *owners) take(who owner, limit int) (ok bool) {
	ok = true
	o.change(who, func(a, b *int32) {
		if ok = int(min(*a, *b)) < limit; ok {
			*a++
			*b++
		}
	})
	return ok
}

// release subtracts one from the number of tokens that a user has.
func (o *owners) release(who owner) {
	o.change(who, func(a, b *int32) { *a--; *b-- })
}

// change runs f with the two counters of a user.
func (o *owners) change(who owner, f func(a, b *int32)) {
	if who == 0 {
		return
	}
	part := &o[who%shards]
	part.mu.Lock()
	defer part.mu.Unlock()
	f(&part.rows[0][who/shards%counters], &part.rows[1][who/shards/counters%counters])
}
