package keys_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
	"github.com/mcpseal/mcpseal/keys"
)

// vault is a key service that is easy to break.
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

// wrapped is a file whose secrets are with the vault, under the ids given.
func wrapped(t *testing.T, id mcpseal.KeyID, plaintext string, others ...mcpseal.Key) []byte {
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
	a, b, c := mcpseal.GenerateKey(), mcpseal.GenerateKey(), mcpseal.GenerateKey()
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
	// Only what is new is unwrapped, so that the service may be away otherwise.
	write(t, path, wrapped(t, c.ID(), c.Reveal(), b))
	if err := f.Reload(); err != nil || v.calls.Load() != 3 || seals(f) != c.ID() {
		t.Errorf("unwrapped %d times, %v", v.calls.Load(), err)
	}
	v.fails = func() error { return errors.New("away") }
	write(t, path, wrapped(t, b.ID(), b.Reveal(), c))
	if err := f.Reload(); err != nil || seals(f) != b.ID() {
		t.Errorf("known secrets need the service: %v", err)
	}
	// What left the file is forgotten.
	write(t, path, wrapped(t, a.ID(), a.Reveal()))
	if err := f.Reload(); err == nil || seals(f) != b.ID() {
		t.Error("a secret that left the file is still remembered")
	}
}

func TestUnwrapperThatFails(t *testing.T) {
	a, b := mcpseal.GenerateKey(), mcpseal.GenerateKey()
	for name, c := range map[string]struct {
		file  []byte
		fails func() error
		want  string
	}{
		"error":       {wrapped(t, a.ID(), a.Reveal()), func() error { return errors.New("sesame " + a.Reveal()) }, "cannot be unwrapped: error of type *errors.errorString"},
		"panic":       {wrapped(t, a.ID(), a.Reveal()), func() error { panic("sesame") }, "cannot be unwrapped: panic of type string"},
		"other key":   {wrapped(t, a.ID(), b.Reveal()), nil, "the secret is that of another key"},
		"not a key":   {wrapped(t, a.ID(), "sesame"), nil, "what was wrapped is not the text of a key"},
		"two lines":   {wrapped(t, a.ID(), a.Reveal()+"\n"+b.Reveal()), nil, "what was wrapped is not the text of a key"},
		"nobody":      {bytes.ReplaceAll(wrapped(t, a.ID(), a.Reveal()), []byte("vault:"), []byte("kms:")), nil, "wrapped with kms, and nothing was given that unwraps that"},
		"not in time": {wrapped(t, a.ID(), a.Reveal()), func() error { return context.DeadlineExceeded }, "context deadline exceeded"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		good := mcpseal.GenerateKey()
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
