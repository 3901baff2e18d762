package keys

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/tripseal/tripseal"
)

// Encoding says how keys are written as text, for [FromText] and [FromEnvironment]: [Tripseal],
// [Hex], [Base64] or [Base64URL]. It must always be named, because many texts are valid in two
// encodings and mean a different key in each. In every encoding a key is 32 random bytes: the
// base64 of a pass phrase is refused.
type Encoding uint8

const (
	Tripseal  Encoding = iota + 1 // tripseal_key1_…, as [tripseal.Key.Reveal] writes it, with a checksum
	Hex                           // 64 hexadecimal digits, in upper or lower case
	Base64                        // standard base64, with or without padding
	Base64URL                     // base64 with - and _ in place of + and /, with or without padding
)

// encodings has the name of each [Encoding], and a shell command that makes a key in it.
var encodings = [...]struct{ name, makes string }{
	Tripseal:  {"tripseal", "tripseal keys new --print"},
	Hex:       {"hex", "openssl rand -hex 32"},
	Base64:    {"base64", "openssl rand -base64 32"},
	Base64URL: {"base64url", "openssl rand -base64 32 | tr '+/' '-_'"},
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
		if encodings[e].name == name {
			return e, nil
		}
	}
	return 0, errors.New("keys: not the name of an encoding: it is tripseal, hex, base64 or base64url")
}

// decodeKey decodes the text of one key. An error never contains the text or a part of it.
func (e Encoding) decodeKey(text string) (tripseal.Key, error) {
	if e == Tripseal {
		key, err := tripseal.ParseKey(text)
		return key, withoutPackage(err)
	}
	code := base64.RawURLEncoding
	if e == Base64 {
		code = base64.RawStdEncoding
	}
	if strings.HasSuffix(text, "=") {
		code = code.WithPadding(base64.StdPadding)
	}
	decode := code.Strict().DecodeString
	if e == Hex {
		decode = hex.DecodeString
	}
	secret, err := decode(text)
	if err != nil { // do not return err, because it may contain a character of the key
		return tripseal.Key{}, fmt.Errorf("not %v: among its %d characters are some that %v does not have, such as "+
			"commas or quotes, or it was cut; make one with %s", e, len(text), e, encodings[e].makes)
	}
	key, err := tripseal.NewKey(secret)
	if err != nil {
		return tripseal.Key{}, fmt.Errorf("not 32 random bytes in %v: %w", e, withoutPackage(err))
	}
	return key, nil
}

// withoutPackage returns err without the prefix "tripseal: ", the name of the root package.
func withoutPackage(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), "tripseal: "))
}
