package keys

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

type fileSum [sha256.Size]byte

// load puts the file into use if its text changed. It checks the whole file first, and then
// swaps one pointer. It compares the text rather than the file's time and size, because
// these can stay the same when a file is edited in place.
func (f *File) load(force bool) error {
	text, err := f.text()
	if err != nil {
		return f.refused(err)
	}
	defer clear(text)
	sum := fileSum(sha256.Sum256(text))
	if f.current.Load() != nil && sum == f.good {
		return nil
	}
	if err := f.unwrapping.tooSoon(sum); err != nil && !force {
		return f.refused(err)
	}
	next, err := f.verify(text, sum)
	if err != nil {
		return f.refused(err)
	}
	f.good = sum
	for _, r := range next.document.Revoked() {
		f.revoked[r.ID] = struct{}{}
	}
	f.use(next)
	return nil
}

// use puts the schedule next into use. It keeps the old keys with which this replica sealed
// tokens that have not expired.
func (f *File) use(next *schedule) {
	f.turn.Lock()
	defer f.turn.Unlock()
	now := time.Now()
	if before := f.current.Load(); before != nil {
		f.sealed.note(before.schedule, f.since, now)
	}
	f.since = now
	next.late = f.sealed.late(next.document, f.revoked, now, f.options.room())
	f.current.Store(next.ringAt(now))
}

// verify returns the schedule in the file's text, or an error if it cannot be used.
func (f *File) verify(text []byte, sum fileSum) (*schedule, error) {
	document, err := keyfile.Parse(text)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := document.Check(now, f.options.room()); err != nil {
		return nil, err
	}
	s := &schedule{document: document, keys: document.Schedule()}
	if err := f.verifyChange(document, now); err != nil {
		return nil, err
	}
	var needed []*keyfile.Key
	for _, k := range s.keys {
		if k.Opens(now) || !k.Secret.Wrapped() {
			needed = append(needed, k) // an expired key with a wrapped secret is not needed
		}
	}
	if s.secrets, err = f.unwrapping.all(f.ctx, needed, sum); err != nil {
		return nil, err
	}
	_, err = mcpseal.NewRing(s.secretsOf(s.keys)...) // if this ring of all keys is good, so is every later ring, which has some of these keys
	return s, err
}

// verifyChange returns an error if next must not replace the file in use, because it brings
// back a revoked key or lacks a key that still opens tokens.
func (f *File) verifyChange(next *keyfile.Document, now time.Time) error {
	keys, revoked := next.ByID()
	for id := range keys {
		if _, ok := f.revoked[id]; ok {
			return fmt.Errorf("key %s was revoked in a file before this one: revoke it here too, "+
				"or restart the service if that was a mistake", id)
		}
	}
	p := f.current.Load()
	if p == nil {
		return nil
	}
	var missing []mcpseal.KeyID
	for _, k := range p.schedule.keys {
		if keys[k.ID] == nil && revoked[k.ID] == nil && k.Opens(now) {
			missing = append(missing, k.ID)
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("the file lacks key %s, which still opens tokens: put its line back, revoke it, "+
			"or restart the service if its tokens may be lost", missing[0])
	}
	return fmt.Errorf("the file lacks key %s and %d others that still open tokens: put their lines back, revoke them, "+
		"or restart the service if their tokens may be lost", missing[0], len(missing)-1)
}
