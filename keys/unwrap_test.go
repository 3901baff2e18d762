package keys_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys"
)

// vault stands for a key service. It counts the calls of Unwrap, and a test can make it fail.
type vault struct {
	calls atomic.Int64
	fails func() error
	hangs bool
}

func (*vault) Scheme() string { return "vault" }

func (v *vault) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	v.calls.Add(1)
	if v.hangs {
		<-ctx.Done()
	}
	if v.fails != nil {
		if err := v.fails(); err != nil {
			return nil, err
		}
	}
	return flip(wrapped), ctx.Err()
}

func flip(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		b[i] ^= 0xff
	}
	return b
}

// wrapped returns a file of keys whose secrets only the vault can unwrap. The newest key has the
// given id. Its secret is the given plaintext, which need not be the secret of that id. The keys
// of the parameter others are older.
func wrapped(t *testing.T, id tripseal.KeyID, plaintext string, others ...tripseal.Key) []byte {
	t.Helper()
	now := time.Now().Truncate(time.Millisecond)
	var d keyfile.Document
	d.Add(&keyfile.Key{ID: id, Made: now, SealsFrom: now, Secret: keyfile.Wrap("vault", flip([]byte(plaintext)))})
	for i, k := range others {
		secret := keyfile.Wrap("vault", flip([]byte(k.Reveal())))
		d.Add(&keyfile.Key{ID: k.ID(), Made: now, SealsFrom: now.Add(-time.Duration(i+1) * time.Hour), Secret: secret})
	}
	return d.Bytes()
}

func TestSecretsAreUnwrappedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b, c := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	write(t, path, wrapped(t, a.ID(), a.Reveal()+"\n", b))
	v := new(vault)
	f, _ := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}})
	s := serve(t, f)
	for range 10 {
		if err := s.works(); err != nil {
			t.Fatal(err)
		}
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	if n := v.calls.Load(); n != 2 {
		t.Errorf("unwrapped %d times", n)
	}
	// Only new secrets are unwrapped. The key service is not needed for known secrets.
	write(t, path, revoked(t, wrapped(t, c.ID(), c.Reveal(), b, a), a.ID()))
	if err := f.Reload(); err != nil || v.calls.Load() != 3 || seals(f) != c.ID() {
		t.Errorf("unwrapped %d times, %v", v.calls.Load(), err)
	}
	v.fails = func() error { return errors.New("away") }
	write(t, path, wrapped(t, b.ID(), b.Reveal(), c))
	if err := f.Reload(); err != nil || seals(f) != b.ID() {
		t.Errorf("known secrets need the service: %v", err)
	}
	// Now the wrapped secret of b includes a line end, so its text in the file has changed. The
	// source must unwrap this secret again. The key service is away, so the reload must fail.
	write(t, path, wrapped(t, b.ID(), b.Reveal()+"\r\n", c))
	if err := f.Reload(); err == nil {
		t.Error("another text of a secret is taken for the same")
	}
}

// TestFailingUnwrapperIsNotAskedAllTheTime checks that a secret that cannot be unwrapped is tried
// once a minute. A new try must not unwrap the good secrets again.
func TestFailingUnwrapperIsNotAskedAllTheTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good, bad := tripseal.GenerateKey(), tripseal.GenerateKey()
	others := []tripseal.Key{good}
	for range 10 {
		others = append(others, tripseal.GenerateKey())
	}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour) // the clock of synctest starts in 2000; without this sleep, some keys would have a date in 1999, which is refused
		write(t, path, wrapped(t, good.ID(), good.Reveal()))
		v := new(vault)
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}, Every: 2 * time.Second})
		defer f.Close()
		l.take()
		// Keys are unwrapped in the order in which they seal. The bad key is the newest, so it is
		// the last.
		write(t, path, wrapped(t, bad.ID(), "sesame", others...))
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if n := v.calls.Load(); n > 11+12 {
			t.Errorf("asked %d times in eleven minutes", n)
		}
		if said, _ := l.take(); strings.Count(said, "cannot be used") != 2 {
			t.Errorf("said %s", said)
		}
		// Reload tries again at once. A secret that has changed is also tried at once.
		before := v.calls.Load()
		if f.Reload() == nil || v.calls.Load() != before+1 {
			t.Errorf("asked %d times", v.calls.Load()-before)
		}
		write(t, path, wrapped(t, bad.ID(), bad.Reveal(), others...))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if seals(f) != bad.ID() {
			t.Error("it does not recover")
		}
	})
}

