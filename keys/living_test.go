package keys_test

import (
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
