package tripseal

import (
	"errors"
	"fmt"
)

// Ring is an immutable list of keys: the first key seals tokens, and all of them open
// tokens. A token names the key that sealed it, so a ring never tries keys in turn. Set
// a Ring as Config.Keys. Make it with [NewRing] or [Ephemeral], or let package keys make it.
type Ring struct {
	keys *ringKeys
}

type ringKeys struct {
	ids       []KeyID     // in the order given to NewRing; the first key seals
	first     *keySealers // the sealers of the first key
	sealers   map[KeyID]*keySealers
	ephemeral bool
}

// NewRing makes a ring of keys that your program has read itself. To read keys from a file
// or from the environment, use package keys instead. To rotate, first add the new key at
// the end of the ring on every replica. Then move it to the front. Drop the old key when
// its last token or cursor has expired: after TTL, URLTTL or the TTL of cursors, whichever
// is longest.
func NewRing(keys ...Key) (*Ring, error) {
	if len(keys) == 0 {
		return nil, errors.New("tripseal: a ring needs at least one key; " + howToMakeAKey)
	}
	ring := &ringKeys{sealers: make(map[KeyID]*keySealers, len(keys))}
	position := make(map[KeyID]int, len(keys))
	for i, key := range keys {
		if key.material == nil {
			return nil, fmt.Errorf("tripseal: key %d of the ring is empty; %s", i+1, howToMakeAKey)
		}
		id := key.material.id
		if first, ok := position[id]; ok {
			return nil, fmt.Errorf("tripseal: keys %d and %d of the ring have one id, %s: drop one, or make a new key",
				first, i+1, id)
		}
		sealers, err := newKeySealers(key.material)
		if err != nil {
			return nil, fmt.Errorf("tripseal: key %d of the ring, %s: %w", i+1, id, err)
		}
		position[id] = i + 1
		ring.ids = append(ring.ids, id)
		ring.sealers[id] = sealers
	}
	ring.first = ring.sealers[ring.ids[0]]
	return &Ring{ring}, nil
}

// Ephemeral returns a ring with one random key that dies with the process. It suits a
// server that one client starts for itself: tokens of this key do not open after a
// restart or on another replica. A boundary with such keys says so in the log.
func Ephemeral() *Ring {
	ring, err := NewRing(GenerateKey())
	if err != nil {
		panic("tripseal: a random key was refused: " + err.Error())
	}
	ring.keys.ephemeral = true
	return ring
}

// IDs returns the ids of the keys. The first is the id of the key that seals. Log them to
// see which keys a replica has.
func (r *Ring) IDs() []KeyID {
	if r == nil || r.keys == nil {
		return nil
	}
	return append([]KeyID(nil), r.keys.ids...)
}

// Seals returns how many values the key with this id has sealed for the given purpose. It
// counts the seals of this process, in all rings together. Add up the counts of all
// replicas: a key may make at most 2³² seals.
func (r *Ring) Seals(id KeyID, purpose Purpose) uint64 {
	if r == nil || r.keys == nil || !purpose.valid() {
		return 0
	}
	if sealers, ok := r.keys.sealers[id]; ok {
		return sealers[purpose].seals.Load()
	}
	return 0
}

// KeySource returns the ring to use now. Its method Ring is called for every token, so a source
// changes its keys by returning another ring. Ring must be fast and safe for concurrent use, and
// must never return nil. Implement a KeySource only for keys that change while the process runs and
// that the type keys.File cannot read.
//
// A source may have a method Outlast(ttl time.Duration) error. [New] calls this method with the
// longest lifetime of the boundary's tokens. If Outlast returns an error, New returns that error
// too. A source whose keys expire should have this method: it must return an error if a key would
// expire before a token that this key sealed. The type keys.File does that.
type KeySource interface {
	// Ring returns the keys to use for the next token. It must not wait for a file or a
	// network.
	Ring() *Ring
}

// Ring returns r: a ring is its own [KeySource]. So a ring that never changes can be
// Config.Keys.
func (r *Ring) Ring() *Ring { return r }
