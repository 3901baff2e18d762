package mcpseal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"sync"
	"sync/atomic"
)

const (
	nonceSize = 12
	tagSize   = 16

	// maxSeals is how many random nonces one AES-GCM key may see (NIST SP
	// 800-38D, section 8.3).
	maxSeals = 1 << 32
)

// keySealers is one key, ready for every purpose.
type keySealers [purposes]sealer

type sealer struct {
	aead  cipher.AEAD
	aad   []byte // prefix and key id
	seals *atomic.Uint64
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

// sealCounts lets a key that is loaded again go on counting where it was.
var sealCounts sync.Map // sealCountKey to *atomic.Uint64

type sealCountKey struct {
	id      KeyID
	purpose Purpose
}

func sealCount(id KeyID, purpose Purpose) *atomic.Uint64 {
	n, _ := sealCounts.LoadOrStore(sealCountKey{id, purpose}, new(atomic.Uint64))
	return n.(*atomic.Uint64)
}
