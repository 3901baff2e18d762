package cursor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

type datedSource struct {
	ring *tripseal.Ring
	told []time.Duration
}

func (s *datedSource) Ring() *tripseal.Ring { return s.ring }

func (s *datedSource) Outlast(ttl time.Duration) error {
	s.told = append(s.told, ttl)
	if ttl > 24*time.Hour {
		return errors.New("too long")
	}
	return nil
}

// TestSourceIsToldOfAChosenTTL checks that cursor.New calls the key source's method Outlast if the
// config sets a TTL. For the default TTL, cursor.New must not call this method. A keys.File keeps
// its keys long enough for that TTL anyway, unless its Options.LongestTTL is lower.
func TestSourceIsToldOfAChosenTTL(t *testing.T) {
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	source := &datedSource{ring: ring}
	for _, c := range []struct {
		ttl     time.Duration
		told    int
		refused bool
	}{{0, 0, false}, {2 * time.Hour, 1, false}, {48 * time.Hour, 1, true}} {
		boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "test"})
		if err != nil {
			t.Fatal(err)
		}
		source.told = nil // what the boundary told
		_, err = cursor.New(boundary, cursor.Options{TTL: c.ttl})
		if len(source.told) != c.told || (err != nil) != c.refused {
			t.Errorf("TTL %v: told %v, %v", c.ttl, source.told, err)
		}
	}
}
