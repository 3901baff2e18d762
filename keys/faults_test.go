package keys_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// service seals and opens tokens with the keys of a source.
type service struct {
	boundary *tripseal.Boundary
}

func serve(t testing.TB, f *keys.File) service {
	t.Helper()
	boundary, err := tripseal.New(tripseal.Config{Keys: f, Audience: "test", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return service{boundary}
}

// works returns an error unless the service can seal a token and open it again.
func (s service) works() error {
	ctx, request := context.Background(), tripseal.Request{Method: "tools/call", Target: "deploy"}
	round, err := s.boundary.Open(ctx, request, "")
	if err != nil {
		return err
	}
	token, err := s.boundary.Seal(ctx, &round, nil)
	if err != nil {
		return err
	}
	_, err = s.boundary.Open(ctx, request, token)
	return err
}

// stillOn reloads a bad file. It checks that the file is refused, and that the last good file stays
// in use. The last good file has only the key with this id.
func stillOn(t *testing.T, f *keys.File, l *diary, s service, id tripseal.KeyID) {
	t.Helper()
	if err := f.Reload(); err == nil {
		t.Error("the file was accepted")
	}
	if ids := f.Ring().IDs(); len(ids) != 1 || ids[0] != id {
		t.Errorf("keys %v", ids)
	}
	if err := s.works(); err != nil {
		t.Error(err)
	}
	said, events := l.take()
	if !strings.Contains(said, "the last good one stays in use") || len(events) == 0 || events[0].Err == nil {
		t.Errorf("said %s, events %+v", said, events)
	}
}

func TestFileCutAtEachByteIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := tripseal.GenerateKey(), tripseal.GenerateKey()
	good, next := text(t, one(a)), text(t, dated{b, 0, never}, dated{a, -time.Hour, never})
	write(t, path, good)
	f, l := open(t, path, keys.Options{})
	s := serve(t, f)
	whole := len(next) - len("\n") // the last line needs no line end
	for n := range whole {
		write(t, path, next[:n])
		if f.Reload() == nil {
			t.Fatalf("cut to %d of %d bytes, and accepted", n, len(next))
		}
		if ids := f.Ring().IDs(); len(ids) != 1 || ids[0] != a.ID() {
			t.Fatalf("cut to %d bytes: keys %v", n, ids)
		}
		if err := s.works(); err != nil {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	l.take()
	write(t, path, next[:whole])
	if err := f.Reload(); err != nil || seals(f) != b.ID() {
		t.Errorf("whole again: %v", err)
	}
	if said, _ := l.take(); !strings.Contains(said, "good again") {
		t.Errorf("said %s", said)
	}
}

func TestBrokenFilesKeepTheLastGoodOne(t *testing.T) {
	a, b, c := tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()
	good := tripseal.GenerateKey()
	three := string(text(t, dated{a, -2 * time.Hour, never}, dated{b, -time.Hour, never}, dated{c, 0, never}, dated{good, -3 * time.Hour, never}))
	for name, damage := range map[string]func(t *testing.T, path string){
		"empty":             func(t *testing.T, path string) { write(t, path, nil) },
		"half-written":      func(t *testing.T, path string) { write(t, path, []byte(three[:len(three)/2])) },
		"vanished":          func(t *testing.T, path string) { os.Remove(path) },
		"a folder":          func(t *testing.T, path string) { os.Remove(path); os.Mkdir(path, 0o700) },
		"a link to nothing": func(t *testing.T, path string) { os.Remove(path); os.Symlink(path+".gone", path) },
		"a link to itself":  func(t *testing.T, path string) { os.Remove(path); os.Symlink(path, path) },
		"not text":          func(t *testing.T, path string) { write(t, path, make([]byte, 4096)) },
		"too long":          func(t *testing.T, path string) { write(t, path, []byte(three+strings.Repeat("\n", 1<<20))) },
		"no keys":           func(t *testing.T, path string) { write(t, path, []byte("tripseal-keys 1\nend\n")) },
		"an invalid key in between": func(t *testing.T, path string) {
			write(t, path, []byte(strings.Replace(three, b.Reveal(), a.Reveal(), 1)))
		},
		"a letter changed in between": func(t *testing.T, path string) {
			secret := b.Reveal()
			other := "A"
			if secret[30:31] == other {
				other = "B"
			}
			write(t, path, []byte(strings.Replace(three, secret, secret[:30]+other+secret[31:], 1)))
		},
		"a key twice": func(t *testing.T, path string) {
			lines := strings.SplitAfter(three, "\n")
			write(t, path, []byte(lines[0]+lines[1]+lines[2]+lines[2]+lines[4]+lines[5]))
		},
		"an end too early": func(t *testing.T, path string) {
			write(t, path, text(t, dated{good, -time.Hour, never}, dated{a, 0, time.Hour + time.Minute}, dated{b, time.Hour, never}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			write(t, path, text(t, one(good)))
			f, l := open(t, path, keys.Options{})
			s := serve(t, f)
			l.take()
			damage(t, path)
			stillOn(t, f, l, s, good.ID())
			os.RemoveAll(path)
			write(t, path, []byte(three))
			if err := f.Reload(); err != nil || seals(f) != c.ID() || len(f.Ring().IDs()) != 4 {
				t.Errorf("it does not recover: %v", err)
			}
			if _, events := l.take(); len(events) != 1 || events[0].Err != nil {
				t.Errorf("events %+v", events)
			}
		})
	}
}

// TestBrokenFileAtStartIsAnError checks that OpenFile fails if the file is missing or broken,
// because there is no last good file yet.
func TestBrokenFileAtStartIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if _, err := keys.OpenFile(path, nil); !os.IsNotExist(underlying(err)) {
		t.Errorf("no file: %v", err)
	}
	write(t, path, []byte("tripseal-keys 1\n"))
	if _, err := keys.OpenFile(path, nil); err == nil || !strings.Contains(err.Error(), "still being written") || !strings.Contains(err.Error(), path) {
		t.Errorf("half a file: %v", err)
	}
}

func underlying(err error) error {
	for {
		wrapped, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		err = wrapped.Unwrap()
	}
}

// TestReplacementIsNoticed checks that the source itself notices a new file: the test does not call
// Reload.
func TestReplacementIsNoticed(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, dir string, n int, text []byte){
		"rename": func(t *testing.T, dir string, n int, text []byte) {
			write(t, filepath.Join(dir, "new"), text)
			must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "keys")))
		},
		"link swap": func(t *testing.T, dir string, n int, text []byte) {
			// Kubernetes mounts secrets in this way: keys → ..data/keys, ..data → ..N
			folder := fmt.Sprintf("..%d", n)
			must(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
			write(t, filepath.Join(dir, folder, "keys"), text)
			must(t, os.Symlink(folder, filepath.Join(dir, "..data_tmp")))
			must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
			if _, err := os.Lstat(filepath.Join(dir, "keys")); err != nil {
				must(t, os.Symlink(filepath.Join("..data", "keys"), filepath.Join(dir, "keys")))
			}
		},
		"edit in place": func(t *testing.T, dir string, n int, text []byte) {
			// The size and the modification time stay the same, so only the text shows the change.
			path := filepath.Join(dir, "keys")
			info, err := os.Stat(path)
			file, openErr := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
			must(t, openErr)
			_, writeErr := file.Write(text)
			must(t, writeErr)
			must(t, file.Close())
			if err == nil {
				must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
			}
		},
		"deletion and return": func(t *testing.T, dir string, n int, text []byte) {
			path := filepath.Join(dir, "keys")
			os.Remove(path)
			if n > 0 {
				time.Sleep(20 * time.Millisecond) // so that the source sees that the file is gone
			}
			write(t, path, text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// The two keys take turns at sealing.
			ring := []tripseal.Key{tripseal.GenerateKey(), tripseal.GenerateKey()}
			key := ring[0]
			replace(t, dir, 0, text(t, one(key), dated{ring[1], -time.Hour, never}))
			f, _ := open(t, filepath.Join(dir, "keys"), keys.Options{Every: 2 * time.Millisecond})
			s := serve(t, f)
			for n := range 20 {
				before := key
				key = ring[(n+1)%2]
				replace(t, dir, n+1, text(t, one(key), dated{before, -time.Hour, never}))
				deadline := time.Now().Add(10 * time.Second)
				for seals(f) != key.ID() {
					if time.Now().After(deadline) {
						t.Fatalf("replacement %d was not noticed", n+1)
					}
					if err := s.works(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableFileKeepsTheLastGoodOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good := tripseal.GenerateKey()
	write(t, path, text(t, one(good)))
	f, l := open(t, path, keys.Options{})
	s := serve(t, f)
	l.take()
	must(t, os.Chmod(path, 0))
	asNobody(t, func() { stillOn(t, f, l, s, good.ID()) })
	must(t, os.Chmod(path, 0o600))
	if err := f.Reload(); err != nil {
		t.Error(err)
	}
	if said, _ := l.take(); !strings.Contains(said, "good again") {
		t.Errorf("said %s", said)
	}
}

// reloads is how often TestReloadsUnderLoad replaces the file.
const reloads = 300

// TestReloadsUnderLoad replaces the file again and again, sometimes with a broken file in between,
// while the service seals and opens tokens. After each replacement another key seals.
func TestReloadsUnderLoad(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "keys"), filepath.Join(dir, "next")
	ring := []tripseal.Key{tripseal.GenerateKey(), tripseal.GenerateKey(), tripseal.GenerateKey()}
	key := func(n int) tripseal.Key { return ring[n%len(ring)] }
	file := func(n int) []byte {
		return text(t, one(key(n)), dated{key(n + 1), -2 * time.Hour, never}, dated{key(n + 2), -time.Hour, never})
	}
	write(t, path, file(0))
	f, _ := open(t, path, keys.Options{Every: time.Millisecond})
	s := serve(t, f)

	var over atomic.Bool
	var rounds atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for !over.Load() {
				if err := s.works(); err != nil {
					t.Error(err)
					return
				}
				rounds.Add(1)
				time.Sleep(100 * time.Microsecond) // leaves the processor to the reloads
			}
		})
	}
	for n := 1; n <= reloads && !t.Failed(); n++ {
		replacement := file(n)
		broken := n%10 == 0
		if broken {
			write(t, path, replacement[:n%len(replacement)])
			f.Reload()
		}
		write(t, next, replacement)
		must(t, os.Rename(next, path))
		if err := f.Reload(); err != nil {
			t.Error(err)
		}
		if seals(f) != key(n).ID() {
			t.Errorf("replacement %d: %v seals", n, seals(f))
		}
		if before := rounds.Load(); n%100 == 0 {
			for rounds.Load() == before && !t.Failed() {
				time.Sleep(100 * time.Microsecond) // wait until the service has sealed and opened again
			}
		}
	}
	over.Store(true)
	group.Wait()
	t.Logf("%d rounds during %d reloads", rounds.Load(), reloads)
}
