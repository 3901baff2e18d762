//go:build !unix || solaris || illumos || aix

package keyfile

import (
	"os"
	"runtime"
)

// On these systems the standard library knows neither locks nor owners of files. Two
// commands that run at once are noticed only if the text of the file changes.

const (
	locksWork = false
	modesWork = runtime.GOOS != "windows"
)

func owner(os.FileInfo) (int, bool) { return 0, false }

func tryLock(*os.File) (bool, error) { return true, nil }

func keepOwner(*os.File, os.FileInfo) error { return nil }

func ignoreUnsupported(error) error { return nil }
