package mcpseal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	minSecret = 32
	maxSecret = 1024

	infoKeyID = "mcpseal/1 key id"
)

// Key is one secret. It never prints: only [Key.Reveal] gives the secret away.
// The zero Key is no key and is refused everywhere.
type Key struct {
	material *keyMaterial
}

// keyMaterial holds the secret behind a second pointer: fmt follows the first
// where a Key is an unexported field and the verb does not fit, as in %e.
type keyMaterial struct {
	id     KeyID
	secret *[]byte
}

// KeyID is the public name of a key. It is derived from the secret and stands
// at the front of every token that the key sealed.
type KeyID [4]byte

// String returns the id as eight hexadecimal digits.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// GenerateKey makes a random key.
func GenerateKey() Key {
	secret := make([]byte, minSecret)
	rand.Read(secret) // never fails
	key, err := NewKey(secret)
	if err != nil {
		panic("mcpseal: a random secret was refused: " + err.Error())
	}
	return key
}

// NewKey makes a key from a secret of 32 to 1024 bytes with at least 256 bits
// of entropy, such as a key service gives out. The bytes are copied. A
// password is not a secret: run it through a password hash first, or better
// use [GenerateKey].
func NewKey(secret []byte) (Key, error) {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return Key{}, fmt.Errorf("mcpseal: a secret has %d to %d bytes, this one has %d; %s",
			minSecret, maxSecret, len(secret), howToMakeAKey)
	}
	if bytes.HasPrefix(secret, []byte(keyTextPrefix)) {
		return Key{}, errors.New("mcpseal: this is the text of a key, not its bytes; use mcpseal.ParseKey")
	}
	if allAlike(secret) {
		return Key{}, errors.New("mcpseal: every byte of the secret is the same, was it ever filled? " + howToMakeAKey)
	}
	secret = append([]byte(nil), secret...)
	derived, err := hkdf.Key(sha256.New, secret, nil, infoKeyID, len(KeyID{}))
	if err != nil {
		return Key{}, errors.New("mcpseal: cannot derive the key id")
	}
	return Key{&keyMaterial{KeyID(derived), &secret}}, nil
}

func allAlike(b []byte) bool {
	for _, c := range b {
		if c != b[0] {
			return false
		}
	}
	return true
}

// ID returns the key's public name.
func (k Key) ID() KeyID {
	if k.material == nil {
		return KeyID{}
	}
	return k.material.id
}
