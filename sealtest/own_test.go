package sealtest_test

import (
	"testing"
	"time"

	"github.com/tripseal/tripseal/sealtest"
)

func TestTheStoreOfTheExamplePassesTheSuite(t *testing.T) {
	sealtest.TestReplayStore(t, &myStore{used: make(map[token]time.Time)})
}
