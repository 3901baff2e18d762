package tripseal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// datedSource is a key source. It records the TTL of each call of Outlast.
type datedSource struct {
	ring    *tripseal.Ring
	told    []time.Duration
	outlast func(time.Duration) error
}

func (s *datedSource) Ring() *tripseal.Ring { return s.ring }

func (s *datedSource) Outlast(ttl time.Duration) error {
	s.told = append(s.told, ttl)
	return s.outlast(ttl)
}

func TestSourceIsToldHowLongTokensLive(t *testing.T) {
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ttl, url, want time.Duration
	}{{0, 0, 10 * time.Minute}, {time.Hour, 0, time.Hour}, {time.Hour, time.Minute, time.Hour}, {0, 24 * time.Hour, 24 * time.Hour}} {
		source := &datedSource{ring: ring, outlast: func(time.Duration) error { return nil }}
		if _, err := tripseal.New(tripseal.Config{Keys: source, Audience: "test", TTL: c.ttl, URLTTL: c.url}); err != nil {
			t.Fatal(err)
		}
		if len(source.told) != 1 || source.told[0] != c.want {
			t.Errorf("TTL %v, URLTTL %v: told %v", c.ttl, c.url, source.told)
		}
	}
}

func TestSourceThatCannotOutlastTokensIsRefused(t *testing.T) {
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	for want, outlast := range map[string]func(time.Duration) error{
		"Config.Keys: too soon":             func(time.Duration) error { return errors.New("too soon") },
		"Config.Keys: panic of type string": func(time.Duration) error { panic("sesame") },
	} {
		source := &datedSource{ring: ring, outlast: outlast}
		_, err := tripseal.New(tripseal.Config{Keys: source, Audience: "test"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
