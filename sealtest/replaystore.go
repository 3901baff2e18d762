package sealtest

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// TestReplayStore tests a store against the contract of [tripseal.ReplayStore], in
// about four seconds. If the store is a [tripseal.ResultStore], it tests that too. It cannot test what happens when the store's server hangs: the store's
// own tests must check that Spend then returns by its context's deadline. If a store
// refuses tokens for a while after it starts, wait for that long before you call
// TestReplayStore. Call it in a test of your own store.
//
// If the store says that it cannot block (see [tripseal.NonBlockingStore]), the suite also
// checks that Spend does not wait for its context, a network, a channel or a timer. It does
// not notice a store that waits for files, or that waits only once in a while.
func TestReplayStore(t *testing.T, store tripseal.ReplayStore) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	newUse := func() tripseal.Use {
		use := tripseal.Use{Round: 1, Issued: time.Now(), Until: time.Now().Add(time.Minute), Owner: [16]byte{1}}
		rand.Read(use.Flow[:])
		return use
	}
	spend := func(t *testing.T, use tripseal.Use, want bool) {
		t.Helper()
		first, err := store.Spend(ctx, use)
		if err != nil {
			t.Fatal(err)
		}
		if first != want {
			t.Errorf("Spend = %v, want %v", first, want)
		}
	}

	t.Run("NothingIsForgottenBeforeItsTime", func(t *testing.T) {
		const lasts, margin = 1500 * time.Millisecond, 200 * time.Millisecond
		for range 5 {
			use := newUse()
			use.Until = use.Issued.Add(lasts)
			spend(t, use, true)
			time.Sleep(time.Until(use.Until.Add(-margin)))
			first, err := store.Spend(ctx, use)
			if !time.Now().Before(use.Until) {
				continue // the use expired before Spend returned: this machine is too slow for the check
			}
			if first || err != nil {
				t.Errorf("%v after the first use, and %v before its end, Spend = %v, %v", lasts-margin, margin, first, err)
			}
			return
		}
		t.Error("this machine is too slow to look at a use before its end")
	})
	t.Run("OnceForEachRound", func(t *testing.T) {
		use := newUse()
		spend(t, use, true)
		spend(t, use, false)
		next := use
		next.Round = 2
		spend(t, next, true)
		spend(t, next, false)
		spend(t, use, false)
		spend(t, newUse(), true)
	})
	t.Run("RoundsAreToldApart", func(t *testing.T) {
		use := newUse()
		for _, round := range []int{1, 2, 3, 10, 11, 12, 21, 111, 255, 256, 257, 512, 1 << 15, 1<<16 - 1} {
			use.Round = round
			spend(t, use, true)
			spend(t, use, false)
		}
	})
	t.Run("FlowsAreToldApart", func(t *testing.T) {
		use := newUse()
		spend(t, use, true)
		for i := range use.Flow {
			other := use
			other.Flow[i] ^= 1
			spend(t, other, true)
			other.Flow[i] ^= 0x81
			spend(t, other, true)
		}
		// Use flows that begin with zero bytes: a store that writes a flow as text or as a
		// number might lose these bytes.
		clear(use.Flow[:8])
		for i := 8; i < 16; i++ {
			use.Flow[i]++
			spend(t, use, true)
		}
		spend(t, use, false)
	})
	t.Run("OnlyFlowAndRoundCount", func(t *testing.T) {
		use := newUse()
		spend(t, use, true)
		use.Owner, use.Until = [16]byte{2}, use.Until.Add(time.Minute)
		spend(t, use, false)
	})
	t.Run("NothingIsForgottenEarly", func(t *testing.T) {
		first := newUse()
		spend(t, first, true)
		for range 2000 {
			if _, err := store.Spend(ctx, newUse()); err != nil {
				t.Fatal(err)
			}
		}
		spend(t, first, false)
	})
	t.Run("AContextThatIsOverSpendsNothing", func(t *testing.T) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		use := newUse()
		if first, err := store.Spend(over, use); first || err == nil {
			t.Errorf("with a context that has ended, Spend = %v, %v", first, err)
		}
		if first, err := store.Spend(ctx, use); !first || err != nil {
			t.Errorf("Spend with a context that had ended spent the token: Spend = %v, %v", first, err)
		}
	})
	t.Run("AContextThatEndsMeanwhileIsNoAnswer", func(t *testing.T) {
		for i := range 50 {
			use := newUse()
			short, cancel := context.WithTimeout(ctx, time.Duration(i)*20*time.Microsecond)
			start := time.Now()
			first, err := store.Spend(short, use)
			cancel()
			if took := time.Since(start); took > 5*time.Second {
				t.Fatalf("a use with a deadline took %v", took)
			}
			switch {
			case first && err != nil:
				t.Fatalf("Spend = true and an error: %v", err)
			case !first && err == nil:
				t.Fatal("a fresh token counts as used because its context ended")
			case first:
				spend(t, use, false)
			}
		}
	})
	t.Run("OneWinnerAmongMany", func(t *testing.T) {
		for range 20 {
			use := newUse()
			var winners atomic.Int32
			var group sync.WaitGroup
			for range 32 {
				group.Go(func() {
					first, err := store.Spend(ctx, use)
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
				t.Fatalf("%d of 32 uses of one token succeeded", n)
			}
		}
	})
	t.Run("EachOfManyTokensIsWonOnce", func(t *testing.T) {
		const goroutines = 64
		var uses [100]tripseal.Use
		var winners [len(uses)]atomic.Int32
		for i := range uses {
			uses[i] = newUse()
		}
		var group sync.WaitGroup
		for g := range goroutines {
			group.Go(func() {
				for i := range uses {
					i = (i + g) % len(uses)
					first, err := store.Spend(ctx, uses[i])
					if err != nil {
						t.Error(err)
					}
					if first {
						winners[i].Add(1)
					}
				}
			})
		}
		group.Wait()
		for i := range winners {
			if n := winners[i].Load(); n != 1 {
				t.Fatalf("%d of %d uses of token %d of %d succeeded", n, goroutines, i, len(uses))
			}
		}
	})
	if s, ok := store.(tripseal.ResultStore); ok {
		testResults(t, ctx, s, newUse)
	}
	if s, ok := store.(tripseal.NonBlockingStore); ok && s.NonBlocking() == store {
		testNonBlocking(t, store, newUse)
	}
}
