package keys

import (
	"slices"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// A file that comes late, or with other dates, may end a key that this replica
// sealed with a moment ago. What it sealed it opens until that has expired,
// whatever the file says; only a revocation ends that.

// lastSeals is until when keys sealed here at most, since the process started.
type lastSeals map[mcpseal.KeyID]lastSeal

type lastSeal struct {
	key mcpseal.Key
	at  time.Time
}

// note remembers the keys of s that sealed while it was in use.
func (l lastSeals) note(s *schedule, since, until time.Time) {
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

// late returns the keys that open for longer than d says, and forgets those that
// need not be remembered.
func (l lastSeals) late(d *keyfile.Document, revoked map[mcpseal.KeyID]struct{}, now time.Time, room keyfile.Room) (late []lateKey) {
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

// lateKey is a key that opens for longer than the file says.
type lateKey struct {
	key   mcpseal.Key
	until time.Time
}
