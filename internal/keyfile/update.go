package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	fileMode  = 0o600
	lockPause = 20 * time.Millisecond
)

var lockTimeout = 10 * time.Second // changed by a test alone

var (
	// ErrExists is a file that was to be made and is there.
	ErrExists = errors.New("the file exists already")
	// ErrChanged is a file that somebody changed at the same time.
	ErrChanged = errors.New("somebody else changed the file meanwhile; nothing was written")
	// ErrLocked is a file that another command does not let go.
	ErrLocked = errors.New("another command is changing the file")
	// ErrTooLong is a document that could not be read again.
	ErrTooLong = fmt.Errorf("the file would have more than %d bytes: prune it", MaxSize)
)

// Read reads a document.
func Read(path string) (*Document, error) {
	text, _, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Create makes a file, and never replaces one.
func Create(path string, d *Document) error {
	temporary, err := writeBeside(path, d.Bytes(), nil)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := os.Link(temporary, path); errors.Is(err, os.ErrExist) {
		return ErrExists
	} else if err != nil {
		return cannot("make the file", err)
	}
	return syncFolder(path)
}

// Update lets change work on the document in the file and puts the result in its
// place, at once or not at all. Commands wait for each other; whoever writes in
// another way is noticed. It returns the modes that the file had and has.
func Update(path string, change func(*Document) error) (before, after os.FileMode, err error) {
	// A link stays a link: what it leads to is replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, 0, cannot("read the file", err)
	}
	file, info, err := openLocked(target)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close() // and with it the lock
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return 0, 0, cannot("read the file", err)
	}
	document, err := Parse(text)
	if err != nil {
		return 0, 0, err
	}
	if err := change(document); err != nil {
		return 0, 0, err
	}
	changed := document.Bytes()
	if len(changed) > MaxSize {
		return 0, 0, ErrTooLong
	}
	temporary, err := writeBeside(target, changed, info)
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(temporary) // fails once it was renamed
	again, _, err := ReadText(target)
	if err != nil || !bytes.Equal(again, text) {
		return 0, 0, ErrChanged
	}
	if err := os.Rename(temporary, target); err != nil {
		return 0, 0, cannot("replace the file", err)
	}
	return info.Mode().Perm(), modeLike(info), syncFolder(target)
}

// openLocked opens the file that is at path once it has the lock.
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

// tryOpenLocked returns nil if it has to be tried again.
func tryOpenLocked(path string) (opened *os.File, info os.FileInfo, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, cannot("open the file for writing", err)
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
		return nil, nil, cannot("read the file", err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, ErrNotRegular
	}
	// Whoever had the lock may have put another file in its place.
	if current, err := os.Stat(path); err != nil || !os.SameFile(info, current) {
		return nil, nil, nil
	}
	return file, info, nil
}

// modeLike is the mode of a file that replaces like: a group that was let in by
// itself still is, nobody else.
func modeLike(like os.FileInfo) os.FileMode {
	if like != nil && like.Mode().Perm()&0o044 == 0o040 {
		return fileMode | 0o040
	}
	return fileMode
}

// writeBeside writes a file in the same folder, with the owner of like, if there
// is one.
func writeBeside(path string, text []byte, like os.FileInfo) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", cannot("write in its folder", err)
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err = keepOwner(file, like); err != nil {
		return "", cannot("keep the file's owner: only they and root can change it", err)
	}
	if err = file.Chmod(modeLike(like)); err != nil {
		return "", cannot("set the mode", err)
	}
	if _, err = file.Write(text); err != nil {
		return "", cannot("write in its folder", err)
	}
	if err = file.Sync(); err != nil {
		return "", cannot("write in its folder", err)
	}
	return file.Name(), file.Close()
}

// syncFolder makes a rename survive a crash.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return cannot("open its folder", err)
	}
	defer folder.Close()
	return ignoreUnsupported(folder.Sync())
}
