package mcpseal

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/mcpseal/mcpseal/internal/b64u"
)

const (
	keyTextPrefix    = "mcpseal_key1_"
	keyChecksumLabel = "mcpseal/1 key checksum"
	keyChecksumSize  = 4

	howToMakeAKey = "make a key with mcpseal.GenerateKey().Reveal()"
)

var errKeyText = errors.New("mcpseal: not a key: a key is one word that begins with " + keyTextPrefix +
	", and nothing may be missing, added or retyped; " + howToMakeAKey)

// ParseKey reads the text that [Key.Reveal] returns. A checksum catches a text
// that was cut, mistyped or encoded once too often. The error never repeats
// the text.
func ParseKey(text string) (Key, error) {
	body, ok := strings.CutPrefix(text, keyTextPrefix)
	// Four characters stand for three bytes: a longer body is no key.
	if !ok || len(body) > (maxSecret+keyChecksumSize)/3*4+4 {
		return Key{}, errKeyText
	}
	raw, err := b64u.Decode(nil, body)
	if err != nil || len(raw) < minSecret+keyChecksumSize {
		return Key{}, errKeyText
	}
	secret, checksum := raw[:len(raw)-keyChecksumSize], raw[len(raw)-keyChecksumSize:]
	if subtle.ConstantTimeCompare(checksum, keyChecksum(secret)) != 1 {
		return Key{}, errKeyText
	}
	return NewKey(secret)
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
