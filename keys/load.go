package keys

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

type fileSum [sha256.Size]byte

// load reads the file and puts it into use if its text changed. It first checks the whole
// file, and then swaps one pointer. It compares the hash of the text and not the file's time
// and size, because those can stay the same when a file is edited in place. If the parameter
// force is true, load also tries a file whose secrets could not be unwrapped a moment ago.
func (f *File) load(force bool) error {
	text, err := f.text()
	if err != nil {
		return f.withPath(err)
	}
	defer clear(text)
	sum := fileSum(sha256.Sum256(text))
	if f.current.Load() != nil && sum == f.good {
		return nil
	}
	if err := f.unwrapping.tooSoon(sum); err != nil && !force {
		return f.withPath(err)
	}
	next, err := f.verify(text, sum)
	if err != nil {
		return f.withPath(err)
	}
	f.good = sum
	for _, r := range next.document.Revoked() {
		f.revoked[r.ID] = struct{}{}
	}
	f.install(next)
	return nil
}

// install puts a new schedule into use. If this replica sealed tokens with an old key and they
// have not expired, the old key can still open them.
func (f *File) install(next *schedule) {
	f.turn.Lock()
	defer f.turn.Unlock()
	now := time.Now()
	if before := f.current.Load(); before != nil {
		f.sealed.recordSeals(before.schedule, f.since, now)
	}
	f.since = now
	next.late = f.sealed.lateKeys(next.document, f.revoked, now, f.options.room())
	f.current.Store(next.ringAt(now))
}

// verify parses the file's text and returns its schedule, or an error if the file cannot be
// used. The parameter sum is the hash of the text.
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
			needed = append(needed, k) // all keys, except expired keys whose secret is wrapped
		}
	}
	if s.secrets, err = f.unwrapping.secretsFor(f.ctx, needed, sum); err != nil {
		return nil, err
	}
	_, err = tripseal.NewRing(s.secretsOf(s.keys)...) // if a ring of all keys is valid, every later ring is too, because it has only some of them
	return s, err
}

// verifyChange returns an error if a new version of the file contains a key that was revoked,
// or lacks a key that still opens tokens. Such a version must not replace the one in use.
func (f *File) verifyChange(next *keyfile.Document, now time.Time) error {
	keys, revoked := next.ByID()
	for id := range keys {
		if _, ok := f.revoked[id]; ok {
			return fmt.Errorf("key %s was revoked in a file before this one: copy the newest file here, "+
				"or revoke the key here too; with this file, a restart would let the key open tokens again", id)
		}
	}
	p := f.current.Load()
	if p == nil {
		return nil
	}
	var missing []tripseal.KeyID
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
