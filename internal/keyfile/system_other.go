//go:build !unix || solaris || illumos || aix

package keyfile

import (
	"os"
	"runtime"
)

// Here files have neither locks nor owners that the standard library knows: two
// commands at once are noticed by the text alone.

const (
	locksWork = false
	modesWork = runtime.GOOS != "windows"
)

func owner(os.FileInfo) (int, bool) { return 0, false }

func tryLock(*os.File) (bool, error) { return true, nil }

func keepOwner(*os.File, os.FileInfo) error { return nil }

func ignoreUnsupported(error) error { return nil }
