package keys_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
	"github.com/tripseal/tripseal/keys"
)

// revoked returns the text of a file in which the keys with these ids were revoked.
func revoked(t testing.TB, text []byte, ids ...tripseal.KeyID) []byte {
	t.Helper()
	d, err := keyfile.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		d.Revoke(id, time.Now())
	}
	return d.Bytes()
}

// opens reports whether f would open a token of this key.
func opens(f *keys.File, key tripseal.Key) bool { return slices.Contains(f.Ring().IDs(), key.ID()) }

// TestFileThatLacksALivingKeyIsRefused checks that a new file must have every key that has not
// expired. Otherwise an older copy of the file, or a deleted line, would make the service reject
// tokens that users hold.
func TestFileThatLacksALivingKeyIsRefused(t *testing.T) {
	a, b, c := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	for name, lacking := range map[string]struct {
		before, after []dated
		missing       tripseal.Key
	}{
		"the one that seals": {[]dated{{a, -2 * time.Hour, never}, {b, -time.Hour, never}}, []dated{{a, -2 * time.Hour, never}}, b},
		"one that opens":     {[]dated{{a, -2 * time.Hour, never}, {b, -time.Hour, never}}, []dated{{b, -time.Hour, never}}, a},
		"one that waits":     {[]dated{{a, -2 * time.Hour, 3 * time.Hour}, {b, time.Hour, never}}, []dated{{a, -2 * time.Hour, never}}, b},
		"all":                {[]dated{{a, -2 * time.Hour, never}}, []dated{{c, -time.Hour, never}}, a},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			before := text(t, lacking.before...)
			write(t, path, before)
			f, l := open(t, path, keys.Options{})
			was := f.Ring().IDs()
			l.take()
			write(t, path, text(t, lacking.after...))
			err := f.Reload()
			if err == nil || !strings.Contains(err.Error(), "lacks key "+lacking.missing.ID().String()) {
				t.Errorf("error %v", err)
			}
			if now := f.Ring().IDs(); !slices.Equal(now, was) {
				t.Errorf("keys %v, before %v", now, was)
			}
			said, events := l.take()
			if !strings.Contains(said, "level=ERROR") || len(events) != 1 || events[0].Err == nil {
				t.Errorf("said %s, events %+v", said, events)
			}
			write(t, path, before)
			if err := f.Reload(); err != nil {
				t.Errorf("put back: %v", err)
			}
		})
	}
}

func TestFileThatLacksALivingKeyIsToldUntilItIsResolved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, dated{a, -time.Hour, 2 * time.Hour}, dated{b, 0, never}))
		f, l := open(t, path, keys.Options{Every: time.Second})
		defer f.Close()
		l.take()
		write(t, path, text(t, one(b)))
		time.Sleep(2*time.Hour - time.Millisecond)
		synctest.Wait()
		said, _ := l.take()
		if n := strings.Count(said, "level=ERROR"); n != 12 || !opens(f, a) {
			t.Errorf("said %d times in two hours:\n%s", n, said)
		}
		// The old key has expired now, so the file lacks nothing any more.
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if said, _ := l.take(); !strings.Contains(said, "good again") || opens(f, a) || !opens(f, b) {
			t.Errorf("said %s", said)
		}
	})
}

func TestRevokedLineExplainsAMissingKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	both := text(t, dated{a, -time.Hour, never}, one(b))
	write(t, path, both)
	f, l := open(t, path, keys.Options{})
	l.take()
	write(t, path, revoked(t, both, a.ID()))
	if err := f.Reload(); err != nil || opens(f, a) || !opens(f, b) {
		t.Errorf("keys %v, %v", f.Ring().IDs(), err)
	}
	if _, events := l.take(); len(events) != 1 || !slices.Equal(events[0].Removed, []tripseal.KeyID{a.ID()}) {
		t.Errorf("events %+v", events)
	}
}

// lateReplica returns a replica that got the rotation to a new key late: an hour and a half after
// this key should have begun to seal. Until then, the replica sealed with the old key. The returned
// time is when it got the rotation.
func lateReplica(t *testing.T, path string, a, b tripseal.Key, options keys.Options) (*keys.File, *diary, time.Time) {
	t.Helper()
	time.Sleep(48 * time.Hour)
	first := text(t, dated{a, -24 * time.Hour, never})
	rotation := text(t, dated{a, -24 * time.Hour, time.Hour + time.Hour + 2*time.Minute}, dated{b, time.Hour, never})
	write(t, path, first)
	f, l := open(t, path, options)
	time.Sleep(2*time.Hour + 30*time.Minute)
	if seals(f) != a.ID() {
		t.Fatal("another key seals")
	}
	l.take()
	write(t, path, rotation)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	return f, l, time.Now()
}

