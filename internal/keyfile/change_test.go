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

// TestExtendMakesRoomForLongerTokens extends keys for tokens that live longer. Extend also changes a
// key that has already expired, if its tokens may still be valid.
func TestExtendMakesRoomForLongerTokens(t *testing.T) {
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
		d.Extend(at(c.now), long)
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

func TestPruneTakesOutOnlyWhatIsOver(t *testing.T) {
	d := schedule(t, [2]int{0, 72}, [2]int{60, 172}, [2]int{160, -1})
	ids := d.Schedule()
	for _, c := range []struct{ now, keys, left int }{
		{72, 0, 3}, // a replica whose clock is two minutes behind still opens tokens with the first key
		{73, 0, 3},
		{74, 1, 2},
		{172, 0, 2},
		{10000, 1, 1},
	} {
		if keys, revoked := d.Prune(at(c.now)); keys != c.keys || revoked != 0 || len(d.Keys()) != c.left {
			t.Errorf("at %d: %d keys and %d revocations, %d left", c.now, keys, revoked, len(d.Keys()))
		}
	}
	if d.Find(ids[2].ID) == nil {
		t.Error("the key that seals is gone")
	}
}

// TestEndsOfSealingAreTheEarliest compares the results for random keys with a simple calculation.
// Usually a key K stops sealing when the next key N begins to seal. But a key that was revoked
// later may have begun between K and N, and may still have been valid when N began. Then K stopped
// when the first such key began.
func TestEndsOfSealingAreTheEarliest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		d := new(keyfile.Document)
		for i := range 12 {
			from := at(random.IntN(40)*10 + i%10) // the check below skips a date that another key has
			k := &keyfile.Key{ID: tripseal.KeyID{byte(i)}, Made: noon, SealsFrom: from, Secret: keyfile.Wrap("x", []byte("x"))}
			if d.Find(k.ID) == nil && !sealsAt(d, from) {
				if err := d.Add(k); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, k := range d.Keys() {
			if random.IntN(2) == 0 && len(d.Keys()) > 2 {
				d.Revoke(k.ID, at(random.IntN(400)))
			}
		}
		s := d.Schedule()
		for i, got := range keyfile.EndsOfSealing(d) {
			want := s[i+1].SealsFrom
			for _, r := range d.Revoked() {
				if s[i].SealsFrom.Before(r.SealsFrom) && r.SealsFrom.Before(want) && !r.At.Before(s[i+1].SealsFrom) {
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
