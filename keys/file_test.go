package keys_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/sealtest"
)

// dated is a key with its dates, which count from now. The key does not expire if opensFor has the
// value never.
type dated struct {
	tripseal.Key
	sealsIn, opensFor time.Duration
}

const never = time.Duration(-1)

// text returns the text of a file with these keys.
func text(t testing.TB, all ...dated) []byte {
	t.Helper()
	now := time.Now().Truncate(time.Second) // whole seconds, so that every date has the same length
	var d keyfile.Document
	for _, k := range all {
		key := &keyfile.Key{ID: k.ID(), Made: now, SealsFrom: now.Add(k.sealsIn), Secret: keyfile.Plain(k.Key)}
		if k.opensFor != never {
			key.OpensUntil = now.Add(k.opensFor)
		}
		d.Add(key)
	}
	return d.Bytes()
}

func one(key tripseal.Key) dated { return dated{key, 0, never} }

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// diary collects the log of a source, and the events that it reports.
type diary struct {
	mu     sync.Mutex
	text   bytes.Buffer
	events []keys.Event
}

func (l *diary) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *diary) observe(e keys.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// take returns the log and the events since the last call of take.
func (l *diary) take() (string, []keys.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, events := l.text.String(), l.events
	l.text.Reset()
	l.events = nil
	return text, events
}

// open opens a file of keys. Unless options.Every is set, the source checks the file only once an
// hour, so that a test can decide with Reload when the file is read.
func open(t testing.TB, path string, options keys.Options) (*keys.File, *diary) {
	t.Helper()
	l := new(diary)
	options.Logger, options.Observer = slog.New(slog.NewTextHandler(l, nil)), l.observe
	if options.Every == 0 {
		options.Every = time.Hour
	}
	f, err := keys.OpenFile(path, &options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, l
}

// revoked returns the text of a file in which the keys with these ids were revoked.
func revoked(t testing.TB, text []byte, ids ...tripseal.KeyID) []byte {
	t.Helper()
	d, err := keyfile.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		d.Revoke(id, time.Now(), keyfile.Room{})
	}
	return d.Bytes()
}

// opens reports whether f would open a token of this key.
func opens(f *keys.File, key tripseal.Key) bool { return slices.Contains(f.Ring().IDs(), key.ID()) }

func seals(f *keys.File) tripseal.KeyID { return f.Ring().IDs()[0] }

func TestFileIsAKeySource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, text(t, one(tripseal.GenerateKey())))
	f, _ := open(t, path, keys.Options{})
	sealtest.TestKeySource(t, f)
}

func TestOneFileRotatesByTheClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		const span = 12 * time.Minute
		write(t, path, text(t, dated{a, 0, time.Hour + span}, dated{b, time.Hour, never}))
		f, l := open(t, path, keys.Options{LongestTTL: 10 * time.Minute, Every: time.Minute})
		for _, c := range []struct {
			after time.Duration
			want  []tripseal.KeyID
		}{
			{0, []tripseal.KeyID{a.ID(), b.ID()}},
			{time.Hour - time.Millisecond, []tripseal.KeyID{a.ID(), b.ID()}},
			{time.Millisecond, []tripseal.KeyID{b.ID(), a.ID()}},
			{span - time.Millisecond, []tripseal.KeyID{b.ID(), a.ID()}},
			{time.Millisecond, []tripseal.KeyID{b.ID()}},
			{1000 * time.Hour, []tripseal.KeyID{b.ID()}},
		} {
			time.Sleep(c.after)
			if got := f.Ring().IDs(); !slices.Equal(got, c.want) {
				t.Errorf("%v later: %v, want %v", c.after, got, c.want)
			}
		}
		synctest.Wait()
		said, events := l.take()
		if len(events) != 3 || events[0].Seals != a.ID() || events[1].Seals != b.ID() || len(events[1].Opens) != 2 || len(events[2].Opens) != 1 {
			t.Errorf("events %+v", events)
		}
		if events[0].Next.IsZero() || !events[2].Next.IsZero() || strings.Count(said, "keys: in use") != 3 {
			t.Errorf("said %s", said)
		}
		f.Close()
	})
}

