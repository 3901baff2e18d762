package wire

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/tripseal/tripseal"
)

// Users names the user of a request by its headers. It returns "" if the headers name nobody. [SecretUsers] and
// [FirstOf] make one, and so can you. Set its method Of as [Options].User.
type Users func(http.Header) (string, error)

// Of names the user of a request.
func (u Users) Of(r *http.Request) (string, error) { return u(r.Header) }

// SecretUsers names users by a secret that they send, such as an opaque access token or an API key: the function secret
// finds it in the headers, and returns "" if there is none. The name is a digest under the key, so it does not reveal
// the secret. The kind, such as "bearer", is a part of the name: users of two kinds never have the same name.
//
//	bearer := wire.SecretUsers(key, "bearer", wire.BearerToken)
//	engine.Handler(server, wire.Options{User: bearer.Of})
//
// Something in front of the handler must verify the secret. Who gets a new secret becomes another user, and has to
// start over. The key must be the same on all replicas and must not rotate: make one with "tripseal keys new --print",
// and read it with [tripseal.ParseKey]. SecretUsers panics without a key, a kind or a function.
func SecretUsers(key tripseal.Key, kind string, secret func(http.Header) (string, error)) Users {
	if key == (tripseal.Key{}) || kind == "" || strings.Contains(kind, ":") || secret == nil {
		panic("wire: SecretUsers needs a key (check the error of tripseal.ParseKey), a kind without a colon, and a function")
	}
	derived, err := hkdf.Key(sha256.New, []byte(key.Reveal()), nil, "tripseal/1 secret user "+kind, sha256.Size)
	if err != nil {
		panic("wire: cannot derive the key of SecretUsers")
	}
	return func(header http.Header) (string, error) {
		text, err := secret(header)
		switch {
		case text == "" || err != nil:
			return "", err
		case len(text) > maxSecret:
			return "", errLongSecret
		}
		digest := hmac.New(sha256.New, derived)
		digest.Write([]byte(text))
		return kind + ":" + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)), nil
	}
}

// FirstOf asks each of the users in turn, until one returns a name or an error. Make sure that two of them never return
// the same name for different users.
func FirstOf(users ...Users) Users {
	return func(header http.Header) (string, error) {
		for _, u := range users {
			if name, err := u(header); name != "" || err != nil {
				return name, err
			}
		}
		return "", nil
	}
}

const maxSecret = 16 << 10 // bytes

// BearerToken returns the token in the header Authorization, or "" if there is no such header. Use it with
// [SecretUsers].
func BearerToken(header http.Header) (string, error) {
	values := header["Authorization"]
	if len(values) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" ||
		strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errNoBearer
	}
	return token, nil
}

// These texts are logged as the cause when the reason of a rejection is principal_failed. None repeats the header.
const (
	errNoBearer   = tripseal.PlainError("not one Authorization header of the form: Bearer TOKEN")
	errLongSecret = tripseal.PlainError("the secret of the user is longer than 16 KiB")
)
