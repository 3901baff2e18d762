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
	secrets  secretsOf
}

// secretsOf is the secrets of the keys in a file, by id.
type secretsOf map[mcpseal.KeyID]mcpseal.Key

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

// ringOf leaves out keys that were over when the file was loaded and so were
// not unwrapped: only a clock that is set back asks for them.
func (s *schedule) ringOf(keys []*keyfile.Key) (*mcpseal.Ring, error) {
	var secrets []mcpseal.Key
	for _, k := range keys {
		if secret, ok := s.secrets[k.ID]; ok {
			secrets = append(secrets, secret)
		}
	}
	return mcpseal.NewRing(secrets...)
}
