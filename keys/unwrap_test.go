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
}

func (*vault) Scheme() string { return "vault" }

func (v *vault) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	v.calls.Add(1)
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
	if err := d.Add(&keyfile.Key{ID: id, Made: now, SealsFrom: now, Secret: keyfile.Wrap("vault", flip([]byte(plaintext)))}); err != nil {
		t.Fatal(err)
	}
	for i, k := range others {
		secret := keyfile.Wrap("vault", flip([]byte(k.Reveal())))
		if err := d.Add(&keyfile.Key{ID: k.ID(), Made: now, SealsFrom: now.Add(-time.Duration(i+1) * time.Hour), Secret: secret}); err != nil {
			t.Fatal(err)
		}
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

// TestFailingUnwrapperIsNotAskedAllTheTime checks that the pauses between the tries get longer if
// a secret cannot be unwrapped. A new try must not unwrap the good secrets again.
func TestFailingUnwrapperIsNotAskedAllTheTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good := tripseal.GenerateKey()
	others := make([]tripseal.Key, 10)
	for i := range others {
		others[i] = tripseal.GenerateKey()
	}
	bad := tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour) // the clock of synctest starts in 2000; without this sleep, some keys would have a date in 1999, which is refused
		write(t, path, text(t, one(good)))
		v := new(vault)
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}, Every: 2 * time.Second})
		defer f.Close()
		l.take()
		// Keys are unwrapped in the order in which they seal. The bad key is the newest, so it is
		// the last.
		others = append(others, good)
		write(t, path, wrapped(t, bad.ID(), "sesame", others...))
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if n := v.calls.Load(); n > 11+20 {
			t.Errorf("asked %d times in eleven minutes", n)
		}
		if said, _ := l.take(); strings.Count(said, "cannot be used") != 2 {
			t.Errorf("said %s", said)
		}
		// Reload tries again at once. A file that has changed is also tried at once.
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

// TestUnwrapperThatHangs checks that the keys in use stay usable while an unwrapper hangs. Until
// the unwrapper returns, it must not be called again.
func TestUnwrapperThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good, a := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, one(good)))
		release := make(chan struct{})
		v := &vault{fails: func() error { <-release; return nil }}
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}, Every: 2 * time.Second})
		write(t, path, wrapped(t, a.ID(), a.Reveal(), good))
		time.Sleep(10 * time.Minute)
		if n := v.calls.Load(); n != 1 || seals(f) != good.ID() {
			t.Errorf("asked %d times, %s seals", n, seals(f))
		}
		if err := f.Outlast(time.Minute); err != nil {
			t.Error(err)
		}
		said, _ := l.take()
		if !strings.Contains(said, "not unwrapped in time") || !strings.Contains(said, "has not returned") {
			t.Errorf("said %s", said)
		}
		close(release)
		time.Sleep(2 * time.Minute)
		if seals(f) != a.ID() {
			t.Error("it does not recover")
		}
		f.Close()
	})
}

func TestCloseEndsUnwrapping(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good, a := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, one(good)))
		release := make(chan struct{})
		defer close(release)
		v := &vault{fails: func() error { <-release; return nil }}
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{v}, Every: 2 * time.Second})
		write(t, path, wrapped(t, a.ID(), a.Reveal(), good))
		time.Sleep(3 * time.Second)
		l.take()
		start := time.Now()
		f.Close()
		if waited := time.Since(start); waited > time.Second {
			t.Errorf("Close took %v", waited)
		}
		if said, events := l.take(); said != "" || len(events) > 0 {
			t.Errorf("at the end it said %s", said)
		}
	})
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
		if err := d.Add(k); err != nil {
			t.Fatal(err)
		}
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
		write(t, path, text(t, one(good)))
		f, l := open(t, path, keys.Options{Unwrap: []keys.Unwrapper{&vault{fails: c.fails}}})
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
