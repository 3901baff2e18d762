// Package agekeys uses age (https://age-encryption.org) to encrypt and decrypt the secrets
// in a file of keys. A file with encrypted secrets can be stored and copied like any other
// file: only the holder of an age identity can read it. Whoever knows a recipient can encrypt a
// key of their own for it, so keep recipients to yourself where others can write the file.
//
//	unwrapper, err := agekeys.IdentityFile("/etc/release/identity")
//	…
//	source, err := keys.OpenFile("/etc/release/keys", &keys.Options{Unwrap: []keys.Unwrapper{unwrapper}})
//
// age uses X25519 and ChaCha20-Poly1305, which FIPS 140 does not allow. In a process that
// enforces FIPS 140, use the key service of your platform instead.
package agekeys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"filippo.io/age"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// Scheme marks secrets that are encrypted with age: secret=age:… in a file of keys. Use
// it if your own program writes the file.
const Scheme = "age"

const (
	maxIdentityFile = 1 << 20
	maxSecret       = 4 << 10 // the maximum length of a decrypted secret, in bytes; the text of a key is always shorter

	errNoMatch = tripseal.PlainError("it is encrypted for none of the age identities given")
	errLong    = tripseal.PlainError("what age decrypted is too long for a key")
)

// New returns an unwrapper that decrypts secrets with these identities. A secret must be
// encrypted for at least one of them. Use New if your program makes the identities
// itself, with a plugin for example; otherwise use [IdentityFile].
func New(identities ...age.Identity) (keys.Unwrapper, error) {
	if len(identities) == 0 {
		return nil, errors.New("agekeys: no identity was given; make one with age-keygen")
	}
	for i, identity := range identities {
		if identity == nil {
			return nil, fmt.Errorf("agekeys: identity %d is nil", i+1)
		}
	}
	held := append([]age.Identity(nil), identities...)
	return unwrapper{identities: &held}, nil
}

// IdentityFile returns an unwrapper with the identities in files that age-keygen wrote. It
// reads the files once. Set the unwrapper in [keys.Options].Unwrap.
func IdentityFile(paths ...string) (keys.Unwrapper, error) {
	var all []age.Identity
	for _, path := range paths {
		identities, err := readIdentities(path)
		if err != nil {
			return nil, err
		}
		all = append(all, identities...)
	}
	return New(all...)
}

func readIdentities(path string) ([]age.Identity, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("agekeys: the identity file cannot be read: %w", err)
	}
	defer file.Close()
	identities, err := age.ParseIdentities(io.LimitReader(file, maxIdentityFile))
	if err != nil {
		// Do not return the parser's error, because it may contain a secret.
		return nil, fmt.Errorf("agekeys: %q is not a file of age identities, as age-keygen writes them", path)
	}
	return identities, nil
}

// unwrapper holds the identities behind a pointer, so that the package fmt never prints them.
// A printed identity would reveal its secret.
type unwrapper struct {
	identities *[]age.Identity
}

func (unwrapper) Scheme() string { return Scheme }

// Format writes only the name of the type for every verb, because the identities are secret.
func (unwrapper) Format(s fmt.State, _ rune) { io.WriteString(s, "agekeys.Unwrapper") }

// LogValue returns only the name of the type, because the identities are secret.
func (unwrapper) LogValue() slog.Value { return slog.StringValue("agekeys.Unwrapper") }

// MarshalText returns only the name of the type, because the identities are secret.
func (unwrapper) MarshalText() ([]byte, error) { return []byte("agekeys.Unwrapper"), nil }

func (u unwrapper) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	plaintext, err := age.Decrypt(bytes.NewReader(wrapped), *u.identities...)
	var noMatch *age.NoIdentityMatchError
	if errors.As(err, &noMatch) {
		return nil, fmt.Errorf("%w: %w", errNoMatch, err)
	}
	if err != nil {
		return nil, err
	}
	secret, err := io.ReadAll(io.LimitReader(plaintext, maxSecret+1))
	if err != nil {
		return nil, err
	}
	if len(secret) > maxSecret {
		return nil, errLong
	}
	return secret, nil
}

// Wrap encrypts the text of a key for the recipients. To put the result into a file of keys,
// encode it in base64 and write it after "secret=age:". The command `tripseal keys new --recipient`
// encrypts a new key and writes it to a file. Use Wrap if your own program writes the
// file.
func Wrap(key tripseal.Key, recipients ...age.Recipient) ([]byte, error) {
	if key.ID() == (tripseal.KeyID{}) {
		return nil, errors.New("agekeys: the key is empty")
	}
	if len(recipients) == 0 {
		return nil, errors.New("agekeys: no recipient was given")
	}
	var wrapped bytes.Buffer
	w, err := age.Encrypt(&wrapped, recipients...)
	if err != nil {
		return nil, fmt.Errorf("agekeys: %w", err)
	}
	if _, err := io.WriteString(w, key.Reveal()); err != nil {
		return nil, fmt.Errorf("agekeys: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("agekeys: %w", err)
	}
	return wrapped.Bytes(), nil
}
