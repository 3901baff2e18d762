package sealtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// testResults tests a store that keeps the results of calls.
func testResults(t *testing.T, ctx context.Context, store tripseal.ResultStore, newUse func() tripseal.Use) {
	newClaim := func() (c tripseal.Claim) {
		rand.Read(c.Call[:])
		c.Tag[31], c.Lease = 1, time.Minute
		return c
	}
	begin := func(t *testing.T, use tripseal.Use, claim tripseal.Claim, want tripseal.CallState) []byte {
		t.Helper()
		begun, err := store.Begin(ctx, use, claim)
		if err != nil || begun.State != want {
			t.Fatalf("Begin = state %d, %v, want %d", begun.State, err, want)
		}
		return begun.Result
	}
	must := func(t *testing.T, ok bool, err error) {
		t.Helper()
		if ok != (err == nil) {
			t.Fatalf("the error is %v, want one: %v", err, !ok)
		}
	}
	result := tripseal.End{Result: []byte("\x00a result\xff"), Keep: time.Minute}

	t.Run("TheResultIsGivenAgain", func(t *testing.T) {
		use, first, second := newUse(), newClaim(), newClaim()
		begin(t, use, first, tripseal.CallFirst)
		begin(t, use, second, tripseal.CallRunning)
		must(t, true, store.End(ctx, use, first, result))
		for _, claim := range []tripseal.Claim{second, first, newClaim()} {
			if got := begin(t, use, claim, tripseal.CallDone); !bytes.Equal(got, result.Result) {
				t.Errorf("the result is %q", got)
			}
		}
		other := use
		other.Round = 2
		begin(t, other, second, tripseal.CallFirst)
	})
	t.Run("OtherAnswersGetNothing", func(t *testing.T) {
		use, first, other := newUse(), newClaim(), newClaim()
		other.Tag[0], other.Repeat = 1, true
		begin(t, use, first, tripseal.CallFirst)
		begin(t, use, other, tripseal.CallOther)
		must(t, true, store.End(ctx, use, first, result))
		begin(t, use, other, tripseal.CallOther)
	})
	t.Run("SpendAndBeginShareTheirTokens", func(t *testing.T) {
		use, spent := newUse(), newUse()
		begin(t, use, newClaim(), tripseal.CallFirst)
		if first, err := store.Spend(ctx, use); first || err != nil {
			t.Errorf("Spend of a token that has begun = %v, %v", first, err)
		}
		if first, err := store.Spend(ctx, spent); !first || err != nil {
			t.Errorf("Spend = %v, %v", first, err)
		}
		claim := newClaim()
		claim.Repeat = true
		begin(t, spent, claim, tripseal.CallOther)
	})
	t.Run("WhatIsSentAgainCountsOnce", func(t *testing.T) {
		use, claim := newUse(), newClaim()
		begin(t, use, claim, tripseal.CallFirst)
		begin(t, use, claim, tripseal.CallFirst)
		must(t, true, store.End(ctx, use, claim, result))
		must(t, true, store.End(ctx, use, claim, tripseal.End{Result: []byte("another"), Keep: time.Minute}))
		if got := begin(t, use, claim, tripseal.CallDone); !bytes.Equal(got, result.Result) {
			t.Errorf("the result is %q", got)
		}
	})
	t.Run("OnlyTheHolderOfTheLeaseChangesAnything", func(t *testing.T) {
		use, holder, other := newUse(), newClaim(), newClaim()
		must(t, false, store.Renew(ctx, use, holder))
		must(t, false, store.End(ctx, use, holder, result))
		begin(t, use, holder, tripseal.CallFirst)
		for _, end := range []tripseal.End{result, {}, {GiveBack: true}} {
			must(t, false, store.Renew(ctx, use, other))
			must(t, false, store.End(ctx, use, other, end))
		}
		begin(t, use, other, tripseal.CallRunning)
		must(t, true, store.Renew(ctx, use, holder))
		must(t, true, store.End(ctx, use, holder, result))
		must(t, false, store.End(ctx, use, holder, tripseal.End{GiveBack: true}))
		must(t, false, store.Renew(ctx, use, holder))
		begin(t, use, other, tripseal.CallDone)
	})
	t.Run("ALostCallStaysLost", func(t *testing.T) {
		use, lost, second, third := newUse(), newClaim(), newClaim(), newClaim()
		lost.Lease = 50 * time.Millisecond
		begin(t, use, lost, tripseal.CallFirst)
		time.Sleep(4 * lost.Lease)
		begin(t, use, second, tripseal.CallLost)
		begin(t, use, lost, tripseal.CallLost)
		must(t, false, store.Renew(ctx, use, lost))
		must(t, false, store.End(ctx, use, lost, result))
		must(t, false, store.End(ctx, use, lost, tripseal.End{GiveBack: true}))
		begin(t, use, second, tripseal.CallLost)
		second.Repeat, third.Repeat = true, true
		begin(t, use, second, tripseal.CallFirst)
		begin(t, use, third, tripseal.CallRunning)
		must(t, false, store.End(ctx, use, lost, result))
		must(t, true, store.End(ctx, use, second, result))
		begin(t, use, third, tripseal.CallDone)
	})
	t.Run("ALeaseIsRenewed", func(t *testing.T) {
		for range 5 {
			use, claim := newUse(), newClaim()
			claim.Lease = 200 * time.Millisecond
			start := time.Now()
			begin(t, use, claim, tripseal.CallFirst)
			claim.Lease = time.Minute
			if err := store.Renew(ctx, use, claim); err != nil && time.Since(start) > 200*time.Millisecond {
				continue // this machine is too slow
			} else if err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond)
			begin(t, use, newClaim(), tripseal.CallRunning)
			must(t, true, store.End(ctx, use, claim, result))
			return
		}
		t.Error("this machine is too slow to renew a lease before its end")
	})
	t.Run("AResultEndsBeforeItsUse", func(t *testing.T) {
		for _, end := range []tripseal.End{
			{Result: result.Result, Keep: time.Millisecond}, {Result: result.Result}, {Keep: time.Minute}, {},
		} {
			use, claim := newUse(), newClaim()
			begin(t, use, claim, tripseal.CallFirst)
			must(t, true, store.End(ctx, use, claim, end))
			time.Sleep(10 * time.Millisecond)
			begin(t, use, newClaim(), tripseal.CallNotKept)
		}
	})
	t.Run("LargeResultsAreWholeOrNotKept", func(t *testing.T) {
		for _, size := range []int{88 << 10, 4 << 20} {
			use, claim := newUse(), newClaim()
			begin(t, use, claim, tripseal.CallFirst)
			large := bytes.Repeat([]byte{7}, size)
			must(t, true, store.End(ctx, use, claim, tripseal.End{Result: large, Keep: time.Minute}))
			clear(large) // the store must have its own copy
			begun, err := store.Begin(ctx, use, newClaim())
			kept := begun.State == tripseal.CallDone && bytes.Equal(begun.Result, bytes.Repeat([]byte{7}, size))
			if err != nil || !kept && (size < 1<<20 || begun.State != tripseal.CallNotKept) {
				t.Errorf("with %d bytes, Begin = state %d, %d bytes, %v", size, begun.State, len(begun.Result), err)
			}
		}
	})
	t.Run("WhatIsGivenBackWorksAgain", func(t *testing.T) {
		use, claim := newUse(), newClaim()
		for range 3 {
			begin(t, use, claim, tripseal.CallFirst)
			must(t, true, store.End(ctx, use, claim, tripseal.End{GiveBack: true}))
			must(t, false, store.End(ctx, use, claim, result))
			claim = newClaim()
		}
		if first, err := store.Spend(ctx, use); !first || err != nil {
			t.Errorf("Spend of a token that was given back = %v, %v", first, err)
		}
		begin(t, use, claim, tripseal.CallOther)
	})
	t.Run("AContextThatIsOverChangesNothing", func(t *testing.T) {
		over, cancel := context.WithCancel(ctx)
		cancel()
		use, claim := newUse(), newClaim()
		if begun, err := store.Begin(over, use, claim); err == nil || begun.State != 0 {
			t.Errorf("with a context that has ended, Begin = state %d, %v", begun.State, err)
		}
		begin(t, use, claim, tripseal.CallFirst)
		must(t, false, store.Renew(over, use, claim))
		must(t, false, store.End(over, use, claim, result))
		begin(t, use, newClaim(), tripseal.CallRunning)
	})
	t.Run("OneOfManyCallsIsTheFirst", func(t *testing.T) {
		for range 20 {
			use := newUse()
			var firsts, results atomic.Int32
			var group sync.WaitGroup
			for range 16 {
				group.Go(func() {
					claim := newClaim()
					for ctx.Err() == nil {
						begun, err := store.Begin(ctx, use, claim)
						switch {
						case err != nil:
							t.Error(err)
							return
						case begun.State == tripseal.CallFirst:
							firsts.Add(1)
							if err := store.End(ctx, use, claim, result); err != nil {
								t.Error(err)
							}
							return
						case begun.State == tripseal.CallDone:
							results.Add(1)
							return
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			group.Wait()
			if firsts.Load() != 1 || results.Load() != 15 {
				t.Fatalf("of 16 calls %d were the first and %d got the result", firsts.Load(), results.Load())
			}
		}
	})
}
