package keyfile

import (
	"errors"
	"os"
	"syscall"
	"time"
)

const lockPause = 20 * time.Millisecond

var lockTimeout = 10 * time.Second // a variable, so that a test can change it

// openLocked opens and locks the file at path. It waits for the lock, for at most lockTimeout.
func openLocked(path string) (*os.File, os.FileInfo, error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		file, info, err := tryOpenLocked(path)
		if file != nil || err != nil {
			return file, info, err
		}
		if time.Now().After(deadline) {
			return nil, nil, ErrLocked
		}
		time.Sleep(lockPause)
	}
}

// tryOpenLocked opens and locks the file at path, without waiting. If it returns neither a
// file nor an error, the caller must try again.
func tryOpenLocked(path string) (opened *os.File, info os.FileInfo, err error) {
	// Open the file for writing, because some file systems lock only files that are open for
	// writing.
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrPermission) {
		file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err != nil {
		return nil, nil, failedTo("open the file", err)
	}
	defer func() {
		if opened == nil {
			file.Close()
		}
	}()
	locked, err := tryLock(file)
	if !locked || err != nil {
		return nil, nil, err
	}
	if info, err = file.Stat(); err != nil {
		return nil, nil, failedTo("read the file", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	// The previous holder of the lock may have replaced the file. In that case the lock is
	// on the old file, and the caller must try again.
	if current, err := os.Stat(path); err != nil || !os.SameFile(info, current) {
		return nil, nil, nil
	}
	return file, info, nil
}
