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
	secrets  map[tripseal.KeyID]tripseal.Key
}

// datedRing is a ring of keys, with the two times between which the ring is valid.
type datedRing struct {
	schedule     *schedule
	ring         *tripseal.Ring // nil if no key can be used; then no token can be sealed or opened
	since, until time.Time      // since: zero if no ring came before; until: zero if no ring follows
}

// covers reports whether the ring is valid at the time t. It also compares t with p.since,
// because the clock may have been set back.
func (p *datedRing) covers(t time.Time) bool {
	return !t.Before(p.since) && (p.until.IsZero() || t.Before(p.until))
}

// ringAt returns the ring for the time t. A key that had expired when the file was loaded may have
// no secret here, if that was wrapped; the ring then lacks it even if the clock was set back.
func (s *schedule) ringAt(t time.Time) *datedRing {
	p := &datedRing{schedule: s}
	p.since, p.until = s.keys.Around(t)
	var open []tripseal.Key
	sealer := s.keys.SealerAt(t)
	for _, k := range s.keys {
		switch secret, ok := s.secrets[k.ID]; {
		case ok && k == sealer:
			open = slices.Insert(open, 0, secret) // the first key seals
		case ok && k.Opens(t):
			open = append(open, secret)
		}
	}
	p.ring, _ = tripseal.NewRing(open...) // fails only if no key opens
	return p
}
