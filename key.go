package tripseal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tripseal/tripseal/internal/b64u"
)

const (
	minSecret = 32
	maxSecret = 1024

	infoKeyID = "tripseal/1 key id"
)

// Key is one secret. Printing a Key never shows the secret: only [Key.Reveal] does. The zero Key has no secret and is
// refused everywhere. Make a Key with [GenerateKey], [NewKey] or [ParseKey], and pass it to [NewRing].
type Key struct {
	material *keyMaterial
}

// keyMaterial holds the secret behind a second pointer, so that fmt never prints it. fmt follows the first pointer if
// the Key is in an unexported field and the verb, such as %e, is not valid for pointers.
type keyMaterial struct {
	id     KeyID
	secret *[]byte
}

// KeyID is the public name of a key. It is derived from the secret. Every token that the key sealed holds this id
// right after the prefix. Use it to name a key in logs and on dashboards.
type KeyID [4]byte

// String returns the id as eight hexadecimal digits. Logs and files of keys show an id like this.
func (id KeyID) String() string { return hex.EncodeToString(id[:]) }

// GenerateKey makes a random key. Use it for a new key, and in tests. Store what [Key.Reveal] returns, because a
// service with several replicas, or one that restarts, needs the same key again.
func GenerateKey() Key {
	secret := make([]byte, minSecret)
	rand.Read(secret) // never fails
	key, err := newKey(secret)
	if err != nil {
		panic("tripseal: a random secret was refused: " + err.Error())
	}
	return key
}

// NewKey makes a key from 32 random bytes, for example from a secret manager. The bytes are copied. The id of the key
// is the first 4 bytes of HKDF-SHA-256 with the info "tripseal/1 key id" and no salt. [Key.Reveal] returns the key as
// text for [ParseKey].
//
// NewKey refuses a secret that is not 32 bytes long. More bytes do not make a stronger key: usually they are two keys,
// a key with a line end, or the wrong secret. NewKey also refuses printable text and bytes that repeat. Printable text
// is either a pass phrase, which can be guessed, or a key in hex or base64, which keys.FromText decodes.
func NewKey(secret []byte) (Key, error) {
	if problem := weakness(secret); problem != "" {
		return Key{}, errors.New("tripseal: " + problem + "; " + howToMakeASecret)
	}
	return newKey(secret)
}

const howToMakeASecret = "a key is 32 random bytes: make one with openssl rand -hex 32, " +
	"openssl rand -base64 32 or tripseal.GenerateKey"

// leastVariety is the minimum number of different byte values in a secret. 32 random bytes have about 30 different
// values; less than one in 10¹⁴ random secrets has fewer than 17.
const leastVariety = 17

// weakness returns why a secret cannot be 32 random bytes, in a text that quotes nothing from the secret. It returns
// "" if the secret can be 32 random bytes.
func weakness(secret []byte) string {
	switch n := len(secret); {
	case n >= minSecret && allAlike(secret):
		return "every byte is the same: was the secret ever filled?"
	case n > 0 && isText(secret):
		return fmt.Sprintf("these are %d bytes of printable text, such as a pass phrase, which can be guessed, "+
			"or a key in hex or base64, which keys.FromText decodes, or in the form of tripseal.ParseKey", n)
	case n < minSecret:
		return fmt.Sprintf("%d bytes are too few", n)
	case n > minSecret:
		return fmt.Sprintf("%d bytes are too many", n)
	}
	if n := variety(secret); n < leastVariety {
		return fmt.Sprintf("the %d bytes repeat: there are only %d different bytes among them", len(secret), n)
	}
	return ""
}

// isText reports whether b is printable text, in any language. Less than one in 10¹⁰ random secrets of 32 bytes is
// text.
func isText(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
}

// newKey makes a key from a secret of minSecret to maxSecret bytes. Only ParseKey calls it with more than minSecret
// bytes.
func newKey(secret []byte) (Key, error) {
	if len(secret) < minSecret || len(secret) > maxSecret {
		return Key{}, fmt.Errorf("tripseal: a secret has %d to %d bytes, this one has %d", minSecret, maxSecret, len(secret))
	}
	if allAlike(secret) {
		return Key{}, errors.New("tripseal: a secret whose bytes are all the same: was it ever filled? " + howToMakeAKey)
	}
	secret = bytes.Clone(secret)
	derived, err := hkdf.Key(sha256.New, secret, nil, infoKeyID, len(KeyID{}))
	if err != nil {
		return Key{}, errors.New("tripseal: cannot derive the key id")
	}
	return Key{&keyMaterial{KeyID(derived), &secret}}, nil
}

func allAlike(b []byte) bool { return variety(b) == 1 }

// variety returns how many different byte values b has.
func variety(b []byte) (n int) {
	var seen [256]bool
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			n++
		}
	}
	return n
}

// ID returns the key's public name. Show this id wherever a person must tell keys apart.
func (k Key) ID() KeyID {
	if k.material == nil {
		return KeyID{}
	}
	return k.material.id
}

const (
	keyTextPrefix    = "tripseal_key1_"
	keyChecksumLabel = "tripseal/1 key checksum"
	keyChecksumSize  = 4

	howToMakeAKey = "make a key with tripseal keys new --print, or tripseal.GenerateKey().Reveal()"
)

var (
	minKeyText = b64u.EncodedLen(minSecret + keyChecksumSize)
	maxKeyText = b64u.EncodedLen(maxSecret + keyChecksumSize)
)

// ParseKey reads the text that [Key.Reveal] returns. A checksum catches a text that was cut, mistyped or encoded
// twice. The error never repeats the text. Use ParseKey for a key that you keep in a place that package keys does not
// read.
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
		return Key{}, notAKey("it has characters that no key has, such as white space, commas, quotes or padding, " +
			"or it was cut")
	}
	secret, checksum := raw[:len(raw)-keyChecksumSize], raw[len(raw)-keyChecksumSize:]
	if subtle.ConstantTimeCompare(checksum, keyChecksum(secret)) != 1 {
		return Key{}, notAKey("its checksum is wrong, so a part of it was changed, lost or added")
	}
	return newKey(secret)
}

func notAKey(why string) error {
	return errors.New("tripseal: not the text of a key: " + why + "; check that it was copied whole, or " + howToMakeAKey)
}

// Reveal returns the secret as one word of text, for a file or an environment variable that only the service can read.
// [ParseKey] reads it back.
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

// String returns the key's id in a short text, without the secret, so that printing a key is safe. fmt cannot call it
// for a Key in an unexported field of another struct: it then prints a pointer, not the secret.
func (k Key) String() string {
	if k.material == nil {
		return "tripseal.Key(none)"
	}
	return "tripseal.Key(" + k.material.id.String() + ")"
}
