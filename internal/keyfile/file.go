package keyfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

var (
	// ErrNotRegular means that the path leads to a folder, a pipe or the like.
	ErrNotRegular = errors.New("not a regular file")
	// ErrExists means that the file to create already exists.
	ErrExists = errors.New("the file exists already")
	// ErrChanged means that something else changed the file at the same time.
	ErrChanged = errors.New("something else changed the file at the same time; nothing was written")
)

// ReadText returns the text of a file. A file that is too long is cut after MaxSize+1 bytes.
func ReadText(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // with O_NONBLOCK, a pipe does not wait for a writer
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	return io.ReadAll(io.LimitReader(file, MaxSize+1))
}

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
	temporary, err := writeBeside(path, d, nil)
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if err := os.Link(temporary, path); errors.Is(err, os.ErrExist) {
		return ErrExists
	} else if err != nil {
		return err
	}
	syncFolder(path)
	return nil
}

// Update calls the function change with the document in the file. Then it replaces the file
// with the result, completely or not at all. Updates of the same file wait for each other. If
// something else changes the file at the same time, Update returns an error.
func Update(path string, change func(*Document) error) error {
	// If path is a link, it stays a link: the file that it leads to is replaced.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	file, info, err := openLocked(target)
	if err != nil {
		return err
	}
	defer file.Close() // this also releases the lock
	removeLeftovers(target)
	text, err := ReadText(target)
	if err != nil {
		return err
	}
	document, err := Parse(text)
	if err != nil {
		return err
	}
	if err := change(document); err != nil {
		return err
	}
	temporary, err := writeBeside(target, document, info)
	if err != nil {
		return err
	}
	defer os.Remove(temporary) // does nothing if the file was renamed
	// Return an error if something else changed the file, without the lock. A change between this
	// check and the rename is not noticed.
	if again, err := ReadText(path); err != nil || !bytes.Equal(again, text) {
		return ErrChanged
	}
	if !locksWork {
		file.Close() // some systems without locks cannot replace an open file
	}
	if err := os.Rename(temporary, target); err != nil {
		return err
	}
	syncFolder(target)
	return nil
}

// openLocked opens and locks the file at path, and waits for the lock.
func openLocked(path string) (*os.File, os.FileInfo, error) {
	for {
		// Open the file for writing, because some file systems lock only files that are open for
		// writing.
		file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
		if errors.Is(err, os.ErrPermission) {
			file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		}
		if err != nil {
			return nil, nil, err
		}
		err = lock(file)
		info, err2 := file.Stat()
		current, err3 := os.Stat(path)
		if err := errors.Join(err, err2, err3); err != nil {
			file.Close()
			return nil, nil, err
		}
		if os.SameFile(info, current) {
			return file, info, nil
		}
		file.Close() // the holder of the lock replaced the file meanwhile, so lock the new one
	}
}
