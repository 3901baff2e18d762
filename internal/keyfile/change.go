package keyfile

import (
	"fmt"
	"time"

	"github.com/tripseal/tripseal"
)

// keepRevoked is the shortest time for which the id of a revoked key stays in the file.
const keepRevoked = 30 * 24 * time.Hour

// Rotate adds the new key k, whose dates must be set. If an older key has no end date, Rotate
// gives it one: the time when the last token of that older key has expired.
func (d *Document) Rotate(k *Key, now time.Time, room Room) error {
	if s := d.Schedule(); len(s) > 0 && !s[len(s)-1].SealsFrom.Before(k.SealsFrom) {
		last := s[len(s)-1]
		return problem(fmt.Errorf("the new key would seal from %s, but key %s seals from %s, so the new one would never seal: is the clock of this machine right?",
			formatTime(k.SealsFrom), last.ID, formatTime(last.SealsFrom)))
	}
	for _, old := range d.Keys() {
		if old.OpensUntil.IsZero() {
			old.OpensUntil = k.SealsFrom.Add(room.Span())
		}
	}
	if err := d.Add(k); err != nil {
		return err
	}
	d.Extend(now, room)
	return d.Check(now, room)
}

// Extend lets every key open tokens until the key's last token has expired. It returns the
// keys that it changed. An expired key opens tokens again if some of its tokens may still be
// valid. Extend removes the end date of the last key.
func (d *Document) Extend(now time.Time, room Room) (extended []*Key) {
	s := d.Schedule()
	if len(s) == 0 {
		return nil
	}
	for i, end := range d.endsOfSealing(s) {
		if end.tooShort(s[i], now, room) != nil {
			s[i].OpensUntil = end.at.Add(room.Span())
			extended = append(extended, s[i])
		}
	}
	if last := s[len(s)-1]; !last.OpensUntil.IsZero() {
		last.OpensUntil = time.Time{}
		extended = append(extended, last)
	}
	return extended
}

// Revoke removes the key with this id, including its secret, and puts a revocation in its
// place.
func (d *Document) Revoke(id tripseal.KeyID, at time.Time) {
	for i, l := range d.lines {
		if l.key != nil && l.key.ID == id {
			d.lines[i] = line{revoked: &Revocation{id, l.key.SealsFrom, at}}
		}
	}
}

// Prune removes old revocations, and keys that have expired by the clock of every replica. It
// returns how many keys and revocations it removed.
func (d *Document) Prune(now time.Time) (keys, revoked int) {
	over := now.Add(-2 * d.Room().AtLeast(Room{Skew: UsualSkew}).Skew)
	d.remove(func(k *Key, _ *Revocation) bool {
		if k == nil || k.Opens(over) {
			return false
		}
		keys++
		return true
	})
	s := d.Schedule()
	d.remove(func(_ *Key, r *Revocation) bool {
		// Keep a revocation while the file has a key with an earlier SealsFrom than the revoked
		// key. The revocation may be the only record of when the earlier key stopped sealing: see
		// endsOfSealing.
		if r == nil || now.Sub(r.At) <= keepRevoked || len(s) > 0 && s[0].SealsFrom.Before(r.SealsFrom) {
			return false
		}
		revoked++
		return true
	})
	return keys, revoked
}
