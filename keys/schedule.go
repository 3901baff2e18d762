package keys

import (
	"slices"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/keyfile"
)

// schedule is a file of keys that was read and checked, and whose secrets were unwrapped.
type schedule struct {
	document *keyfile.Document
	keys     keyfile.Schedule // the keys of the document, in the order in which they seal
	secrets  secretsOf
	late     []lateKey
}

// secretsOf maps the id of each key in a file to the key with its secret.
type secretsOf map[tripseal.KeyID]tripseal.Key

// datedRing is a ring of keys, with the two times between which the ring is valid.
type datedRing struct {
	schedule     *schedule
	ring         *tripseal.Ring // nil if all keys have expired; then no token can be sealed or opened
	since, until time.Time      // since: zero if no ring came before; until: zero if no ring follows
}

// covers reports whether the ring is valid at the time t. It also compares t with p.since,
// because the clock may have been set back.
func (p *datedRing) covers(t time.Time) bool {
	return !t.Before(p.since) && (p.until.IsZero() || t.Before(p.until))
}

func (s *schedule) ringAt(t time.Time) *datedRing {
	p := &datedRing{schedule: s}
	p.since, p.until = s.keys.Around(t)
	opening := s.secretsOf(s.keys.OpenersAt(t))
	for _, l := range s.late {
		switch {
		case !t.Before(l.until):
			if l.until.After(p.since) {
				p.since = l.until
			}
			continue
		case p.until.IsZero() || l.until.Before(p.until):
			p.until = l.until
		}
		if len(opening) > 0 && !contains(opening, l.key.ID()) { // do not make a ring of a late key alone, because the key would then seal too
			opening = append(opening, l.key)
		}
	}
	if ring, err := tripseal.NewRing(opening...); err == nil {
		p.ring = ring
	}
	return p
}

func contains(keys []tripseal.Key, id tripseal.KeyID) bool {
	for _, k := range keys {
		if k.ID() == id {
			return true
		}
	}
	return false
}

// secretsOf returns the secrets of the given keys. If a key had already expired when the
// file was loaded, its secret may still be wrapped. Then secretsOf leaves the key out. Such a
// key is among the given keys only if the clock was set back after the load, or if all keys
// of the file are given.
func (s *schedule) secretsOf(keys []*keyfile.Key) (secrets []tripseal.Key) {
	for _, k := range keys {
		if secret, ok := s.secrets[k.ID]; ok {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

// A new version of the file may drop a key, or make it expire, although this replica sealed
// with it a moment ago. The replica still opens the tokens that it sealed with that key until
// they expire, unless the key is revoked. The types below keep track of these keys.

// lastSeals has each key with which this process may have sealed, and the latest time at
// which it may have sealed with this key.
type lastSeals map[tripseal.KeyID]lastSeal

type lastSeal struct {
	key tripseal.Key
	at  time.Time
}

// recordSeals records which keys of a schedule may have sealed while the schedule was in use,
// that is, between the two given times.
func (l lastSeals) recordSeals(s *schedule, since, until time.Time) {
	if until.Before(since) {
		since, until = until, since // the clock was set back
	}
	for from := since; !from.After(until); {
		_, next := s.keys.Around(from)
		end := until
		if !next.IsZero() && next.Before(until) {
			end = next
		}
		if k := s.keys.SealerAt(from); k != nil && end.After(l[k.ID].at) {
			if secret, known := s.secrets[k.ID]; known {
				l[k.ID] = lastSeal{secret, end}
			}
		}
		if next.IsZero() {
			return
		}
		from = next
	}
}

// lateKeys returns the keys that must open tokens for longer than the new file says. It also
// removes from l the keys that were revoked, and the keys whose tokens have all expired.
func (l lastSeals) lateKeys(d *keyfile.Document, revoked map[tripseal.KeyID]struct{}, now time.Time, room keyfile.Room) (late []lateKey) {
	room = room.AtLeast(d.Room())
	keys, _ := d.ByID()
	for id, last := range l {
		until := last.at.Add(room.TTL + room.Skew)
		if _, gone := revoked[id]; gone || !now.Before(until) {
			delete(l, id)
			continue
		}
		if k := keys[id]; k == nil || !k.OpensUntil.IsZero() && k.OpensUntil.Before(until) {
			late = append(late, lateKey{last.key, until})
		}
	}
	slices.SortFunc(late, func(a, b lateKey) int { return a.until.Compare(b.until) })
	return late
}

// lateKey is a key that opens tokens for longer than the file says.
type lateKey struct {
	key   tripseal.Key
	until time.Time
}
