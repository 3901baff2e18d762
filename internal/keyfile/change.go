package keyfile

import (
	"fmt"
	"time"

	"github.com/mcpseal/mcpseal"
)

// keepRevoked is how long the id of a revoked key stays at least.
const keepRevoked = 30 * 24 * time.Hour

// Rotate adds k, whose dates are set, and has the keys that had no end open until
// no token of theirs can be left.
func (d *Document) Rotate(k *Key, now time.Time, room Room) error {
	if s := d.Schedule(); len(s) > 0 && !s[len(s)-1].SealsFrom.Before(k.SealsFrom) {
		last := s[len(s)-1]
		return problem(fmt.Errorf("the new key would seal from %s, but key %s seals from %s, so the new one never would: is the clock of this machine right?",
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

// Extend lets keys open for as long as tokens of theirs may live, and returns
// those that it lengthened. One that is over opens again, if a token may be left.
// The last one gets no end.
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

// Revoke puts a revocation in the place of a key and its secret.
func (d *Document) Revoke(id mcpseal.KeyID, at time.Time) {
	for i, l := range d.lines {
		if l.key != nil && l.key.ID == id {
			d.lines[i] = line{revoked: &Revocation{id, l.key.SealsFrom, at}}
		}
	}
}

// Prune takes out keys that open nothing by any clock, and revocations that are
// old, and returns how many.
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
		// While an older key is there, this one says when it stopped sealing.
		if r == nil || now.Sub(r.At) <= keepRevoked || len(s) > 0 && s[0].SealsFrom.Before(r.SealsFrom) {
			return false
		}
		revoked++
		return true
	})
	return keys, revoked
}
