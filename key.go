package mcpseal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"

	"github.com/mcpseal/mcpseal/internal/b64u"
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
// one if a Key is in an unexported field and the verb does not fit, such as %e.
type keyMaterial struct {
	id     KeyID
	secret *[]byte
}

// KeyID is the public name of a key. It is derived from the secret, and is at the
// front of every token that the key sealed.
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
// of entropy, for example from a key service. The bytes are copied. A password
// is not such a secret: run it through a password hash first, or better use
// [GenerateKey].
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

const (
	keyTextPrefix    = "mcpseal_key1_"
	keyChecksumLabel = "mcpseal/1 key checksum"
	keyChecksumSize  = 4

	howToMakeAKey = "make a key with mcpseal keys new --print, or mcpseal.GenerateKey().Reveal()"
)

var (
	minKeyText = b64u.EncodedLen(minSecret + keyChecksumSize)
	maxKeyText = b64u.EncodedLen(maxSecret + keyChecksumSize)
)

// ParseKey reads the text that [Key.Reveal] returns. A checksum catches a text
// that was cut, mistyped or encoded twice. The error never repeats the text.
func ParseKey(text string) (Key, error) {
	body, ok := strings.CutPrefix(text, keyTextPrefix)
	switch {
	case !ok:
		return Key{}, notAKey("it does not begin with " + keyTextPrefix)
	case len(body) < minKeyText || len(body) > maxKeyText:
		return Key{}, notAKey(fmt.Sprintf("it has %d characters after %s, too few or too many", len(body), keyTextPrefix))
	}
	raw, err := b64u.Decode(nil, body)
	if err != nil {
		return Key{}, notAKey("it has characters that no key has, such as white space, commas, quotes or padding, or it was cut")
	}
	secret, checksum := raw[:len(raw)-keyChecksumSize], raw[len(raw)-keyChecksumSize:]
	if subtle.ConstantTimeCompare(checksum, keyChecksum(secret)) != 1 {
		return Key{}, notAKey("its checksum is wrong, so a part of it was changed, lost or added")
	}
	return NewKey(secret)
}

func notAKey(why string) error {
	return errors.New("mcpseal: not the text of a key: " + why + "; check that it was copied whole, or " + howToMakeAKey)
}

// Reveal returns the secret as one word of text, for a file or an environment
// variable that only the service can read. [ParseKey] reads it back.
func (k Key) Reveal() string {
	if k.material == nil {
		return ""
	}
	secret := *k.material.secret
	raw := append(append(make([]byte, 0, len(secret)+keyChecksumSize), secret...), keyChecksum(secret)...)
	return string(b64u.Append([]byte(keyTextPrefix), raw))
}

func keyChecksum(secret []byte) []byte {
	h := sha256.New()
	h.Write([]byte(keyChecksumLabel))
	h.Write(secret)
	return h.Sum(nil)[:keyChecksumSize]
}

// Keys and rings print as their ids under every verb and in every log. A printer
// that cannot call these methods (in an unexported field of another struct)
// prints a pointer and goes no further.

// String names the key without its secret.
func (k Key) String() string {
	if k.material == nil {
		return "mcpseal.Key(none)"
	}
	return "mcpseal.Key(" + k.material.id.String() + ")"
}

// GoString is String: %#v shows no secret either.
func (k Key) GoString() string { return k.String() }

// Format writes String under every verb.
func (k Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// LogValue is String, for slog.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText is String: an encoder writes the key's name, not the key.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// String names the ring's size and its sealing key.
func (r Ring) String() string {
	if r.keys == nil {
		return "mcpseal.Ring(empty)"
	}
	return "mcpseal.Ring(" + strconv.Itoa(len(r.keys.ids)) + " keys, " + r.keys.ids[0].String() + " seals)"
}

// GoString is String: %#v shows no secret either.
func (r Ring) GoString() string { return r.String() }

// Format writes String under every verb.
func (r Ring) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) }

// LogValue is String, for slog.
func (r Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText is String: an encoder writes the ring's name, not its keys.
func (r Ring) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
