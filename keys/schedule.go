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
	late     []lateKey
}

// secretsOf is the secrets of the keys in a file, by id.
type secretsOf map[mcpseal.KeyID]mcpseal.Key

// datedRing is the ring between two dates of a schedule.
type datedRing struct {
	schedule     *schedule
	ring         *mcpseal.Ring // nil when no key is left, which fails every token
	since, until time.Time     // zero where nothing came before, or nothing follows
}

// covers also looks back: a clock may be set.
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
		if len(opening) > 0 && !contains(opening, l.key.ID()) { // one that is late only opens
			opening = append(opening, l.key)
		}
	}
	if ring, err := mcpseal.NewRing(opening...); err == nil {
		p.ring = ring
	}
	return p
}

func contains(keys []mcpseal.Key, id mcpseal.KeyID) bool {
	for _, k := range keys {
		if k.ID() == id {
			return true
		}
	}
	return false
}

// secretsOf leaves out keys that were over when the file was loaded and so were
// not unwrapped: only a clock that is set back asks for them.
func (s *schedule) secretsOf(keys []*keyfile.Key) (secrets []mcpseal.Key) {
	for _, k := range keys {
		if secret, ok := s.secrets[k.ID]; ok {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
