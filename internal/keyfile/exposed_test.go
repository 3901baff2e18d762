//go:build unix

package keyfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripseal/tripseal/internal/keyfile"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inFolder makes a file in a folder of this mode.
func inFolder(t *testing.T, mode os.FileMode) (path string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "folder")
	must(t, os.Mkdir(dir, 0o700))
	path = filepath.Join(dir, "keys")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, os.Chmod(dir, mode))
	return path
}

func exposed(path string) string { return strings.Join(keyfile.Exposed(path, os.Geteuid()), "\n") }

func TestFileThatOthersCanReachIsExposed(t *testing.T) {
	for _, c := range []struct {
		file, folder os.FileMode
		want         string // "" means that the file is not exposed
	}{
		{0o600, 0o700, ""},
		{0o640, 0o750, ""},
		{0o400, 0o755, ""},
		{0o644, 0o700, "mode 0644): chmod 600 it"},
		{0o620, 0o700, "mode 0620): chmod 600 it"},
		{0o600, 0o777, "others can replace the file (mode 0777 of the folder"},
		{0o600, 0o770, "others can replace the file (mode 0770 of the folder"},
		{0o600, 0o702, "others can replace the file (mode 0702 of the folder"},
		{0o600, 0o777 | os.ModeSticky, ""}, // in a sticky folder, nobody else can replace our file
	} {
		path := inFolder(t, c.folder)
		must(t, os.Chmod(path, c.file))
		if got := exposed(path); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("file %o, folder %v: %q, want %q", c.file, c.folder, got, c.want)
		}
	}
	if got := exposed(filepath.Join(t.TempDir(), "missing")); got != "" {
		t.Errorf("a file that is missing: %q", got)
	}
}

// TestLinkThatOthersCanReplaceIsExposed makes links to a file that is safe. Other users can replace
// a link that is in a folder of mode 0777.
func TestLinkThatOthersCanReplaceIsExposed(t *testing.T) {
	target := inFolder(t, 0o700)
	for mode, want := range map[os.FileMode]string{0o700: "", 0o777: "others can replace"} {
		link := inFolder(t, mode)
		must(t, os.Remove(link))
		must(t, os.Symlink(target, link))
		second := filepath.Join(filepath.Dir(inFolder(t, 0o700)), "second")
		must(t, os.Symlink(link, second))
		for _, path := range []string{link, second} {
			if got := exposed(path); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("a link in a folder of mode %o: %q", mode, got)
			}
		}
	}
	loop := filepath.Join(filepath.Dir(inFolder(t, 0o700)), "loop")
	must(t, os.Symlink(loop, loop))
	if got := exposed(loop); got != "" {
		t.Errorf("a link to itself: %q", got)
	}
}

func TestFileOfAnotherUserIsExposed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const service, mallory = 1234, 65534
	give := func(path string, uid int) { t.Helper(); must(t, os.Lchown(path, uid, -1)) }
	for _, c := range []struct {
		name              string
		file, folder, uid int
		sticky            bool
		want              string
	}{
		{"of the service", service, service, service, false, ""},
		{"of root", 0, 0, service, false, ""},
		{"of another user", mallory, service, service, false, "another user (uid 65534) owns the file and can change it"},
		{"of another user, and we are root", mallory, 0, 0, false, "another user (uid 65534) owns the file"},
		{"in a folder of another user", service, mallory, service, false, "another user (uid 65534) owns the folder"},
		{"of root, sticky", 0, 0, service, true, ""},
		{"of another user, sticky", mallory, 0, service, true, "another user (uid 65534) owns the file"},
		{"in a sticky folder of another user", service, mallory, service, true, "another user (uid 65534) owns the folder"},
	} {
		mode := os.FileMode(0o755)
		if c.sticky {
			mode = 0o777 | os.ModeSticky
		}
		path := inFolder(t, mode)
		give(path, c.file)
		give(filepath.Dir(path), c.folder)
		if got := strings.Join(keyfile.Exposed(path, c.uid), "\n"); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// The link belongs to mallory. It is in a folder where everybody can make a link.
	target, link := inFolder(t, 0o755), inFolder(t, 0o777|os.ModeSticky)
	must(t, os.Remove(link))
	must(t, os.Symlink(target, link))
	give(link, mallory)
	if got := exposed(link); !strings.Contains(got, "another user (uid 65534) owns") {
		t.Errorf("a link of another user: %q", got)
	}
}

// TestMountedSecretIsNotExposed makes files as Kubernetes mounts a secret: "keys" is a link to
// "..data/keys", and "..data" is a link to a folder. Both links are in a sticky folder that
// everybody can write to.
func TestMountedSecretIsNotExposed(t *testing.T) {
	dir := filepath.Dir(inFolder(t, 0o777|os.ModeSticky))
	must(t, os.Remove(filepath.Join(dir, "keys")))
	must(t, os.Mkdir(filepath.Join(dir, "..1"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "..1", "keys"), nil, 0o400))
	must(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	must(t, os.Symlink(filepath.Join("..data", "keys"), filepath.Join(dir, "keys")))
	uids := []int{os.Geteuid()}
	if os.Geteuid() == 0 {
		uids = append(uids, 1234) // a service that does not run as root
	}
	for _, uid := range uids {
		if got := keyfile.Exposed(filepath.Join(dir, "keys"), uid); len(got) > 0 {
			t.Errorf("uid %d: %q", uid, got)
		}
	}
}
