package keys

import (
	"context"
	"fmt"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// Unwrapper decrypts secrets that were encrypted (wrapped) by a key service or by age. It is
// called once for each new secret when a file of keys is loaded, and never for a token. If it
// returns an error or panics, the file is not loaded, and is tried again a minute later.
//
// A decrypted secret is the text of a key, tripseal_key1_…; in the file of keys, the encrypted
// secret is written as secret=SCHEME:BASE64. The package keys/agekeys is one implementation.
// To test your own, call sealtest.TestUnwrapper.
type Unwrapper interface {
	// Scheme returns the name that is written before each secret of this unwrapper: the
	// SCHEME in secret=SCHEME:BASE64. The name consists of 1 to 32 lower-case letters,
	// digits and hyphens.
	Scheme() string
	// Unwrap decrypts the wrapped bytes and returns the secret. It must return an error if
	// these bytes were changed or were never encrypted. It must return when ctx ends, which
	// is 30 seconds after the load began: until it returns, no other file is loaded.
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
}

const (
	unwrapTimeout = 30 * time.Second // for all secrets of one file
	unwrapPause   = time.Minute      // after a failure
)

// unwraps holds what is needed to decrypt the secrets of a file. It remembers decrypted secrets, so
// that an unwrapper is called once for each.
type unwraps struct {
	by    map[string]keyfile.Unwrapper // by scheme
	known map[keyfile.Secret]tripseal.Key

	failed error // of the last try, or nil
	wanted keyfile.Secret
	retry  time.Time
}

func (u *unwraps) use(unwrappers []Unwrapper) error {
	u.by, u.known = make(map[string]keyfile.Unwrapper), make(map[keyfile.Secret]tripseal.Key)
	for i, each := range unwrappers {
		var scheme string
		if panicked := guard.Call(func() error { scheme = each.Scheme(); return nil }); panicked != nil {
			return fmt.Errorf("keys: Options.Unwrap[%d] cannot be used: %w", i, panicked)
		}
		if !keyfile.ValidScheme(scheme) {
			return fmt.Errorf("keys: the scheme of Options.Unwrap[%d] is not 1 to 32 of a-z, 0-9 and -", i)
		}
		if u.by[scheme] != nil {
			return fmt.Errorf("keys: two of Options.Unwrap have the scheme %s: make one of them", scheme)
		}
		u.by[scheme] = each
	}
	return nil
}

// secrets returns the secrets of the given keys, and decrypts them if necessary. It leaves out keys
// that have expired, rather than have their secrets decrypted. If the same secret could not be decrypted within
// the last minute, it does not try again, unless the parameter force is true.
func (u *unwraps) secrets(ctx context.Context, all []*keyfile.Key, now time.Time, force bool) (
	map[tripseal.KeyID]tripseal.Key, error,
) {
	ctx, cancel := context.WithTimeout(ctx, unwrapTimeout)
	defer cancel()
	secrets, used := make(map[tripseal.KeyID]tripseal.Key), make(map[keyfile.Secret]tripseal.Key)
	for _, k := range all {
		wrapped := k.Secret.Scheme() != ""
		key, known := u.known[k.Secret]
		switch {
		case known && key.ID() == k.ID:
		case !k.Opens(now) && (wrapped || len(u.by) > 0):
			continue
		case !wrapped && len(u.by) > 0:
			return nil, fmt.Errorf("key %s: its secret is not encrypted, although Options.Unwrap is set: whoever can "+
				"write the file may have put it there; if it is yours, encrypt it: tripseal keys wrap", k.ID)
		case u.failed != nil && u.wanted == k.Secret && now.Before(u.retry) && !force:
			return nil, u.failed
		default:
			var err error
			if key, err = k.Open(ctx, u.by); err != nil {
				u.failed, u.wanted, u.retry = err, k.Secret, now.Add(unwrapPause)
				return nil, err
			}
			u.known[k.Secret] = key // even if the next one fails
		}
		secrets[k.ID], used[k.Secret] = key, key
	}
	u.known, u.failed = used, nil
	return secrets, nil
}
