//go:build unix && !solaris && !illumos && !aix

package keyfile

import (
	"errors"
	"os"
	"syscall"
)

const locksWork = true

// lock waits until no other process has locked the file.
func lock(file *os.File) error {
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// keepOwner gives a file the owner of another file, which the parameter old describes. It
// does nothing if old is nil.
func keepOwner(file *os.File, old os.FileInfo) error {
	if old == nil {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	was, ok := old.Sys().(*syscall.Stat_t)
	is, ok2 := info.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || was.Uid == is.Uid && was.Gid == is.Gid {
		return nil
	}
	return file.Chown(int(was.Uid), int(was.Gid))
}
