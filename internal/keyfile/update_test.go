package keyfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

func newFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := keyfile.Create(path, document(t)); err != nil {
		t.Fatal(err)
	}
	return path
}

func document(t *testing.T) *keyfile.Document {
	t.Helper()
	d := new(keyfile.Document)
	addKey(d)
	return d
}

func addKey(d *keyfile.Document) error {
	key := tripseal.GenerateKey()
	d.Add(&keyfile.Key{ID: key.ID(), Made: noon, SealsFrom: noon, Secret: keyfile.Plain(key)})
	return nil
}

// mustBeAlone checks that nothing is left beside the file, and that the file's mode is 0600.
func mustBeAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left beside the file: %v, %v", entries, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestCreateNeverReplaces(t *testing.T) {
	path := newFile(t)
	before, _ := os.ReadFile(path)
	if err := keyfile.Create(path, document(t)); !errors.Is(err, keyfile.ErrExists) {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was replaced")
	}
	mustBeAlone(t, path)
}

func TestUpdateReplacesAtOnce(t *testing.T) {
	path := newFile(t)
	os.Chmod(path, 0o606)
	if err := keyfile.Update(path, addKey); err != nil {
		t.Error(err)
	}
	mustBeAlone(t, path)
	if d, err := keyfile.Read(path); err != nil || len(d.Keys()) != 2 {
		t.Error(err)
	}
}

func TestUpdateThatFailsChangesNothing(t *testing.T) {
	path := newFile(t)
	before, _ := os.ReadFile(path)
	oops := errors.New("oops")
	if err := keyfile.Update(path, func(d *keyfile.Document) error { addKey(d); return oops }); !errors.Is(err, oops) {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
	mustBeAlone(t, path)
}

func TestUpdateDoesNotOverwriteWhatOthersWrote(t *testing.T) {
	for name, meddle := range map[string]func(path string) error{
		"edited":   func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o600) },
		"replaced": func(path string) error { os.Remove(path); return os.WriteFile(path, []byte("theirs"), 0o600) },
		"appended": func(path string) error {
			text, _ := os.ReadFile(path)
			return os.WriteFile(path, append(text, '\n'), 0o600)
		},
		"removed": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			path := newFile(t)
			var theirs []byte
			err := keyfile.Update(path, func(d *keyfile.Document) error {
				err := meddle(path)
				theirs, _ = os.ReadFile(path)
				return errors.Join(err, addKey(d))
			})
			if !errors.Is(err, keyfile.ErrChanged) {
				t.Error(err)
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, theirs) {
				t.Errorf("their text is gone: %q", now)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestUpdatesWaitForEachOther(t *testing.T) {
	path := newFile(t)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if err := keyfile.Update(path, addKey); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if d, err := keyfile.Read(path); err != nil || len(d.Keys()) != 21 {
		t.Errorf("%d keys, %v", len(d.Keys()), err)
	}
	mustBeAlone(t, path)
}

func TestUpdateThroughALink(t *testing.T) {
	path := newFile(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := keyfile.Update(link, addKey); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v", err)
	}
	if d, err := keyfile.Read(path); err != nil || len(d.Keys()) != 2 {
		t.Error(err)
	}
}

func TestUpdateKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := newFile(t)
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := keyfile.Update(path, addKey); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if owner := fmt.Sprintf("%+v", info.Sys()); !bytes.Contains([]byte(owner), []byte("Uid:65534 Gid:65534")) {
		t.Errorf("the owner changed: %s", owner)
	}
}

func TestUpdateRefusesWhatCouldNotBeReadAgain(t *testing.T) {
	path := newFile(t)
	err := keyfile.Update(path, func(d *keyfile.Document) error {
		for i := range 200 {
			k := &keyfile.Key{ID: tripseal.KeyID{byte(i)}, Made: noon, SealsFrom: noon.Add(time.Duration(i) * time.Hour), Secret: keyfile.Wrap("x", make([]byte, 8<<10))}
			d.Add(k)
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "could not be read again: the file has more than") {
		t.Error(err)
	}
	mustBeAlone(t, path)
}

// TestUpdateKeepsTheGroup checks that the group of a file that was for its group can read the new
// file too, and that others never can.
func TestUpdateKeepsTheGroup(t *testing.T) {
	path := newFile(t)
	for was, want := range map[os.FileMode]os.FileMode{0o640: 0o640, 0o660: 0o640, 0o644: 0o640, 0o606: 0o600, 0o600: 0o600} {
		os.Chmod(path, was)
		if err := keyfile.Update(path, func(*keyfile.Document) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %o became %o, want %o", was, info.Mode().Perm(), want)
		}
	}
}

func TestUpdateNoticesALinkThatWasSwapped(t *testing.T) {
	old, young := newFile(t), newFile(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(old, link); err != nil {
		t.Fatal(err)
	}
	err := keyfile.Update(link, func(d *keyfile.Document) error {
		os.Remove(link)
		return errors.Join(os.Symlink(young, link), addKey(d))
	})
	if !errors.Is(err, keyfile.ErrChanged) {
		t.Error(err)
	}
	for _, path := range []string{old, young} {
		if d, err := keyfile.Read(path); err != nil || len(d.Keys()) != 1 {
			t.Errorf("%d keys, %v", len(d.Keys()), err)
		}
		mustBeAlone(t, path)
	}
}

// TestWhatAKilledCommandLeftIsRemoved checks that the next change removes what a killed command left,
// because it holds secrets. Other files stay.
func TestWhatAKilledCommandLeftIsRemoved(t *testing.T) {
	path := newFile(t)
	dir := filepath.Dir(path)
	others := []string{".keys.new", ".keys.x.1.new", ".keys.old.new", "keys.123.new", ".other.1.new"}
	for _, name := range append(others, ".keys.123.new") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := keyfile.Update(path, addKey); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".keys.123.new")); !os.IsNotExist(err) {
		t.Errorf("what was left is there: %v", err)
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestReadOnlyFileCanBeReplacedByItsOwner(t *testing.T) {
	path := newFile(t)
	os.Chmod(path, 0o400)
	if err := keyfile.Update(path, addKey); err != nil {
		t.Error(err)
	}
	mustBeAlone(t, path)
}