// TestLateRotationKeepsWhatThisReplicaSealed checks that a replica still opens its own tokens if it
// gets a rotation late. According to the new file, the old key has expired long ago, but the
// replica sealed with that key a moment ago.
func TestLateRotationKeepsWhatThisReplicaSealed(t *testing.T) {
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	for name, c := range map[string]struct {
		options keys.Options
		file    string // a line to add to the file
		outlast time.Duration
		keeps   time.Duration
	}{
		"by default":             {keeps: time.Hour + time.Minute},
		"with the options":       {options: keys.Options{LongestTTL: 30 * time.Minute, Skew: 2 * time.Minute}, keeps: 32 * time.Minute},
		"as a boundary needs":    {outlast: 3 * time.Hour, keeps: 3*time.Hour + time.Minute},
		"as the file says":       {file: "lifetime 4h\n", keeps: 4*time.Hour + time.Minute},
		"as the file says, skew": {file: "skew 10m\n", keeps: 70 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(48 * time.Hour)
				first := text(t, dated{a, -24 * time.Hour, never})
				rotation := string(text(t, dated{a, -24 * time.Hour, time.Hour + time.Hour + 2*time.Minute}, dated{b, time.Hour, never}))
				rotation = strings.Replace(rotation, "\n", "\n"+c.file, 1)
				write(t, path, first)
				f, _ := open(t, path, c.options)
				defer f.Close()
				if c.outlast > 0 {
					if err := f.Outlast(c.outlast); err != nil {
						t.Fatal(err)
					}
				}
				// After Outlast(3 * time.Hour), the file is refused until its dates say that all
				// tokens of the first key have expired.
				time.Sleep(10 * time.Hour)
				write(t, path, []byte(rotation))
				if err := f.Reload(); err != nil {
					t.Fatal(err)
				}
				if seals(f) != b.ID() || !opens(f, a) {
					t.Fatalf("keys %v", f.Ring().IDs())
				}
				time.Sleep(c.keeps - time.Millisecond)
				if !opens(f, a) {
					t.Error("the old key no longer opens")
				}
				time.Sleep(time.Millisecond)
				if opens(f, a) || !opens(f, b) {
					t.Errorf("keys %v", f.Ring().IDs())
				}
			})
		})
	}
}

// TestTokensOfALateReplicaOpenThere checks that a replica opens a token that it sealed just before
// a late rotation arrived.
func TestTokensOfALateReplicaOpenThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy"}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, dated{a, -24 * time.Hour, never}))
		rotation := text(t, dated{a, -24 * time.Hour, time.Hour + time.Hour + 2*time.Minute}, dated{b, time.Hour, never})
		f, _ := open(t, path, keys.Options{})
		defer f.Close()
		boundary, err := tripseal.New(tripseal.Config{Keys: f, Audience: "test", TTL: time.Hour, MaxFlow: tripseal.NoLimit, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Hour)
		round, _ := boundary.Open(ctx, request, "")
		token, err := boundary.Seal(ctx, &round, nil)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, rotation)
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		if _, err := boundary.Open(ctx, request, token); err != nil {
			t.Errorf("an honest token: %v", err)
		}
	})
}

func TestLateRotationIsWarnedAbout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		f, l, _ := lateReplica(t, path, a, b, keys.Options{})
		defer f.Close()
		said, events := l.take()
		if strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, "arrived after") || !strings.Contains(said, b.ID().String()) {
			t.Errorf("said %s", said)
		}
		if len(events) != 1 || !slices.Equal(events[0].Late, []tripseal.KeyID{b.ID()}) || !slices.Equal(events[0].Opens, []tripseal.KeyID{b.ID(), a.ID()}) {
			t.Errorf("events %+v", events)
		}
	})
	// Neither the first file nor a rotation that arrives in time causes a warning.
	synctest.Test(t, func(t *testing.T) {
		write(t, path, text(t, dated{a, 0, never}))
		f, l := open(t, path, keys.Options{})
		defer f.Close()
		write(t, path, text(t, dated{a, 0, 3 * time.Hour}, dated{b, time.Hour, never}))
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		f.Reload()
		said, events := l.take()
		if strings.Contains(said, "WARN") || len(events) != 3 || len(events[0].Late)+len(events[1].Late)+len(events[2].Late) > 0 {
			t.Errorf("said %s", said)
		}
	})
}

