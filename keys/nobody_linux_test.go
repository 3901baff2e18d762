package keys_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
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
