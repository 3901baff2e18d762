package keyfile

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
)

// MaxWrapped is the greatest length of an encrypted secret, in bytes.
const MaxWrapped = 8 << 10

// Secret is the secret of a key, encrypted or not. Printing it reveals nothing: a
// tripseal.Key prints without its secret, and the bytes in wrapped are encrypted.
type Secret struct {
	key     tripseal.Key
	scheme  string // the name of the encryption method, such as "age"; "" if the secret is not encrypted
	wrapped []byte
}

// Plain returns a Secret that is not encrypted.
func Plain(key tripseal.Key) Secret { return Secret{key: key} }

// Wrap returns a Secret that is encrypted. scheme is the name of the encryption method, such
// as "age".
func Wrap(scheme string, wrapped []byte) Secret { return Secret{scheme: scheme, wrapped: wrapped} }

// Wrapped reports whether the secret is encrypted.
func (s Secret) Wrapped() bool { return s.scheme != "" }

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
	if s.Wrapped() {
		return s.scheme + ":" + base64.StdEncoding.EncodeToString(s.wrapped)
	}
	return s.key.Reveal()
}

// Unwrapper is the same as keys.Unwrapper, which this package cannot import.
type Unwrapper interface {
	Scheme() string
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
}

// Open returns the key with its secret. If the secret is encrypted, Open decrypts it with
// one of the unwrappers. If an unwrapper fails or panics, the text of the error holds no
// secret.
func (k *Key) Open(ctx context.Context, unwrappers []Unwrapper) (key tripseal.Key, err error) {
	if !k.Secret.Wrapped() {
		return k.Secret.key, nil
	}
	for _, u := range unwrappers {
		var text []byte
		matches := false
		failed := guard.Call(func() (err error) {
			if matches = u.Scheme() == k.Secret.scheme; matches {
				text, err = u.Unwrap(ctx, append([]byte(nil), k.Secret.wrapped...))
			}
			return err
		})
		if failed != nil {
			return tripseal.Key{}, fmt.Errorf("key %s: its secret cannot be unwrapped: %w", k.ID, failed)
		}
		if matches {
			return k.parseUnwrapped(text)
		}
	}
	return tripseal.Key{}, fmt.Errorf("key %s: its secret is wrapped with %s, and nothing was given to unwrap it", k.ID, k.Secret.scheme)
}

// parseUnwrapped returns the key in a decrypted text. The text may have a line end after the
// key.
func (k *Key) parseUnwrapped(text []byte) (tripseal.Key, error) {
	key, err := tripseal.ParseKey(strings.TrimRight(string(text), "\r\n"))
	if err != nil {
		return tripseal.Key{}, fmt.Errorf("key %s: what was wrapped is %s", k.ID, strings.TrimPrefix(err.Error(), "tripseal: "))
	}
	if err := k.checkSecret(key); err != nil {
		return tripseal.Key{}, fmt.Errorf("key %s: %w", k.ID, err)
	}
	return key, nil
}

// Sum returns a hash that identifies a secret without revealing it. Secrets with the same
// text in a file have the same hash.
func (s Secret) Sum() [sha256.Size]byte { return sha256.Sum256([]byte(s.reveal())) }
