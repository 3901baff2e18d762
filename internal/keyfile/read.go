package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

var (
	// ErrNotRegular is a folder, a pipe or the like.
	ErrNotRegular = errors.New("not a regular file")
	// ErrBusy is a file that somebody is writing.
	ErrBusy = errors.New("the file changed while it was read")
)

var readAll = io.ReadAll // changed by a test alone

// ReadText reads the text of a file that does not change meanwhile.
func ReadText(path string) (text []byte, err error) {
	if info, err := os.Stat(path); err != nil {
		return nil, cannot("read the file", err)
	} else if !info.Mode().IsRegular() {
		return nil, ErrNotRegular // opening a pipe would wait for a writer
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return nil, cannot("read the file", err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, cannot("read the file", err)
	}
	if !before.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	if text, err = readAll(io.LimitReader(file, MaxSize+1)); err != nil {
		return nil, cannot("read the file", err)
	}
	after, err := file.Stat()
	if err != nil {
		return nil, cannot("read the file", err)
	}
	if before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return nil, ErrBusy
	}
	return text, nil
}

// cannot says what could not be done, and drops the path, which the caller names.
func cannot(do string, err error) error {
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
