//go:build !linux

package keys_test

import (
	"os"
	"testing"
)

// asNobody calls f. It skips the test if this process can read every file, whatever its mode.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() <= 0 {
		t.Skip("this process can read any file")
	}
	f()
}
