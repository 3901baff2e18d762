package keys_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/keys"
)

// asNobody calls f as a user who is not root. Root can read every file, whatever its mode. So if
// the test runs as root, its thread gets the file rights of the user 65534 (nobody) while f runs.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setfsuid(0)
	f()
}

// TestAPipeInThePlaceOfTheFileIsRefused checks that a source does not wait for a writer.
func TestAPipeInThePlaceOfTheFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	good := tripseal.GenerateKey()
	write(t, path, text(t, one(good)))
	f, l := open(t, path, keys.Options{})
	s := serve(t, f)
	l.take()
	must(t, os.Remove(path))
	must(t, syscall.Mkfifo(path, 0o600))
	stillOn(t, f, l, s, good.ID())
}
