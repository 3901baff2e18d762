package keys

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tripseal/tripseal"
)

// Encoding says how keys are written as text. You must always name the encoding, because many
// texts are valid in two encodings and mean a different key in each. Pass an Encoding to
// [FromText] or [FromEnvironment]. The zero value is not an encoding: these functions return
// an error for it.
type Encoding uint8

const (
	// Tripseal is text that begins with tripseal_key1_, as printed by the command
	// `tripseal keys new --print` and returned by [tripseal.Key.Reveal]. Only this encoding has a
	// checksum.
	Tripseal Encoding = iota + 1
	// Hex is 64 hexadecimal digits, in upper or lower case. The command
	// `openssl rand -hex 32` makes such a key.
	Hex
	// Base64 is standard base64, with or without padding. The command
	// `openssl rand -base64 32` makes such a key.
	Base64
	// Base64URL is base64 with - and _ in place of + and /, with or without padding.
	Base64URL
)

// encodings has the name of each [Encoding], its Go constant, and a shell command that makes
// a key in this encoding.
var encodings = [...]struct{ name, constant, makes string }{
	Tripseal:  {"tripseal", "keys.Tripseal", "tripseal keys new --print"},
	Hex:       {"hex", "keys.Hex", "openssl rand -hex 32"},
	Base64:    {"base64", "keys.Base64", "openssl rand -base64 32"},
	Base64URL: {"base64url", "keys.Base64URL", "openssl rand -base64 32 | tr '+/' '-_'"},
}

func (e Encoding) valid() bool { return 0 < e && int(e) < len(encodings) }

// String returns the encoding's name: tripseal, hex, base64 or base64url. [ParseEncoding]
// reads it back.
func (e Encoding) String() string {
	if !e.valid() {
		return fmt.Sprintf("Encoding(%d)", uint8(e))
	}
	return encodings[e].name
}

// ParseEncoding returns the encoding with this name: tripseal, hex, base64 or base64url.
// Use it if the encoding is a setting of your program.
func ParseEncoding(name string) (Encoding, error) {
	for e := Tripseal; e.valid(); e++ {
		if e.String() == name {
			return e, nil
		}
	}
	return 0, errors.New("keys: not the name of an encoding: it is tripseal, hex, base64 or base64url")
}

// maxText limits the length of a text that is decoded. The text of a key is always shorter.
const maxText = 2048

// decodeKey decodes the text of one key. An error never contains the text or a part of it.
func (e Encoding) decodeKey(text string) (tripseal.Key, error) {
	if len(text) > maxText {
		return tripseal.Key{}, fmt.Errorf("far too long, with %d characters", len(text))
	}
	if e == Tripseal {
		key, err := tripseal.ParseKey(text)
		return key, withoutPackage(err)
	}
	var secret []byte
	var err error
	switch padded := strings.HasSuffix(text, "="); {
	case e == Hex:
		secret, err = hex.DecodeString(text)
	case e == Base64 && padded:
		secret, err = base64.StdEncoding.Strict().DecodeString(text)
	case e == Base64:
		secret, err = base64.RawStdEncoding.Strict().DecodeString(text)
	case padded:
		secret, err = base64.URLEncoding.Strict().DecodeString(text)
	default:
		secret, err = base64.RawURLEncoding.Strict().DecodeString(text)
	}
	if err != nil { // do not return err, because it may contain a character of the key
		return tripseal.Key{}, fmt.Errorf("not %v: among its %d characters are some that %v does not have, such as commas or quotes, or it was cut; "+
			"make one with %s", e, len(text), e, encodings[e].makes)
	}
	key, err := tripseal.NewKey(secret)
	if err != nil {
		return tripseal.Key{}, fmt.Errorf("not 32 random bytes in %v: %w", e, withoutPackage(err))
	}
	return key, nil
}

// hint is called with a text that is not a key in the encoding e. If the text is a key in
// another encoding, hint returns words that name that encoding, to append to an error
// message. Otherwise it returns "".
func (e Encoding) hint(text string) string {
	for other := Tripseal; other.valid(); other++ {
		if _, err := other.decodeKey(text); err == nil && other != e {
			return fmt.Sprintf("; it looks like %v: is %s meant?", other, encodings[other].constant)
		}
	}
	return ""
}

// withoutPackage returns err without the prefix "tripseal: ", the name of the root package.
func withoutPackage(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "tripseal: "))
}
