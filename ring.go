package tripseal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal/internal/b64u"
	"github.com/tripseal/tripseal/internal/native"
)

// Ring is an immutable list of keys: the first key seals tokens, and all of them open tokens. A token names the key
// that sealed it, so a ring never tries keys in turn. Set a Ring as Config.Keys. Make it with [NewRing] or
// [Ephemeral], or let package keys make it.
type Ring struct {
	keys *ringKeys
}

type ringKeys struct {
	ids       []KeyID     // in the order given to NewRing; the first key seals
	first     *keySealers // the sealers of the first key
	sealers   map[KeyID]*keySealers
	ephemeral bool
}

// NewRing makes a ring of keys that your program has read itself. To read keys from a file or from the environment,
// use package keys instead. To rotate, first add the new key at the end of the ring on every replica. Then move it to
// the front. Drop the old key when its last token or cursor has expired: after TTL, URLTTL or the TTL of cursors,
// whichever is longest.
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

// Ephemeral returns a ring with one random key that dies with the process. It suits a server that one client starts
// for itself: tokens of this key do not open after a restart or on another replica. A boundary with such keys says so
// in the log.
func Ephemeral() *Ring {
	ring, err := NewRing(GenerateKey())
	if err != nil {
		panic("tripseal: a random key was refused: " + err.Error())
	}
	ring.keys.ephemeral = true
	return ring
}

// IDs returns the ids of the keys. The first is the id of the key that seals. Log them to see which keys a replica
// has.
func (r *Ring) IDs() []KeyID {
	if r == nil || r.keys == nil {
		return nil
	}
	return append([]KeyID(nil), r.keys.ids...)
}

// String returns the number of keys in the ring and the id of its sealing key, without a secret, so that printing a
// ring is safe.
func (r Ring) String() string {
	if r.keys == nil {
		return "tripseal.Ring(empty)"
	}
	return "tripseal.Ring(" + strconv.Itoa(len(r.keys.ids)) + " keys, " + r.keys.ids[0].String() + " seals)"
}

// KeySource returns the ring to use now. Its method Ring is called for every token, so a source changes its keys by
// returning another ring. Ring must be fast and safe for concurrent use, and must never return nil. Implement a
// KeySource only for keys that change while the process runs and that the type keys.File cannot read.
//
// A source may have a method Outlast(ttl time.Duration) error. [New] calls this method with the longest lifetime of
// the boundary's tokens. If Outlast returns an error, New returns that error too. A source whose keys expire should
// have this method: it must return an error if a key would expire before a token that this key sealed. The type
// keys.File does that.
type KeySource interface {
	// Ring returns the keys to use for the next token. It must not wait for a file or a network.
	Ring() *Ring
}

// Ring returns r: a ring is its own [KeySource]. So a ring that never changes can be Config.Keys.
func (r *Ring) Ring() *Ring { return r }

// RingCodec returns the native codec, AES-256-GCM under the keys of a ring:
//
//	text = base64url(key id ‖ nonce ‖ ciphertext ‖ tag)
//
// The text does not include the purpose's prefix. Put the prefix in front of a sealed text, and cut it off before you
// open the text. The codec authenticates the prefix and the key id along with the payload. A boundary with Config.Keys
// uses this codec already. Call RingCodec only to seal or open texts without a boundary.
func RingCodec(keys KeySource, purpose Purpose) Codec {
	return &ringCodec{keys: keys, purpose: purpose}
}

type ringCodec struct {
	keys     KeySource
	purpose  Purpose
	halfUsed func(KeyID) // called once when a key has made half of the seals that it may make; may be nil
}

const (
	errNoRing  = plainError("the key source returned no ring")
	errUsedUp  = plainError("the key has sealed 2^32 values: rotate to a new one")
	errPurpose = plainError("the purpose is unknown")
)

// Native marks this codec as one that does not retain the buffers passed to it, so callers may pass pooled buffers.
func (c *ringCodec) Native(native.Mark) {}

func (c *ringCodec) ring() (*ringKeys, error) {
	ring := c.keys.Ring()
	if ring == nil || ring.keys == nil {
		return nil, errNoRing
	}
	if !c.purpose.valid() {
		return nil, errPurpose
	}
	return ring.keys, nil
}

