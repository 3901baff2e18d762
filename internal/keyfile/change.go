package keyfile

import (
	"fmt"
	"slices"
	"time"

	"github.com/tripseal/tripseal"
)

// keepRetired is how long a key stays in the file after it has stopped opening tokens, so that an
// operator can still inspect an old token.
const keepRetired = 30 * 24 * time.Hour

// Rotate adds the new key k, whose dates must be set. If an older key has no end date, Rotate
// gives it one: the time when the last token of that older key has expired. Rotate takes out keys
// that stopped opening tokens 30 days ago.
func (d *Document) Rotate(k *Key, now time.Time, room Room) error {
	s := d.Schedule()
	if len(s) > 0 && !s[len(s)-1].SealsFrom.Before(k.SealsFrom) {
		last := s[len(s)-1]
		return fmt.Errorf("the new key would seal from %s, but key %s seals from %s, so the new one would never seal: "+
			"is the clock of this machine right?", formatTime(k.SealsFrom), last.ID, formatTime(last.SealsFrom))
	}
	for _, old := range s {
		if old.OpensUntil.IsZero() {
			old.OpensUntil = k.SealsFrom.Add(room.Span())
		}
	}
	d.lines = slices.DeleteFunc(d.lines, func(l line) bool { return l.key != nil && !l.key.Opens(now.Add(-keepRetired)) })
	d.Add(k)
	d.makeRoom(now, room)
	return d.Check(now, room)
}

// Revoke puts a revocation in the place of the key with this id, so that its secret is gone. Other
// keys may then seal for longer, and open for longer.
func (d *Document) Revoke(id tripseal.KeyID, now time.Time, room Room) {
	for i, l := range d.lines {
		if l.key != nil && l.key.ID == id {
			d.lines[i] = line{revoked: &Revocation{id, l.key.SealsFrom, now}}
		}
	}
	d.makeRoom(now, room)
}

// makeRoom lets every key open tokens until the key's last token has expired. An expired key opens
// tokens again if some of its tokens may still be valid. The last key has no end.
func (d *Document) makeRoom(now time.Time, room Room) {
	s := d.Schedule()
	for i, end := range d.endsOfSealing(s) {
		if needed := end.at.Add(room.Span()); s[i].stopsTooEarly(needed, now) {
			s[i].OpensUntil = needed
		}
	}
	if len(s) > 0 {
		s[len(s)-1].OpensUntil = time.Time{}
	}
}
