package keys

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// unwrapTimeout bounds how long the secrets of one file may take.
const unwrapTimeout = 30 * time.Second

type (
	fileSum    [sha256.Size]byte
	wrappedSum struct {
		id  mcpseal.KeyID
		sum [sha256.Size]byte
	}
)

// read takes the file into use if it changed: all of it is read and checked
// first, then one pointer is swapped. The text itself is compared, because
// times and sizes can stay the same when a file is edited in place.
func (f *File) read() error {
	text, mode, err := readFile(f.path)
	if err != nil {
		return f.refused(err)
	}
	defer clear(text)
	f.report.mode = mode
	sum := fileSum(sha256.Sum256(text))
	if f.phase.Load() != nil && sum == f.good {
		return nil
	}
	next, cache, err := f.check(text)
	if err != nil {
		return f.refused(err)
	}
	f.cache, f.good = cache, sum
	f.turn.Lock()
	defer f.turn.Unlock()
	f.phase.Store(next.phaseAt(time.Now()))
	return nil
}

// check makes a schedule of the text, or says why it cannot be used.
func (f *File) check(text []byte) (*schedule, map[wrappedSum]mcpseal.Key, error) {
	document, err := keyfile.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	s := &schedule{keys: document.Schedule(), secrets: make(map[mcpseal.KeyID]mcpseal.Key)}
	if err := s.keys.Check(time.Now(), f.options.room()); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(f.ctx, unwrapTimeout)
	defer cancel()
	cache := make(map[wrappedSum]mcpseal.Key)
	for _, k := range s.keys {
		wrapped := wrappedSum{k.ID, k.Secret.Sum()}
		key, known := f.cache[wrapped]
		if !known {
			if key, err = k.Open(ctx, f.options.unwrappers()); err != nil {
				return nil, nil, err
			}
		}
		s.secrets[k.ID], cache[wrapped] = key, key
	}
	_, err = s.ringOf(s.keys) // every later ring is a part of it
	return s, cache, err
}

// readFile reads a file that does not change meanwhile.
func readFile(path string) (text []byte, mode os.FileMode, err error) {
	if info, err := os.Stat(path); err != nil {
		return nil, 0, plainPathError(err)
	} else if !info.Mode().IsRegular() {
		return nil, 0, errNotRegular // opening a pipe would wait for a writer
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, plainPathError(err)
	}
	defer file.Close()
	before, err := file.Stat()
	if err != nil {
		return nil, 0, plainPathError(err)
	}
	if text, err = io.ReadAll(io.LimitReader(file, keyfile.MaxSize+1)); err != nil {
		return nil, 0, plainPathError(err)
	}
	after, err := file.Stat()
	if err != nil {
		return nil, 0, plainPathError(err)
	}
	if before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
		return nil, 0, fmt.Errorf("the file changed while it was read")
	}
	return text, after.Mode(), nil
}

// plainPathError drops the path, which the caller names.
func plainPathError(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return fmt.Errorf("cannot %s the file: %w", e.Op, e.Err)
	}
	return err
}

// tooOpen says whether others can read a file of this mode, or change it.
func tooOpen(mode os.FileMode) bool {
	return runtime.GOOS != "windows" && mode.Perm()&0o026 != 0
}
