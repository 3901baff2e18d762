package mcpseal

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"

	"github.com/mcpseal/mcpseal/internal/b64u"
)

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
// that was cut, mistyped or encoded once too often. The error never repeats
// the text.
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
