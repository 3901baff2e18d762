package otelseal_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
)

func TestGaugesOfKeysReportTheLastEvent(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	if got := m.collect(t).values; len(got) != 0 {
		t.Errorf("without keys: %v", got)
	}
	next := time.Now().Add(30 * 24 * time.Hour)
	first, second := tripseal.KeyID{1}, tripseal.KeyID{2}
	o.ObserveKeys(keys.Event{Path: "keys", Seals: first, Opens: []tripseal.KeyID{first, second}, Next: next})
	for range 3 { // the gauges can be read at any time, and more than once
		got := m.collect(t).values
		if got["tripseal.keys.opening"] != 2 || got["tripseal.keys.next_change.timestamp"] != next.Unix() || got["tripseal.keys.sealing_since.timestamp"] == 0 {
			t.Errorf("%v", got)
		}
		if unusable, ok := got["tripseal.keys.unusable"]; !ok || unusable != 0 {
			t.Errorf("%v", got)
		}
	}
	o.ObserveKeys(keys.Event{Path: "keys", Err: errors.New("a secret"), Seals: first, Opens: []tripseal.KeyID{first, second}, Next: next})
	if got := m.collect(t).values; got["tripseal.keys.unusable"] != 1 || got["tripseal.keys.opening"] != 2 {
		t.Errorf("unusable: %v", got)
	}
	o.ObserveKeys(keys.Event{Path: "keys", Seals: second, Opens: []tripseal.KeyID{second}})
	got := m.collect(t).values
	if _, ok := got["tripseal.keys.next_change.timestamp"]; ok || got["tripseal.keys.unusable"] != 0 || got["tripseal.keys.opening"] != 1 {
		t.Errorf("nothing follows: %v", got)
	}
}

func TestTheSealingDateChangesOnlyWithTheSealingKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, m := newObserver(t, otelseal.Config{})
		start := time.Now().Unix()
		for hours, seals := range []byte{1, 1, 2, 2} {
			o.ObserveKeys(keys.Event{Path: "keys", Seals: tripseal.KeyID{seals}})
			if got, want := m.collect(t).values["tripseal.keys.sealing_since.timestamp"]-start, int64(seals-1)*2*3600; got != want {
				t.Errorf("after %d hours: %d seconds after the start, not %d", hours, got, want)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestSeveralFilesAreReportedTogether(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	soon, late := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	o.ObserveKeys(keys.Event{Path: "a", Err: errors.New("gone"), Opens: make([]tripseal.KeyID, 2), Next: late})
	o.ObserveKeys(keys.Event{Path: "b", Opens: make([]tripseal.KeyID, 3), Next: soon})
	o.ObserveKeys(keys.Event{Path: "c", Opens: make([]tripseal.KeyID, 1)})
	for range 50 { // the files are in random order
		got := m.collect(t).values
		if got["tripseal.keys.opening"] != 6 || got["tripseal.keys.unusable"] != 1 || got["tripseal.keys.next_change.timestamp"] != soon.Unix() {
			t.Fatalf("%v", got)
		}
	}
}

func TestLateAndRevokedKeysAreCounted(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	o.ObserveKeys(keys.Event{Path: "keys"})
	for _, name := range []string{"tripseal.keys.late", "tripseal.keys.revoked"} {
		if len(m.of(name)) != 1 {
			t.Errorf("%s is not there before the first key", name)
		}
	}
	o.ObserveKeys(keys.Event{Path: "keys", Late: make([]tripseal.KeyID, 2), Removed: make([]tripseal.KeyID, 1)})
	if m.sum("tripseal.keys.late") != 2 || m.sum("tripseal.keys.revoked") != 1 {
		t.Errorf("%v late, %v revoked", m.sum("tripseal.keys.late"), m.sum("tripseal.keys.revoked"))
	}
}

// TestAFileOfKeysIsObserved checks that the gauges need only the event that keys.OpenFile reports.
func TestAFileOfKeysIsObserved(t *testing.T) {
	now := time.Now()
	takesOver := now.Add(24 * time.Hour)
	first, second := tripseal.GenerateKey(), tripseal.GenerateKey()
	text := "tripseal-keys 1\n" + line(first, now.Add(-time.Hour), takesOver.Add(2*time.Hour).UTC().Format(time.RFC3339)) + line(second, takesOver, "never") + "end\n"
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, m := newObserver(t, otelseal.Config{})
	source, err := keys.OpenFile(path, &keys.Options{Observer: o.ObserveKeys, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	got := m.collect(t).values
	if got["tripseal.keys.opening"] != 2 || got["tripseal.keys.sealing_since.timestamp"] < now.Unix() || got["tripseal.keys.next_change.timestamp"] != takesOver.Unix() {
		t.Errorf("%v", got)
	}
}

func line(key tripseal.Key, sealsFrom time.Time, opensUntil string) string {
	from := sealsFrom.UTC().Format(time.RFC3339)
	return fmt.Sprintf("key %s made=%s seals-from=%s opens-until=%s secret=%s\n", key.ID(), from, from, opensUntil, key.Reveal())
}
