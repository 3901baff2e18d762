package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

var (
	// ErrNotRegular means that the path leads to a folder, a pipe or the like.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBusy means that the file changed while it was read.
	ErrBusy = errors.New("the file changed while it was read")
)

var readAll = io.ReadAll // a variable, so that a test can change it

// ReadText returns the text of a file, or an error if the file changed while it was read.
func ReadText(path string) (text []byte, err error) {
	if info, err := os.Stat(path); err != nil {
		return nil, failedTo("read the file", err)
	} else if !info.Mode().IsRegular() {
		return nil, ErrNotRegular // opening a pipe would wait for a writer
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // with O_NONBLOCK, because the path may have become a pipe
	if err != nil {
		return nil, failedTo("read the file", err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, failedTo("read the file", err)
	}
	if !before.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	if text, err = readAll(io.LimitReader(file, MaxSize+1)); err != nil {
		return nil, failedTo("read the file", err)
	}
	after, err := file.Stat()
	if err != nil {
		return nil, failedTo("read the file", err)
	}
	if before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return nil, ErrBusy
	}
	return text, nil
}

// failedTo returns an error that says what could not be done and why. It leaves out the path,
// because the caller adds it.
func failedTo(do string, err error) error {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("cannot %s: %w", do, err)
}
