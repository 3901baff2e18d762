//go:build unix && !solaris && !illumos && !aix

package keyfile

import (
	"errors"
	"os"
	"syscall"
)

const (
	locksWork = true
	modesWork = true
)

func owner(info os.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

func tryLock(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
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

// ignoreUnsupported returns nil if err means that the file system cannot sync a folder.
// Otherwise it returns err.
func ignoreUnsupported(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
