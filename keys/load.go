package keys

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/mcpseal/mcpseal/internal/keyfile"
)

type fileSum [sha256.Size]byte

// read takes the file into use if it changed: all of it is read and checked
// first, then one pointer is swapped. The text itself is compared, because
// times and sizes can stay the same when a file is edited in place.
func (f *File) read(again bool) error {
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
	if err := f.unwrapping.tooSoon(sum); err != nil && !again {
		return f.refused(err)
	}
	next, err := f.check(text, sum)
	if err != nil {
		return f.refused(err)
	}
	f.good = sum
	for _, r := range next.document.Revoked() {
		f.revoked[r.ID] = struct{}{}
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	f.phase.Store(next.phaseAt(time.Now()))
	return nil
}

// check makes a schedule of the text, or says why it cannot be used.
func (f *File) check(text []byte, sum fileSum) (*schedule, error) {
	document, err := keyfile.Parse(text)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := document.Check(now, f.options.room()); err != nil {
		return nil, err
	}
	s := &schedule{document: document, keys: document.Schedule()}
	var needed []*keyfile.Key
	for _, k := range s.keys {
		if _, ok := f.revoked[k.ID]; ok {
			return nil, fmt.Errorf("key %s was revoked in a file before this one: revoke it here too, "+
				"or restart the service if that was a mistake", k.ID)
		}
		if k.Opens(now) || !k.Secret.Wrapped() {
			needed = append(needed, k) // what is over need not be unwrapped any more
		}
	}
	if s.secrets, err = f.unwrapping.all(f.ctx, needed, sum); err != nil {
		return nil, err
	}
	_, err = s.ringOf(s.keys) // every later ring is a part of it
	return s, err
}