// TestRotationFromAClockThatIsBehind makes a rotation on a host whose clock is two hours behind.
// When a replica gets the new file, the date in it is already past.
func TestRotationFromAClockThatIsBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, dated{a, -24 * time.Hour, never}))
		f, l := open(t, path, keys.Options{})
		defer f.Close()
		l.take()
		d, err := keyfile.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		behind := time.Now().Add(-2 * time.Hour)
		k := &keyfile.Key{ID: b.ID(), Made: behind, SealsFrom: behind.Add(time.Hour), Secret: keyfile.Plain(b)}
		if err := d.Rotate(k, behind, keyfile.Room{TTL: time.Hour, Skew: time.Minute}); err != nil {
			t.Fatal(err)
		}
		write(t, path, d.Bytes())
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		if said, _ := l.take(); !strings.Contains(said, "arrived after") {
			t.Errorf("said %s", said)
		}
		time.Sleep(time.Hour)
		if seals(f) != b.ID() || !opens(f, a) {
			t.Errorf("keys %v", f.Ring().IDs())
		}
		time.Sleep(time.Minute)
		if opens(f, a) {
			t.Error("the old key still opens")
		}
	})
}

// TestLateRotationKeepsNoRevokedKey checks that a late rotation does not make a replica keep a
// revoked key. Either the file with the rotation revokes the key, or the next file does.
func TestLateRotationKeepsNoRevokedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		f, _, _ := lateReplica(t, path, a, b, keys.Options{})
		defer f.Close()
		current := text(t, dated{a, -24 * time.Hour, -time.Hour}, dated{b, -2 * time.Hour, never})
		write(t, path, revoked(t, current, a.ID()))
		if err := f.Reload(); err != nil || opens(f, a) {
			t.Errorf("revoked later: keys %v, %v", f.Ring().IDs(), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, dated{a, -24 * time.Hour, never}))
		f, _ := open(t, path, keys.Options{})
		defer f.Close()
		write(t, path, revoked(t, text(t, dated{a, -24 * time.Hour, -time.Hour}, dated{b, -2 * time.Hour, never}), a.ID()))
		if err := f.Reload(); err != nil || opens(f, a) {
			t.Errorf("revoked at once: keys %v, %v", f.Ring().IDs(), err)
		}
	})
}

// TestKeyThatIsKeptLateOutlivesOtherFiles checks a key that a replica keeps because of a late
// rotation. The key must stay when the next file lacks it, and when a second late rotation follows.
func TestKeyThatIsKeptLateOutlivesOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b, c := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		f, _, arrived := lateReplica(t, path, a, b, keys.Options{})
		defer f.Close()
		write(t, path, text(t, dated{b, -2 * time.Hour, never})) // a was pruned
		if err := f.Reload(); err != nil || !opens(f, a) {
			t.Errorf("pruned: keys %v, %v", f.Ring().IDs(), err)
		}
		time.Sleep(30 * time.Minute)
		write(t, path, text(t, dated{b, -2 * time.Hour, -30 * time.Minute}, dated{c, -2*time.Hour + 30*time.Minute, never})) // this rotation is late too
		if err := f.Reload(); err != nil || !opens(f, a) || !opens(f, b) || seals(f) != c.ID() {
			t.Errorf("another rotation: keys %v, %v", f.Ring().IDs(), err)
		}
		time.Sleep(time.Until(arrived.Add(time.Hour + time.Minute)))
		if opens(f, a) || !opens(f, b) {
			t.Errorf("keys %v", f.Ring().IDs())
		}
		time.Sleep(30 * time.Minute)
		if opens(f, b) {
			t.Errorf("keys %v", f.Ring().IDs())
		}
	})
}

// TestDatesThatAreSetBackLoseNothing checks that no token is lost if a new file has earlier dates.
// By these dates, the new key has sealed for two hours, but this replica sealed with the old key
// until ten minutes ago.
func TestDatesThatAreSetBackLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		write(t, path, text(t, dated{a, -24 * time.Hour, 3*time.Hour + 2*time.Minute}, dated{b, 2 * time.Hour, never}))
		f, _ := open(t, path, keys.Options{})
		defer f.Close()
		time.Sleep(2*time.Hour + 10*time.Minute) // the old key sealed until ten minutes ago
		write(t, path, text(t, dated{a, -24 * time.Hour, -time.Minute}, dated{b, -2 * time.Hour, never}))
		if err := f.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(51*time.Minute - time.Millisecond)
		if !opens(f, a) {
			t.Error("tokens of the old key are lost")
		}
		time.Sleep(time.Millisecond)
		if opens(f, a) {
			t.Error("the old key still opens")
		}
	})
}

