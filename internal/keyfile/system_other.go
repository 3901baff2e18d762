//go:build !unix || solaris || illumos || aix

package keyfile

import (
	"os"
	"runtime"
)

// On these systems this package neither locks a file nor knows its owner. So two commands can
// change the same file at the same time. Update reads the file a second time, shortly before it
// replaces the file. It notices only a change between the two reads.

const (
	locksWork = false
	modesWork = runtime.GOOS != "windows"
)

func owner(os.FileInfo) (int, bool) { return 0, false }

func tryLock(*os.File) (bool, error) { return true, nil }

func keepOwner(*os.File, os.FileInfo) error { return nil }

func ignoreUnsupported(error) error { return nil }
