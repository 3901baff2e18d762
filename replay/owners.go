package replay

import "sync"

// owners counts how many used tokens each user has in the store.
type owners []struct {
	mu   sync.Mutex // guards held
	held shrinking[owner, int32]
	_    [40]byte // fills the cache line, so that no two parts share one
}

// take counts one more token of a user. It returns false if the user already has as many as
// most. Tokens without a user are not counted.
func (o owners) take(who owner, most int) bool {
	if who == 0 {
		return true
	}
	part := &o[uint64(who)%uint64(len(o))]
	part.mu.Lock()
	defer part.mu.Unlock()
	held, _ := part.held.get(who)
	if int(held) >= most {
		return false
	}
	part.held.set(who, held+1)
	return true
}

// release counts one token less of a user.
func (o owners) release(who owner) {
	if who == 0 {
		return
	}
	part := &o[uint64(who)%uint64(len(o))]
	part.mu.Lock()
	defer part.mu.Unlock()
	if held, _ := part.held.get(who); held > 1 {
		part.held.set(who, held-1)
	} else {
		part.held.remove(who)
	}
}
