package keyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

var (
	// ErrExists means that the file to create already exists.
	ErrExists = errors.New("the file exists already")
	// ErrChanged means that something else changed the file at the same time.
	ErrChanged = errors.New("something else changed the file at the same time; nothing was written")
	// ErrLocked means that another command holds the lock for too long.
	ErrLocked = errors.New("another command is changing the file")
	// ErrTooLong means that the file would be too long to be read again.
	ErrTooLong = fmt.Errorf("the file would have more than %d bytes: prune it", MaxSize)
)

// Read returns the document in the file at path.
func Read(path string) (*Document, error) {
	text, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Create writes a document to a new file. It never replaces a file.
func Create(path string, d *Document) error {
	temporary, err := writeBeside(path, d.Bytes(), nil)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return failedTo("open its folder", err)
	}
	defer folder.Close()
	if err := os.Link(temporary, path); errors.Is(err, os.ErrExist) {
		return ErrExists
	} else if err != nil {
		return failedTo("make the file", err)
	}
	return syncFolder(folder)
}

// Update calls the function change with the document in the file. Then it replaces the file
// with the result, completely or not at all. Updates of the same file wait for each other. If
// something else changes the file at the same time, Update returns an error. oldMode is the
// mode of the file before the update, and newMode is the mode after it.
func Update(path string, change func(*Document) error) (oldMode, newMode os.FileMode, err error) {
	// If path is a link, it stays a link: the file that it leads to is replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return 0, 0, failedTo("read the file", err)
	}
	file, info, err := openLocked(target)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close() // this also releases the lock
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err != nil {
		return 0, 0, failedTo("read the file", err)
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
	defer os.Remove(temporary) // does nothing if the file was renamed
	folder, err := os.Open(filepath.Dir(target))
	if err != nil {
		return 0, 0, failedTo("open its folder", err)
	}
	defer folder.Close()
	// Return an error if something else changed the file. A change between this check and
	// the rename is not noticed.
	again, err := ReadText(target)
	if err != nil || !bytes.Equal(again, text) {
		return 0, 0, ErrChanged
	}
	if now, err := filepath.EvalSymlinks(path); err != nil || now != target {
		return 0, 0, ErrChanged
	}
	if !locksWork {
		file.Close() // some systems without locks cannot replace an open file
	}
	if err := os.Rename(temporary, target); err != nil {
		return 0, 0, failedTo("replace the file", err)
	}
	return info.Mode().Perm(), modeLike(info), syncFolder(folder)
}
