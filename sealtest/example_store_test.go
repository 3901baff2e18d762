package sealtest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// myStore stands for a store of your own. It remembers used tokens in a map.
type myStore struct {
	mu   sync.Mutex
	used map[token]time.Time // when each used token may be forgotten
}

type token struct {
	flow  [16]byte
	round int
}

func (s *myStore) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	this := token{use.Flow, use.Round}
	if _, used := s.used[this]; used {
		return false, nil
	}
	s.used[this] = use.Until
	return true, nil
}

// The test of a store of your own is one line.
func ExampleTestReplayStore() {
	var t *testing.T // the parameter of your test

	sealtest.TestReplayStore(t, &myStore{used: make(map[token]time.Time)})
}
