package keyfile_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/tripseal/tripseal/internal/keyfile"
)

// TestFileThatChangesWhileItIsReadIsRefused changes a file while it is read. Half of the old text
// and half of the new text may together look like a file of keys.
func TestFileThatChangesWhileItIsReadIsRefused(t *testing.T) {
	for name, change := range map[string]func(path string, was os.FileInfo) error{
		"longer, at the same time": func(path string, was os.FileInfo) error {
			return errors.Join(os.Truncate(path, was.Size()+1), os.Chtimes(path, was.ModTime(), was.ModTime()))
		},
		"shorter, at the same time": func(path string, was os.FileInfo) error {
			return errors.Join(os.Truncate(path, was.Size()-1), os.Chtimes(path, was.ModTime(), was.ModTime()))
		},
		"as long, later": func(path string, was os.FileInfo) error {
			return os.Chtimes(path, was.ModTime(), was.ModTime().Add(time.Second))
		},
	} {
		path := newFile(t)
		was, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		restore := keyfile.WhileReading(func() { err = change(path, was) })
		text, busy := keyfile.ReadText(path)
		restore()
		if err != nil {
			t.Fatal(err)
		}
		if text != nil || !errors.Is(busy, keyfile.ErrBusy) {
			t.Errorf("%s: %d bytes, %v", name, len(text), busy)
		}
	}
	if _, err := keyfile.ReadText(newFile(t)); err != nil {
		t.Errorf("a file that stays as it is: %v", err)
	}
}
