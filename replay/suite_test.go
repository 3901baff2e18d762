package replay_test

import (
	"testing"

	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/sealtest"
)

func newStore(t testing.TB, config replay.Config) *replay.SingleProcess {
	t.Helper()
	if config.Logger == nil {
		config.Logger = sealtest.Logger(t)
	}
	store, err := replay.NewSingleProcess(config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSingleProcessPassesTheSuite(t *testing.T) {
	t.Parallel() // the suite waits for tokens to expire
	sealtest.TestReplayStore(t, newStore(t, replay.Config{}))
}
