package replay

import (
	"hash/maphash"
	"sync"
)

// ownerID is half of a [mcpseal.Use]'s owner, which is a salted hash. Two users
// who share it share their bound, and nothing else. Zero is nobody.
type ownerID [8]byte

func shorten(owner [16]byte) (id ownerID) {
	copy(id[:], owner[:])
	if owner != [16]byte{} && id == (ownerID{}) {
		id[0] = 1
	}
	return id
}

// owners counts what each user holds.
type owners struct {
	limit  uint32
	shards [shards]ownerShard
}

type ownerShard struct {
	mu   sync.Mutex
	held table[ownerID, uint32]
}

func (o *owners) init(seed maphash.Seed, limit int) {
	o.limit = uint32(limit)
	for i := range o.shards {
		o.shards[i].held.seed = seed
	}
}

// take counts one more, unless the owner holds as many as allowed.
func (o *owners) take(id ownerID) bool {
	if id == (ownerID{}) {
		return true
	}
	s := o.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.held.find(id)
	if n < 0 {
		s.held.add(id, 1)
		return true
	}
	held := &s.held.at(n).value
	if *held >= o.limit {
		return false
	}
	*held++
	return true
}

// giveBack undoes take.
func (o *owners) giveBack(id ownerID) {
	if id == (ownerID{}) {
		return
	}
	s := o.shardOf(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.held.find(id)
	if held := &s.held.at(n).value; *held > 1 {
		*held--
		return
	}
	s.held.swap(n, s.held.count-1)
	s.held.removeLast()
}

func (o *owners) shardOf(id ownerID) *ownerShard {
	return &o.shards[maphash.Comparable(o.shards[0].held.seed, id)>>(64-shardBits)]
}
