package keys

import (
	"context"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// TestPhaseEndsBothWays checks that a ring is valid only between two times. The earlier of them
// matters because the clock may be set back.
func TestPhaseEndsBothWays(t *testing.T) {
	noon := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	var d keyfile.Document
	for _, k := range []*keyfile.Key{
		{ID: a.ID(), SealsFrom: noon, OpensUntil: noon.Add(3 * time.Hour), Secret: keyfile.Plain(a)},
		{ID: b.ID(), SealsFrom: noon.Add(time.Hour), Secret: keyfile.Plain(b)},
	} {
		d.Add(k)
	}
	s := &schedule{document: &d, keys: d.Schedule(), secrets: map[tripseal.KeyID]tripseal.Key{a.ID(): a, b.ID(): b}}
	p := s.ringAt(noon.Add(90 * time.Minute))
	for at, want := range map[time.Duration]bool{
		0: false, time.Hour - 1: false, time.Hour: true, 2 * time.Hour: true, 3*time.Hour - 1: true, 3 * time.Hour: false,
	} {
		if got := p.covers(noon.Add(at)); got != want {
			t.Errorf("%v after noon: %v", at, got)
		}
	}
	// A wrapped secret is not unwrapped if its key had expired when the file was loaded. The ring
	// must leave out a key without a secret.
	delete(s.secrets, a.ID())
	if ids := s.ringAt(noon.Add(2 * time.Hour)).ring.IDs(); len(ids) != 1 || ids[0] != b.ID() {
		t.Errorf("ids %v", ids)
	}
}

// echo is an unwrapper that returns the wrapped bytes as they are.
type echo struct{}

func (echo) Scheme() string { return "echo" }

func (echo) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) { return wrapped, nil }

func TestSecretsThatLeftTheFileAreForgotten(t *testing.T) {
	var u unwraps
	if err := u.use([]Unwrapper{echo{}}); err != nil {
		t.Fatal(err)
	}
	var all []*keyfile.Key
	for range 3 {
		key := tripseal.GenerateKey()
		all = append(all, &keyfile.Key{ID: key.ID(), Secret: keyfile.Wrap("echo", []byte(key.Reveal()))})
	}
	for _, keys := range [][]*keyfile.Key{all[:2], all[1:]} {
		if _, err := u.secrets(t.Context(), keys, time.Now(), false); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range all {
		if _, known := u.known[k.Secret]; known != (i > 0) {
			t.Errorf("key %d: known %v", i, known)
		}
	}
}
