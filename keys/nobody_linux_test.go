package keys_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// asNobody calls f with the rights of a user that owns nothing. Root may read
// whatever the mode says, so its thread gives that up meanwhile.
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