func TestKeyPastItsTimeStopsOpeningWhileTheFileIsBroken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	oldRing, err := tripseal.NewRing(a)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	logger := slog.New(slog.DiscardHandler)
	minter, err := tripseal.New(tripseal.Config{Keys: oldRing, Audience: "test", TTL: 100 * time.Hour, MaxFlow: tripseal.NoLimit, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	request := tripseal.Request{Method: "tools/call", Target: "deploy"}
	synctest.Test(t, func(t *testing.T) {
		write(t, path, text(t, dated{a, 0, 2*time.Hour + 2*time.Minute}, dated{b, time.Hour, never}))
		f, l := open(t, path, keys.Options{Every: time.Second})
		defer f.Close()
		boundary, err := tripseal.New(tripseal.Config{Keys: f, Audience: "test", MaxFlow: tripseal.NoLimit, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		round, _ := minter.Open(ctx, request, "")
		token, err := minter.Seal(ctx, &round, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, []byte("tripseal-keys 1\n"))
		time.Sleep(2*time.Hour + 2*time.Minute - time.Millisecond)
		if _, err := boundary.Open(ctx, request, token); err != nil {
			t.Fatalf("before its time: %v", err)
		}
		time.Sleep(time.Millisecond)
		var rejected *tripseal.RejectError
		if _, err := boundary.Open(ctx, request, token); !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonUnknownKey {
			t.Errorf("past its time: %v", err)
		}
		if _, err := boundary.Seal(ctx, &round, nil); err == nil {
			t.Error("a round of another boundary")
		}
		round, _ = boundary.Open(ctx, request, "")
		if _, err := boundary.Seal(ctx, &round, nil); err != nil {
			t.Errorf("it no longer seals: %v", err)
		}
		// The failure is logged at once, and again every ten minutes.
		said, events := l.take()
		if n := strings.Count(said, "cannot be used"); n != 13 {
			t.Errorf("said %d times in two hours:\n%s", n, said)
		}
		if last := events[len(events)-1]; last.Err == nil || last.Seals != b.ID() {
			t.Errorf("the last event is %+v", last)
		}
	})
}

func TestScheduleMustOutlastTheTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	write(t, path, text(t, dated{a, 0, time.Hour + time.Hour + 2*time.Minute}, dated{b, time.Hour, never}))
	f, _ := open(t, path, keys.Options{})
	config := tripseal.Config{Keys: f, Audience: "test", Logger: sealtest.Logger(t)}
	if _, err := tripseal.New(config); err != nil {
		t.Fatal(err)
	}
	if err := f.Outlast(time.Minute); err != nil { // no change: LongestTTL is one hour by default
		t.Error(err)
	}
	config.URLTTL = 24 * time.Hour
	if _, err := tripseal.New(config); err == nil || !strings.Contains(err.Error(), "tokens live for 24h0m0s") {
		t.Errorf("a boundary whose tokens live longer than their key: %v", err)
	}
	if _, err := keys.OpenFile(path, &keys.Options{LongestTTL: 2 * time.Hour, Logger: sealtest.Logger(t)}); err == nil {
		t.Error("a file that lets a key go too early")
	}
	// tripseal.New refuses this boundary because of AlsoOpen, so the boundary's TTL does not count.
	broken := config
	broken.AlsoOpen = []tripseal.Accepted{{}}
	open := text(t, dated{a, 0, never}, dated{b, time.Hour, never})
	write(t, path, open)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := tripseal.New(broken); err == nil {
		t.Error("a format that is nil")
	}
	write(t, path, text(t, dated{a, 0, time.Hour + time.Hour + 2*time.Minute}, dated{b, time.Hour, never}))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	write(t, path, text(t, dated{a, 0, time.Hour + time.Hour + time.Minute}, dated{b, time.Hour, never}))
	if err := f.Reload(); err == nil {
		t.Error("less than the hour that it makes room for anyway")
	}
	// Once tripseal.New has succeeded, the boundary's TTL counts for every new file.
	write(t, path, open)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := tripseal.New(config); err != nil {
		t.Fatal(err)
	}
	write(t, path, text(t, dated{a, 0, time.Hour + time.Hour + 2*time.Minute}, dated{b, time.Hour, never}))
	if err := f.Reload(); err == nil || seals(f) != a.ID() {
		t.Errorf("error %v, keys %v", err, f.Ring().IDs())
	}
}

func TestRevokedKeysOpenNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	both := text(t, dated{a, 0, never}, dated{b, -time.Hour, never})
	write(t, path, both)
	f, l := open(t, path, keys.Options{})
	boundary, err := tripseal.New(tripseal.Config{Keys: f, Audience: "test", Logger: sealtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy"}
	round, _ := boundary.Open(ctx, request, "")
	token, err := boundary.Seal(ctx, &round, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boundary.Open(ctx, request, token); err != nil {
		t.Fatal(err)
	}
	l.take()
	write(t, path, revoked(t, both, a.ID()))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := boundary.Open(ctx, request, token); !errors.Is(err, tripseal.ErrRejected) {
		t.Errorf("a revoked key opens: %v", err)
	}
	said, events := l.take()
	if len(events) != 1 || !slices.Equal(events[0].Removed, []tripseal.KeyID{a.ID()}) || !strings.Contains(said, "keys left the file") {
		t.Errorf("%+v\n%s", events, said)
	}
}

func TestFileThatOthersCanReadIsWarnedAbout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, text(t, one(tripseal.GenerateKey())))
	f, l := open(t, path, keys.Options{})
	if said, _ := l.take(); strings.Contains(said, "chmod") {
		t.Errorf("mode 0600: %s", said)
	}
	for mode, warned := range map[os.FileMode]bool{0o644: true, 0o640: false, 0o620: true, 0o602: true, 0o604: true, 0o400: false, 0o440: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := f.Reload(); err != nil {
				t.Fatal(err)
			}
		}
		said, _ := l.take()
		if n := strings.Count(said, "chmod 600"); n != map[bool]int{true: 1}[warned] {
			t.Errorf("mode %o: warned %d times: %s", mode, n, said)
		}
		os.Chmod(path, 0o600)
		f.Reload()
		l.take()
	}
}

func TestNothingSecretIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	key := tripseal.GenerateKey()
	good := text(t, one(key))
	write(t, path, good)
	f, l := open(t, path, keys.Options{})
	l.take()
	secret := key.Reveal()
	for _, bad := range []string{
		"tripseal-keys 1\n" + secret + "\nend\n",
		strings.Replace(string(good), "secret=", "secret=x", 1),
		strings.Replace(string(good), "secret=", "secret ", 1),
		strings.Replace(string(good), secret, secret[:len(secret)-1], 1),
		strings.Replace(string(good), secret, secret+","+secret, 1),
		strings.Replace(string(good), "secret=", "secret=age:", 1),
		secret,
	} {
		write(t, path, []byte(bad))
		err := f.Reload()
		said, events := l.take()
		if err == nil || len(events) != 1 {
			t.Fatalf("error %v, events %+v", err, events)
		}
		for _, text := range []string{err.Error(), said, events[0].Err.Error()} {
			if strings.Contains(text, secret[20:30]) {
				t.Errorf("the secret is in %s", text)
			}
		}
	}
}

func TestCloseStopsFollowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a := tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		write(t, path, text(t, one(a)))
		f, l := open(t, path, keys.Options{Every: time.Second})
		f.Close()
		f.Close()
		l.take()
		os.Remove(path)
		time.Sleep(time.Hour)
		if said, _ := l.take(); said != "" || seals(f) != a.ID() {
			t.Errorf("after Close: %s", said)
		}
	})
}

// TestTheFileSaysEverything loads files that differ from the one before in every way. A process
// remembers nothing of an earlier file.
func TestTheFileSaysEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b, c := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	both := text(t, dated{a, -time.Hour, never}, one(b))
	write(t, path, both)
	f, l := open(t, path, keys.Options{})
	for _, step := range []struct {
		file          []byte
		opens, closed []tripseal.Key
	}{
		{revoked(t, both, a.ID()), []tripseal.Key{b}, []tripseal.Key{a}},
		{both, []tripseal.Key{b, a}, nil}, // an older copy
		{text(t, dated{a, -time.Hour, never}), []tripseal.Key{a}, []tripseal.Key{b}},
		{text(t, one(c)), []tripseal.Key{c}, []tripseal.Key{a}},
	} {
		l.take()
		write(t, path, step.file)
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		_, events := l.take()
		ids, removed := make([]tripseal.KeyID, len(step.opens)), []tripseal.KeyID(nil)
		for i, key := range step.opens {
			ids[i] = key.ID()
		}
		for _, key := range step.closed {
			removed = append(removed, key.ID())
		}
		if got := f.Ring().IDs(); !slices.Equal(got, ids) || len(events) != 1 || !slices.Equal(events[0].Removed, removed) {
			t.Errorf("keys %v, want %v; events %+v", got, ids, events)
		}
	}
}

// TestKeyThatArrivesLateIsTold gives a replica a rotation after the new key should have begun to
// seal.
func TestKeyThatArrivesLateIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	write(t, path, text(t, dated{a, -24 * time.Hour, never}))
	f, l := open(t, path, keys.Options{})
	l.take()
	write(t, path, text(t, dated{a, -24 * time.Hour, time.Hour}, dated{b, -10 * time.Minute, never}))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	said, events := l.take()
	if len(events) != 1 || !slices.Equal(events[0].Late, []tripseal.KeyID{b.ID()}) || !strings.Contains(said, "arrived after") {
		t.Errorf("%+v\n%s", events, said)
	}
}

func TestRecoveryIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good := text(t, one(tripseal.GenerateKey()))
	write(t, path, good)
	f, l := open(t, path, keys.Options{})
	write(t, path, good[:20])
	f.Reload()
	l.take()
	write(t, path, good)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if said, events := l.take(); !strings.Contains(said, "good again") || len(events) != 1 || events[0].Err != nil || len(events[0].Opens) != 1 {
		t.Errorf("said %s, events %+v", said, events)
	}
}

func TestAnObserverThatPanicsChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	write(t, path, text(t, one(a)))
	f, err := keys.OpenFile(path, &keys.Options{Every: time.Hour, Observer: func(keys.Event) { panic("observer") }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, path, text(t, dated{a, -time.Hour, never}, one(b)))
	if err := f.Reload(); err != nil || seals(f) != b.ID() {
		t.Errorf("%v, %v", err, f.Ring().IDs())
	}
}