// TestKeyThatIsOverIsNotKeptAsIfItSealed checks that a source does not keep an expired key if it
// never sealed with that key. The first key has expired and the second is revoked, so the source
// seals with the third key before that key's date.
func TestKeyThatIsOverIsNotKeptAsIfItSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b, c := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(48 * time.Hour)
		// The second key was revoked on a host whose clock is ahead.
		d, err := keyfile.Parse(text(t, dated{a, -24 * time.Hour, -time.Hour}, dated{b, -10 * time.Hour, never}, dated{c, 30 * time.Second, never}))
		if err != nil {
			t.Fatal(err)
		}
		d.Revoke(b.ID(), time.Now().Add(30*time.Second))
		write(t, path, d.Bytes())
		f, _ := open(t, path, keys.Options{})
		defer f.Close()
		if opens(f, a) || seals(f) != c.ID() {
			t.Fatalf("keys %v", f.Ring().IDs())
		}
		time.Sleep(10 * time.Second)
		d.Raise(keyfile.Room{TTL: time.Hour})
		write(t, path, d.Bytes())
		if err := f.Reload(); err != nil || opens(f, a) || seals(f) != c.ID() {
			t.Errorf("keys %v, %v", f.Ring().IDs(), err)
		}
	})
}

// TestServiceIsToldHowToRepairTheFile checks that the error names the command that repairs a file
// whose old key expires too early.
func TestServiceIsToldHowToRepairTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	write(t, path, text(t, dated{a, -time.Hour, 62 * time.Minute}, dated{b, 0, never}))
	f, l := open(t, path, keys.Options{})
	_, err := tripseal.New(tripseal.Config{Keys: f, Audience: "test", TTL: 2 * time.Hour, Logger: slog.New(slog.DiscardHandler)})
	if want := "run: tripseal keys extend " + path + " --ttl 2h"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	// Change the file as the command tripseal keys extend does. After a reload, tripseal.New must
	// accept the TTL of two hours.
	d, err := keyfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	long := keyfile.Room{TTL: 2 * time.Hour, Skew: time.Minute}
	d.Raise(long)
	d.Extend(time.Now(), long)
	write(t, path, d.Bytes())
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := tripseal.New(tripseal.Config{Keys: f, Audience: "test", TTL: 2 * time.Hour, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Errorf("after the repair: %v", err)
	}
	write(t, path, text(t, dated{a, -time.Hour, 62 * time.Minute}, dated{b, 0, never}))
	_, err = keys.OpenFile(path, &keys.Options{Skew: 5 * time.Minute})
	if want := "run: tripseal keys extend " + path + " --ttl 1h --skew 5m"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	// Now the service runs, and the old key in the file expires too early again. The log must name
	// the command tripseal keys extend.
	l.take()
	write(t, path, text(t, dated{a, -time.Hour, 30 * time.Minute}, dated{b, 0, never}))
	var short *keyfile.TooShort
	if err := f.Reload(); !errors.As(err, &short) {
		t.Error(err)
	}
	if said, _ := l.take(); !strings.Contains(said, "run: tripseal keys extend "+path+" --ttl 2h") {
		t.Errorf("said %s", said)
	}
}

// TestFewIDsAreLogged checks that a line of the log stays short, although the file has many keys.
func TestFewIDsAreLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	var many []dated
	for i := range 200 {
		many = append(many, dated{tripseal.GenerateKey(), -time.Duration(i) * time.Minute, never})
	}
	all := text(t, many...)
	write(t, path, all)
	f, l := open(t, path, keys.Options{})
	said, events := l.take()
	if len(said) > 500 || !strings.Contains(said, many[0].ID().String()) || !strings.Contains(said, "200") || len(events[0].Opens) != 200 {
		t.Errorf("%d bytes: %s", len(said), said)
	}
	// Two more texts must be short: the error about missing keys, and the log record about revoked keys.
	write(t, path, text(t, many[0]))
	if err := f.Reload(); err == nil || len(err.Error()) > 500 {
		t.Errorf("error %v", err)
	}
	if said, _ := l.take(); len(said) > 700 {
		t.Errorf("%d bytes: %s", len(said), said)
	}
	var ids []tripseal.KeyID
	for _, k := range many[1:] {
		ids = append(ids, k.ID())
	}
	write(t, path, revoked(t, all, ids...))
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	if said, events := l.take(); len(said) > 1000 || len(events[len(events)-1].Removed) != 199 {
		t.Errorf("%d bytes: %s", len(said), said)
	}
}
