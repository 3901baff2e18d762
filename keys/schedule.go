package keys

import (
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/keyfile"
)

// schedule is a file that was read, checked and unwrapped.
type schedule struct {
	document *keyfile.Document
	keys     keyfile.Schedule // of the document
	secrets  map[mcpseal.KeyID]mcpseal.Key
}

// phase is the ring between two dates of a schedule.
type phase struct {
	schedule     *schedule
	ring         *mcpseal.Ring // nil when no key is left, which fails every token
	since, until time.Time     // zero where nothing came before, or nothing follows
}

// covers also looks back: a clock may be set.
func (p *phase) covers(t time.Time) bool {
	return !t.Before(p.since) && (p.until.IsZero() || t.Before(p.until))
}

func (s *schedule) phaseAt(t time.Time) *phase {
	p := &phase{schedule: s}
	p.since, p.until = s.keys.Around(t)
	if ring, err := s.ringOf(s.keys.Opening(t)); err == nil {
		p.ring = ring
	}
	return p
}

func (s *schedule) ringOf(keys []*keyfile.Key) (*mcpseal.Ring, error) {
	secrets := make([]mcpseal.Key, len(keys))
	for i, k := range keys {
		secrets[i] = s.secrets[k.ID]
	}
	return mcpseal.NewRing(secrets...)
}
