package keyfile_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func TestFileRemembersTheLongestLifetime(t *testing.T) {
	d := schedule(t, [2]int{0, -1})
	if d.Room() != (keyfile.Room{}) {
		t.Errorf("a file that says nothing says %v", d.Room())
	}
	for _, c := range []struct{ raise, want keyfile.Room }{
		{keyfile.Room{TTL: 2 * time.Hour}, keyfile.Room{TTL: 2 * time.Hour}},
		{keyfile.Room{TTL: time.Hour, Skew: 2 * time.Minute}, keyfile.Room{TTL: 2 * time.Hour, Skew: 2 * time.Minute}},
		{keyfile.Room{TTL: 3 * time.Hour, Skew: time.Minute}, keyfile.Room{TTL: 3 * time.Hour, Skew: 2 * time.Minute}},
	} {
		d.Raise(c.raise)
		again, err := keyfile.Parse(d.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d.Room() != c.want || again.Room() != c.want {
			t.Errorf("raised to %v it says %v, then %v", c.raise, d.Room(), again.Room())
		}
	}
}

// TestLongerTokensGetRoom makes room for tokens that live longer. That also changes a
// key that has already expired, if its tokens may still be valid.
func TestLongerTokensGetRoom(t *testing.T) {
	long := keyfile.Room{TTL: 2 * time.Hour, Skew: time.Minute}
	for _, c := range []struct {
		name string
		keys [][2]int
		now  int
		want []int // until which minute each key opens; -1 means that it never expires
	}{
		{"while it opens", [][2]int{{0, 72}, {60, -1}}, 65, []int{182, -1}},
		{"when it is over", [][2]int{{0, 72}, {60, -1}}, 100, []int{182, -1}},
		{"not when no token can be left", [][2]int{{0, 72}, {60, -1}}, 182, []int{72, -1}},
		{"not what is long enough", [][2]int{{0, 300}, {60, -1}}, 65, []int{300, -1}},
		{"the last one", [][2]int{{0, 182}, {60, 100}}, 65, []int{182, -1}},
	} {
		d := schedule(t, c.keys...)
		keyfile.MakeRoom(d, at(c.now), long)
		for i, k := range d.Schedule() {
			if want := at(c.want[i]); c.want[i] >= 0 && !k.OpensUntil.Equal(want) || c.want[i] < 0 && !k.OpensUntil.IsZero() {
				t.Errorf("%s: key %d opens until %v", c.name, i, k.OpensUntil)
			}
		}
		if err := d.Check(at(c.now), long); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestRotateLengthensWhatOpens rotates keys for tokens that live longer. Any key in the file may
// seal such tokens, so each key must open tokens for longer.
func TestRotateLengthensWhatOpens(t *testing.T) {
	d := schedule(t, [2]int{0, 72}, [2]int{60, -1})
	key := tripseal.GenerateKey()
	next := &keyfile.Key{ID: key.ID(), Made: at(65), SealsFrom: at(100), Secret: keyfile.Plain(key)}
	if err := d.Rotate(next, at(65), keyfile.Room{TTL: 2 * time.Hour, Skew: time.Minute}); err != nil {
		t.Fatal(err)
	}
	s := d.Schedule()
	if !s[0].OpensUntil.Equal(at(182)) || !s[1].OpensUntil.Equal(at(222)) || !s[2].OpensUntil.IsZero() {
		t.Errorf("they open until %v, %v, %v", s[0].OpensUntil, s[1].OpensUntil, s[2].OpensUntil)
	}
}

// TestRotationThatWouldComeToNothingIsRefused rotates with a clock that is behind. The new key would
// be older than the key that seals, so it would never seal.
func TestRotationThatWouldComeToNothingIsRefused(t *testing.T) {
	d := schedule(t, [2]int{0, -1})
	before := d.Bytes()
	key := tripseal.GenerateKey()
	next := &keyfile.Key{ID: key.ID(), Made: at(-120), SealsFrom: at(-60), Secret: keyfile.Plain(key)}
	if err := d.Rotate(next, at(-120), room); err == nil || !strings.Contains(err.Error(), "is the clock of this machine right?") {
		t.Error(err)
	}
	if !bytes.Equal(before, d.Bytes()) {
		t.Error("the file changed")
	}
}

func TestRotationTakesOutKeysThatAreLongOver(t *testing.T) {
	const month = 30 * 24 * 60
	for now, left := range map[int]int{171: 4, 72 + month - 1: 4, 72 + month: 3, 172 + month: 2} {
		d := schedule(t, [2]int{0, 72}, [2]int{60, 172}, [2]int{160, -1})
		key := tripseal.GenerateKey()
		next := &keyfile.Key{ID: key.ID(), Made: at(now), SealsFrom: at(now + 60), Secret: keyfile.Plain(key)}
		if err := d.Rotate(next, at(now), room); err != nil || len(d.Keys()) != left || d.Find(key.ID()) == nil {
			t.Errorf("at %d: %d keys left, want %d; %v", now, len(d.Keys()), left, err)
		}
	}
}

// TestRevocationStaysForGood rotates for years after a revocation.
func TestRevocationStaysForGood(t *testing.T) {
	d := schedule(t, [2]int{0, 72}, [2]int{60, -1})
	gone := d.Schedule()[0].ID
	d.Revoke(gone, at(65), room)
	for day := range 1000 {
		key, now := tripseal.GenerateKey(), at((day+1)*24*60)
		if err := d.Rotate(&keyfile.Key{ID: key.ID(), Made: now, SealsFrom: now.Add(time.Hour), Secret: keyfile.Plain(key)}, now, room); err != nil {
			t.Fatal(err)
		}
	}
	if r := d.Revoked(); len(r) != 1 || r[0].ID != gone {
		t.Errorf("revoked %v", r)
	}
	if n := len(d.Keys()); n > 40 {
		t.Errorf("%d keys after a thousand rotations", n)
	}
}

// TestEndsOfSealingAreTheEarliest compares the results for random keys with a simple calculation. A
// key stops sealing when the next key begins to seal, even if that key was revoked later, but not
// if it was revoked before it began.
func TestEndsOfSealingAreTheEarliest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		d := new(keyfile.Document)
		for i := range 12 {
			from := at(random.IntN(40)*10 + i%10) // the check below skips a date that another key has
			k := &keyfile.Key{ID: tripseal.KeyID{byte(i)}, Made: noon, SealsFrom: from, Secret: keyfile.Wrap("x", []byte("x"))}
			if !sealsAt(d, from) {
				d.Add(k)
			}
		}
		for _, k := range d.Keys() {
			if random.IntN(2) == 0 && len(d.Keys()) > 2 {
				d.Revoke(k.ID, at(random.IntN(400)), keyfile.Room{})
			}
		}
		s := d.Schedule()
		for i, got := range keyfile.EndsOfSealing(d) {
			want := s[i+1].SealsFrom
			for _, r := range d.Revoked() {
				if s[i].SealsFrom.Before(r.SealsFrom) && r.SealsFrom.Before(want) && r.SealsFrom.Before(r.At) {
					want = r.SealsFrom
				}
			}
			if !got.Equal(want) {
				t.Fatalf("%v, want %v:\n%s", got, want, d.Bytes())
			}
		}
	}
}

func sealsAt(d *keyfile.Document, from time.Time) bool {
	for _, k := range d.Keys() {
		if k.SealsFrom.Equal(from) {
			return true
		}
	}
	return false
}
