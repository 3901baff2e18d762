package sealtest

import (
	"context"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
)

// TestKeySource tests a source against the contract of [tripseal.KeySource]. Call it in a
// test of your own source of keys.
func TestKeySource(t *testing.T, source tripseal.KeySource) {
	t.Run("AlwaysHasARing", func(t *testing.T) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 100 {
					if ring := source.Ring(); ring == nil || len(ring.IDs()) == 0 {
						t.Error("no ring, or one without keys")
						return
					}
				}
			})
		}
		group.Wait()
	})
	t.Run("ServesABoundary", func(t *testing.T) {
		ctx := context.Background()
		boundary, err := tripseal.New(tripseal.Config{Keys: source, Audience: "sealtest", Logger: Logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		request := tripseal.Request{Method: "tools/call", Target: "deploy"}
		round, err := boundary.Open(ctx, request, "")
		if err != nil {
			t.Fatal(err)
		}
		want := "step=1"
		token, err := boundary.Seal(ctx, &round, &want)
		if err != nil {
			t.Fatal(err)
		}
		round, err = boundary.Open(ctx, request, token)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := round.State(); !ok || got != want {
			t.Errorf("state came back as %q, %v", got, ok)
		}
	})
}