// TestUnwrapperGetsHalfAMinute checks that an unwrapper that waits for an answer is told to stop,
// after half a minute or when the source is closed. The keys in use stay usable.
func TestUnwrapperGetsHalfAMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good, a := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, wrapped(t, good.ID(), good.Reveal()))
		v := new(vault)
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}, Every: 2 * time.Second})
		v.hangs = true
		write(t, path, wrapped(t, a.ID(), a.Reveal(), good))
		time.Sleep(33 * time.Second)
		said, _ := l.take()
		if !strings.Contains(said, "cannot be unwrapped") || seals(f) != good.ID() {
			t.Errorf("%s seals, said %s", seals(f), said)
		}
		time.Sleep(time.Minute) // until the next try
		start := time.Now()
		f.Close()
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("Close took %v", waited)
		}
		if said, _ := l.take(); said != "" {
			t.Errorf("at the end it said %s", said)
		}
	})
}

// TestReadableSecretIsRefusedWhereSecretsAreWrapped checks that somebody who can write the file, but
// cannot encrypt, cannot put in a key of their own.
func TestReadableSecretIsRefusedWhereSecretsAreWrapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good, mallory := tripseal.GenerateKey(), tripseal.GenerateKey()
	write(t, path, wrapped(t, good.ID(), good.Reveal()))
	options := keys.Options{Unwrap: []keys.Unwrapper{new(vault)}}
	f, _ := open(t, path, options)
	d, err := keyfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	d.Add(&keyfile.Key{ID: mallory.ID(), Made: time.Now(), SealsFrom: time.Now().Add(time.Second), Secret: keyfile.Plain(mallory)})
	for name, file := range map[string][]byte{"added": d.Bytes(), "instead": text(t, one(mallory))} {
		write(t, path, file)
		if err := f.Reload(); err == nil || !strings.Contains(err.Error(), mallory.ID().String()+": its secret is not encrypted") || opens(f, mallory) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := keys.OpenFile(path, &options); err == nil {
			t.Errorf("%s: loaded at start", name)
		}
	}
}

func TestKeysThatAreOverNeedNotBeUnwrapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a := tripseal.GenerateKey()
	now := time.Now().Truncate(time.Second)
	var d keyfile.Document
	for _, k := range []*keyfile.Key{
		{ID: tripseal.KeyID{1}, Made: now, SealsFrom: now.Add(-100 * time.Hour), OpensUntil: now.Add(-time.Hour), Secret: keyfile.Wrap("gone", []byte("x"))},
		{ID: a.ID(), Made: now, SealsFrom: now.Add(-50 * time.Hour), Secret: keyfile.Plain(a)},
	} {
		d.Add(k)
	}
	write(t, path, d.Bytes())
	f, _ := open(t, path, keys.Options{})
	if seals(f) != a.ID() {
		t.Error("another key seals")
	}
}

func TestUnwrapperThatFails(t *testing.T) {
	a, b, good := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	for name, c := range map[string]struct {
		file  []byte
		fails func() error
		want  string
	}{
		"error":       {wrapped(t, a.ID(), a.Reveal(), good), func() error { return errors.New("sesame " + a.Reveal()) }, "cannot be unwrapped: error of type *errors.errorString"},
		"panic":       {wrapped(t, a.ID(), a.Reveal(), good), func() error { panic("sesame") }, "cannot be unwrapped: panic of type string"},
		"other key":   {wrapped(t, a.ID(), b.Reveal(), good), nil, "the secret is that of another key"},
		"not a key":   {wrapped(t, a.ID(), "sesame", good), nil, "what was wrapped is not the text of a key"},
		"two lines":   {wrapped(t, a.ID(), a.Reveal()+"\n"+b.Reveal(), good), nil, "what was wrapped is not the text of a key"},
		"nobody":      {bytes.ReplaceAll(wrapped(t, a.ID(), a.Reveal(), good), []byte("vault:"), []byte("kms:")), nil, "wrapped with kms, and nothing was given to unwrap it"},
		"not in time": {wrapped(t, a.ID(), a.Reveal(), good), func() error { return context.DeadlineExceeded }, "context deadline exceeded"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		write(t, path, wrapped(t, good.ID(), good.Reveal()))
		v := new(vault)
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}})
		v.fails = c.fails
		write(t, path, c.file)
		err := f.Reload()
		if err == nil || !strings.Contains(err.Error(), c.want) || seals(f) != good.ID() {
			t.Errorf("%s: %v", name, err)
		}
		said, _ := l.take()
		if strings.Contains(said, "sesame") || strings.Contains(said, a.Reveal()[20:30]) || !strings.Contains(said, "cannot be used") {
			t.Errorf("%s: %s", name, said)
		}
	}
}
