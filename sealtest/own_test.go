package sealtest_test

import (
	"testing"
	"time"

	"github.com/tripseal/tripseal/sealtest"
)

func TestTheStoreOfTheExamplePassesTheSuite(t *testing.T) {
	t.Parallel()
	sealtest.TestReplayStore(t, &myStore{used: make(map[token]time.Time)})
}
