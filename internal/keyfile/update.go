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
		return err
	}
	return syncFolder(path)
}

// Update lets change work on the document in the file and puts the result in its
// place, at once or not at all. Commands wait for each other; whoever writes in
// another way is noticed. It returns the mode that the file had.
func Update(path string, change func(*Document) error) (before os.FileMode, err error) {
	// A link stays a link: what it leads to is replaced.
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return 0, err
	}
	file, info, err := openLocked(path)
	if err != nil {
		return 0, err
	}
	defer file.Close() // and with it the lock
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return 0, err
	}
	document, err := Parse(text)
	if err != nil {
		return 0, err
	}
	if err := change(document); err != nil {
		return 0, err
	}
	changed := document.Bytes()
	if len(changed) > MaxSize {
		return 0, ErrTooLong
	}
	temporary, err := writeBeside(path, changed, info)
	if err != nil {
		return 0, err
	}
	defer os.Remove(temporary) // fails once it was renamed
	again, _, err := ReadText(path)
	if err != nil || !bytes.Equal(again, text) {
		return 0, ErrChanged
	}
	if err := os.Rename(temporary, path); err != nil {
		return 0, err
	}
	return info.Mode().Perm(), syncFolder(path)
}

// openLocked opens the file that is at path once it has the lock.
func openLocked(path string) (*os.File, os.FileInfo, error) {
	deadline := time.Now().Add(lockTimeout)
	for {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		locked, err := tryLock(file)
		if err != nil {
			file.Close()
			return nil, nil, err
		}
		if locked {
			info, err := file.Stat()
			if err != nil {
				file.Close()
				return nil, nil, err
			}
			// Whoever had the lock may have put another file in its place.
			if current, err := os.Stat(path); err == nil && os.SameFile(info, current) {
				if !info.Mode().IsRegular() {
					file.Close()
					return nil, nil, ErrNotRegular
				}
				return file, info, nil
			}
		}
		file.Close()
		if time.Now().After(deadline) {
			return nil, nil, ErrLocked
		}
		if !locked {
			time.Sleep(lockPause)
		}
	}
}

// writeBeside writes a file in the same folder that only its owner can read:
// the owner of like, if there is one.
func writeBeside(path string, text []byte, like os.FileInfo) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if err = file.Chmod(fileMode); err != nil {
		return "", err
	}
	if err = keepOwner(file, like); err != nil {
		return "", fmt.Errorf("the file belongs to somebody else, and stays theirs only if they or root run this: %w", err)
	}
	if _, err = file.Write(text); err != nil {
		return "", err
	}
	if err = file.Sync(); err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}

// syncFolder makes a rename survive a crash.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return ignoreUnsupported(folder.Sync())
}