func (c *ringCodec) Seal(_ context.Context, dst, payload []byte) ([]byte, error) {
	ring, err := c.ring()
	if err != nil {
		return nil, err
	}
	id := ring.ids[0]
	key := &ring.first[c.purpose]
	switch n := key.seals.Add(1); {
	case n > maxSeals:
		return nil, errUsedUp
	case n == maxSeals/2 && c.halfUsed != nil:
		c.halfUsed(id)
	}
	// One buffer holds the text and, after it, the sealed bytes to encode.
	size := len(id) + nonceSize + len(payload) + tagSize
	start := len(dst) + b64u.EncodedLen(size)
	dst = slices.Grow(dst, c.Room(len(payload)))
	sealed := append(dst[start:start], id[:]...)
	sealed = key.aead.Seal(sealed, nil, payload, key.aad)
	return b64u.Append(dst, sealed), nil
}

func (c *ringCodec) Open(_ context.Context, dst []byte, text string) ([]byte, error) {
	ring, err := c.ring()
	if err != nil {
		return nil, err
	}
	size := b64u.DecodedLen(len(text)) - len(KeyID{}) - nonceSize - tagSize
	if size < 0 {
		return nil, ReasonMalformed
	}
	// One buffer holds the payload and, after it, the sealed bytes to open.
	start := len(dst) + size
	dst = slices.Grow(dst, start-len(dst)+b64u.DecodedLen(len(text)))
	sealed, err := b64u.Decode(dst[start:start], text)
	if err != nil {
		return nil, ReasonMalformed
	}
	sealers := ring.first // most tokens were sealed with the first key
	if id := KeyID(sealed); id != ring.ids[0] {
		if sealers = ring.sealers[id]; sealers == nil {
			return nil, ReasonUnknownKey
		}
	}
	key := &sealers[c.purpose]
	payload, err := key.aead.Open(dst, nil, sealed[len(KeyID{}):], key.aad)
	if err != nil {
		return nil, ReasonForged
	}
	return payload, nil
}

// Outlast tells the key source how long tokens live, if the source has a method Outlast.
func (c *ringCodec) Outlast(ttl time.Duration) error {
	source, ok := c.keys.(interface{ Outlast(time.Duration) error })
	if !ok {
		return nil
	}
	return source.Outlast(ttl)
}

// Room returns how much free capacity Seal needs in dst for a payload of this length.
func (c *ringCodec) Room(payload int) int {
	size := len(KeyID{}) + nonceSize + payload + tagSize
	return b64u.EncodedLen(size) + size
}

// KeyID returns the key id at the start of a text, even of a forged one, or "" if there is none.
func (c *ringCodec) KeyID(text string) string {
	const chars = 8 // eight characters of base64url hold six bytes, and the first four bytes are the id
	if len(text) < chars {
		return ""
	}
	var room [6]byte // on the stack, because the id is read for every event
	raw, err := b64u.Decode(room[:0], text[:chars])
	if err != nil {
		return ""
	}
	return KeyID(raw).String()
}

const (
	nonceSize = 12
	tagSize   = 16

	// maxSeals is how often one AES-GCM key may seal with a random nonce (NIST SP 800-38D, section 8.3).
	maxSeals = 1 << 32
)

// keySealers holds one key's sealer for each purpose.
type keySealers [purposes]sealer

type sealer struct {
	aead  cipher.AEAD
	aad   []byte // additional authenticated data: the purpose's prefix and the key id
	seals *counter
}

// counter counts seals. It fills a whole cache line, so that counting on one core does not slow down other cores that
// use the memory next to it.
type counter struct {
	atomic.Uint64
	_ [56]byte
}

func newKeySealers(key *keyMaterial) (*keySealers, error) {
	var s keySealers
	for p := range purposes {
		derived, err := hkdf.Key(sha256.New, *key.secret, nil, purposeDetails[p].keyInfo, 32)
		if err != nil {
			return nil, errors.New("cannot derive keys")
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, errors.New("cannot use AES")
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, errors.New("cannot use AES-GCM")
		}
		s[p] = sealer{aead, append([]byte(p.Prefix()), key.id[:]...), sealCount(key.id, p)}
	}
	return &s, nil
}

// sealCounts holds how many values each key has sealed. It is global, so that a key that is loaded again keeps its
// count.
var sealCounts sync.Map // maps each sealCountKey to a *counter

type sealCountKey struct {
	id      KeyID
	purpose Purpose
}

func sealCount(id KeyID, purpose Purpose) *counter {
	n, _ := sealCounts.LoadOrStore(sealCountKey{id, purpose}, new(counter))
	return n.(*counter)
}
