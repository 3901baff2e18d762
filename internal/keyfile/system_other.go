//go:build !unix || solaris || illumos || aix

package keyfile

import (
	"os"
	"runtime"
)

// On these systems the standard library supports neither locks nor owners of files. If two
// commands change a file at the same time, a command notices this only if the text of the
// file changed after the command had read it.

const (
	locksWork = false
	modesWork = runtime.GOOS != "windows"
)

func owner(os.FileInfo) (int, bool) { return 0, false }

func tryLock(*os.File) (bool, error) { return true, nil }

func keepOwner(*os.File, os.FileInfo) error { return nil }

func ignoreUnsupported(error) error { return nil }
