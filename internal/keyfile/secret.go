package keyfile

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
)

// MaxWrapped is the greatest length of an encrypted secret, in bytes.
const MaxWrapped = 8 << 10

// Secret is the secret of a key, encrypted or not. It is comparable. Printing it reveals nothing:
// a tripseal.Key prints without its secret, and the bytes in wrapped are encrypted.
type Secret struct {
	key     tripseal.Key
	scheme  string // the name of the encryption method, such as "age"; "" if the secret is not encrypted
	wrapped string
}

// Plain returns a Secret that is not encrypted.
func Plain(key tripseal.Key) Secret { return Secret{key: key} }

// Wrap returns a Secret that is encrypted. scheme is the name of the encryption method, such
// as "age".
func Wrap(scheme string, wrapped []byte) Secret {
	return Secret{scheme: scheme, wrapped: string(wrapped)}
}

// Scheme returns the name of the encryption method, such as "age", or "" if the secret is
// not encrypted.
func (s Secret) Scheme() string { return s.scheme }

func parseSecret(text string) (Secret, error) {
	scheme, wrapped, ok := strings.Cut(text, ":")
	if !ok {
		key, err := tripseal.ParseKey(text)
		if err != nil {
			err = errors.New("the secret is " + strings.TrimPrefix(err.Error(), "tripseal: "))
		}
		return Secret{key: key}, err
	}
	if !ValidScheme(scheme) {
		return Secret{}, errors.New("the secret is neither a key nor a wrapped key such as age:…")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(wrapped)
	if err != nil || len(raw) == 0 || len(raw) > MaxWrapped {
		return Secret{}, fmt.Errorf("the wrapped secret is not base64 of 1 to %d bytes", MaxWrapped)
	}
	return Wrap(scheme, raw), nil
}

// ValidScheme reports whether scheme is a valid name: 1 to 32 lower-case letters, digits and
// hyphens.
func ValidScheme(scheme string) bool {
	return 0 < len(scheme) && len(scheme) <= 32 && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// reveal returns the secret as it is written in the file.
func (s Secret) reveal() string {
	if s.scheme != "" {
		return s.scheme + ":" + base64.StdEncoding.EncodeToString([]byte(s.wrapped))
	}
	return s.key.Reveal()
}

// Unwrapper decrypts secrets. A keys.Unwrapper is one.
type Unwrapper interface {
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
}

// Open returns the key with its secret. If the secret is encrypted, Open decrypts it with the
// unwrapper of its scheme. If the unwrapper fails or panics, the text of the error holds no
// secret.
func (k *Key) Open(ctx context.Context, unwrappers map[string]Unwrapper) (tripseal.Key, error) {
	if k.Secret.scheme == "" {
		return k.Secret.key, nil
	}
	u := unwrappers[k.Secret.scheme]
	if u == nil {
		return tripseal.Key{}, fmt.Errorf("key %s: its secret is wrapped with %s, and nothing was given to unwrap it",
			k.ID, k.Secret.scheme)
	}
	var text []byte
	failed := guard.Call(func() (err error) {
		text, err = u.Unwrap(ctx, []byte(k.Secret.wrapped))
		return err
	})
	if failed != nil {
		return tripseal.Key{}, fmt.Errorf("key %s: its secret cannot be unwrapped: %w", k.ID, failed)
	}
	key, err := tripseal.ParseKey(strings.TrimRight(string(text), "\r\n"))
	if err != nil {
		return tripseal.Key{}, fmt.Errorf("key %s: what was wrapped is %s", k.ID,
			strings.TrimPrefix(err.Error(), "tripseal: "))
	}
	if err := k.checkSecret(key); err != nil {
		return tripseal.Key{}, fmt.Errorf("key %s: %w", k.ID, err)
	}
	return key, nil
}
