package keys

import (
	"context"
	"crypto/sha256"
	"fmt"
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
	text, mode, err := keyfile.ReadText(f.path)
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
	for _, r := range next.document.Revoked() {
		f.revoked[r.ID] = struct{}{}
	}
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
	if err := document.Check(time.Now(), f.options.room()); err != nil {
		return nil, nil, err
	}
	s := &schedule{document: document, keys: document.Schedule(), secrets: make(map[mcpseal.KeyID]mcpseal.Key)}
	for _, k := range s.keys {
		if _, ok := f.revoked[k.ID]; ok {
			return nil, nil, fmt.Errorf("key %s was revoked in a file before this one: revoke it here too, "+
				"or restart the service if that was a mistake", k.ID)
		}
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

// tooOpen says whether others can read a file of this mode, or change it.
func tooOpen(mode os.FileMode) bool {
	return runtime.GOOS != "windows" && mode.Perm()&0o026 != 0
}
