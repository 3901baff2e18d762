package keys

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// Unwrapper decrypts secrets that were encrypted (wrapped) by a key service or by age. It is
// called once for each new secret when a file of keys is loaded, and never for a token. If it
// returns an error or panics, the file is not loaded. The same file is tried again after
// longer and longer pauses. A changed file is tried at once.
//
// A decrypted secret is the text of a key, tripseal_key1_…; in the file of keys, the encrypted
// secret is written as secret=SCHEME:BASE64. The package keys/agekeys is one implementation.
// To test your own, call sealtest.TestUnwrapper.
//
// An unwrapper may also have a method Files() []string, which returns the paths of the files
// that hold its own secrets. The log warns if other users can read or change these files, as
// it does for the file of keys.
type Unwrapper interface {
	// Scheme returns the name that is written before each secret of this unwrapper: the
	// SCHEME in secret=SCHEME:BASE64. The name consists of 1 to 32 lower-case letters,
	// digits and hyphens.
	Scheme() string
	// Unwrap decrypts the wrapped bytes and returns the secret. It must return an error if
	// these bytes were changed or were never encrypted. It must return when ctx ends, which
	// is after 30 seconds; a call that has not returned by then counts as failed. The caller
	// copies the result.
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
}

const (
	// unwrapTimeout is how long unwrapping all secrets of one file may take.
	unwrapTimeout = 30 * time.Second
	// longestPause is the longest wait between two tries to unwrap the secrets of one file.
	longestPause = time.Minute

	errUnwrapSlow  = guard.PlainError("the secrets were not unwrapped in time")
	errUnwrapStuck = guard.PlainError("an unwrapper has not returned since an earlier try")
)

// unwrapping holds what is needed to decrypt the secrets of a file. It also holds secrets that
// were decrypted before, so that the unwrappers are called as rarely as possible. It is not
// safe for concurrent use.
type unwrapping struct {
	unwrappers []keyfile.Unwrapper
	files      []string      // the files that hold the unwrappers' own secrets
	busy       chan struct{} // a semaphore, which has an element while an unwrapper runs

	// Secrets that were already unwrapped: those of the file in use, and those of the last
	// file that failed.
	inUse, tried map[wrappedSum]tripseal.Key

	// The last failure, the hash of the file that failed, the pause after the failure, and
	// the time at which that file may be tried again.
	err   error
	sum   fileSum
	pause time.Duration
	retry time.Time
}

// wrappedSum identifies a wrapped secret.
type wrappedSum struct {
	id  tripseal.KeyID
	sum [sha256.Size]byte
}

func newUnwrapping(unwrappers []Unwrapper) *unwrapping {
	u := &unwrapping{busy: make(chan struct{}, 1)}
	for _, each := range unwrappers {
		u.unwrappers = append(u.unwrappers, each)
		if from, ok := each.(interface{ Files() []string }); ok {
			guard.Quietly(func() { u.files = append(u.files, from.Files()...) })
		}
	}
	return u
}

// tooSoon returns the last failure if it is too soon to try the same file again, or nil if
// the file may be tried. The parameter sum is the hash of the file.
func (u *unwrapping) tooSoon(sum fileSum) error {
	if u.err != nil && u.sum == sum && time.Now().Before(u.retry) {
		return u.err
	}
	return nil
}

// secretsFor returns the secrets of the given keys, and decrypts them if necessary. The
// parameter sum is the hash of the file that holds the keys.
func (u *unwrapping) secretsFor(ctx context.Context, keys []*keyfile.Key, sum fileSum) (secretsOf, error) {
	ctx, cancel := context.WithTimeout(ctx, unwrapTimeout)
	defer cancel()
	secrets, known := make(secretsOf), make(map[wrappedSum]tripseal.Key)
	for _, k := range keys {
		wrapped := wrappedSum{k.ID, k.Secret.Sum()}
		key, err := u.secretFor(ctx, k, wrapped)
		if err != nil {
			u.tried = known
			u.failed(err, sum)
			return nil, err
		}
		secrets[k.ID] = key
		if k.Secret.Wrapped() {
			known[wrapped] = key
		}
	}
	u.inUse, u.tried, u.err = known, nil, nil
	return secrets, nil
}

func (u *unwrapping) failed(err error, sum fileSum) {
	if u.err == nil || u.sum != sum {
		u.pause = time.Second
	}
	u.pause = min(2*u.pause, longestPause)
	u.err, u.sum, u.retry = err, sum, time.Now().Add(u.pause)
}

// secretFor returns the secret of the key k. It calls an unwrapper only if the secret is
// wrapped and was not unwrapped before.
func (u *unwrapping) secretFor(ctx context.Context, k *keyfile.Key, wrapped wrappedSum) (tripseal.Key, error) {
	if !k.Secret.Wrapped() {
		return k.Open(ctx, nil)
	}
	for _, known := range []map[wrappedSum]tripseal.Key{u.inUse, u.tried} {
		if key, ok := known[wrapped]; ok {
			return key, nil
		}
	}
	return u.callUnwrapper(ctx, k)
}

// callUnwrapper lets an unwrapper decrypt the secret of the key k. It returns at the latest
// when ctx ends, even if the unwrapper has not returned.
func (u *unwrapping) callUnwrapper(ctx context.Context, k *keyfile.Key) (tripseal.Key, error) {
	select {
	case u.busy <- struct{}{}:
	default:
		return tripseal.Key{}, errUnwrapStuck
	}
	type result struct {
		key tripseal.Key
		err error
	}
	done := make(chan result, 1)
	go func() {
		key, err := k.Open(ctx, u.unwrappers)
		<-u.busy
		done <- result{key, err}
	}()
	select {
	case r := <-done:
		return r.key, r.err
	case <-ctx.Done():
		return tripseal.Key{}, errUnwrapSlow
	}
}
