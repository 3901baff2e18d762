package sealtest

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
)

// TestReplayStore holds a store to the contract of [mcpseal.ReplayStore].
func TestReplayStore(t *testing.T, store mcpseal.ReplayStore) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	newUse := func() mcpseal.Use {
		use := mcpseal.Use{Round: 1, Issued: time.Now(), Until: time.Now().Add(time.Minute), Owner: [16]byte{1}}
		rand.Read(use.Flow[:])
		return use
	}
	claim := func(t *testing.T, use mcpseal.Use, want bool) {
		t.Helper()
		first, err := store.Claim(ctx, use)
		if err != nil {
			t.Fatal(err)
		}
		if first != want {
			t.Errorf("Claim = %v, want %v", first, want)
		}
	}

	t.Run("OnceForEachRound", func(t *testing.T) {
		use := newUse()
		claim(t, use, true)
		claim(t, use, false)
		next := use
		next.Round = 2
		claim(t, next, true)
		claim(t, next, false)
		claim(t, use, false)
		claim(t, newUse(), true)
	})
	t.Run("OnlyFlowAndRoundCount", func(t *testing.T) {
		use := newUse()
		claim(t, use, true)
		use.Owner, use.Until = [16]byte{2}, use.Until.Add(time.Minute)
		claim(t, use, false)
	})
	t.Run("NothingIsForgottenEarly", func(t *testing.T) {
		first := newUse()
		claim(t, first, true)
		for range 2000 {
			if _, err := store.Claim(ctx, newUse()); err != nil {
				t.Fatal(err)
			}
		}
		claim(t, first, false)
	})
	t.Run("OneWinnerAmongMany", func(t *testing.T) {
		for range 20 {
			use := newUse()
			var winners atomic.Int32
			var group sync.WaitGroup
			for range 32 {
				group.Go(func() {
					first, err := store.Claim(ctx, use)
					if err != nil {
						t.Error(err)
					}
					if first {
						winners.Add(1)
					}
				})
			}
			group.Wait()
			if n := winners.Load(); n != 1 {
				t.Fatalf("%d of 32 claims of one token succeeded", n)
			}
		}
	})
}
