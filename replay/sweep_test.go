package replay

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOneUseDoesNotPayForAllThatExpired checks that a use removes at most maxSwept expired uses.
// Later uses remove the remaining ones.
func TestOneUseDoesNotPayForAllThatExpired(t *testing.T) {
	const claims = 10_000
	c, _ := newShard(2 * claims)
	for i := range uint64(claims) {
		c.mustSpend(t, c.useAt(i), true)
	}
	c.pass(1000)
	for i := range uint64(claims/maxSwept + 1) {
		before := int(c.held.Load())
		c.mustSpend(t, c.useAt(claims+i), true)
		removed := before + 1 - int(c.held.Load())
		if removed > maxSwept {
			t.Fatalf("one use removed %d", removed)
		}
		if removed < maxSwept && before > claims/maxSwept+maxSwept {
			t.Fatalf("one use removed only %d of %d", removed, before)
		}
	}
	if held := int(c.held.Load()); held != claims/maxSwept+1 {
		t.Errorf("%d are held in the end", held)
	}
	check(t, c.SingleProcess)
}

// TestOneUseDoesNotLookAtAllThatWait sets the wall clock back. Many uses have then expired by the
// monotonic clock, but not by the wall clock. A new use must check only maxSwept of them.
func TestOneUseDoesNotLookAtAllThatWait(t *testing.T) {
	const claims = 5000
	c, s := newShard(2 * claims)
	for i := range uint64(claims) {
		c.mustSpend(t, c.useAt(i), true)
	}
	c.pass(1000)
	c.wall -= 900
	now := c.running
	due := func() (n int) {
		for i, b := range s.used.buckets {
			if int64(b.due) <= now {
				for range s.used.tokensIn(i) {
					n++
				}
			}
		}
		return n
	}
	for i := range uint64(claims / maxSwept) {
		before := due()
		c.mustSpend(t, c.useAt(claims+i), true)
		if looked := before - due(); looked != maxSwept {
			t.Fatalf("one use looked at %d, want %d", looked, maxSwept)
		}
	}
}

// TestNothingIsLeftBehind lets many uses expire by the monotonic clock. Only a few of them have
// also expired by the wall clock. The sweeps are slow: some uses are due for a second check before
// all uses have had their first check. Still, the sweeps must remove each use that has expired by
// both clocks.
func TestNothingIsLeftBehind(t *testing.T) {
	c, s := newShard(100_000)
	for i := range uint64(20_000) {
		c.mustSpend(t, c.useAt(i), true)
	}
	c.pass(1000)
	c.wall -= 900
	i := 0
	for t, e := range s.used.entries {
		if i++; i%100 == 0 {
			e.until = 1
			s.used.entries[t] = e
		}
	}
	for range 2 * 20_000 / maxSwept {
		c.sweep(s, c.moment)
		c.pass(1)
	}
	for i := range s.used.buckets {
		for _, e := range s.used.tokensIn(i) {
			if e.until == 1 {
				t.Fatal("an expired use is still held")
			}
		}
	}
}

// TestRoomIsFoundBehindUsesThatWait fills a store, and lets all uses expire by the monotonic
// clock. Only one use, in the last shard, has also expired by the wall clock. The store must
// remove this use, and accept one new token, but not a second one.
func TestRoomIsFoundBehindUsesThatWait(t *testing.T) {
	const capacity = 1000
	c := newClocks(t, capacity)
	for i := range uint64(capacity) {
		c.mustSpend(t, c.useAt(i), true)
	}
	c.pass(1000)
	c.wall -= 900
	last := &c.shards[shards-1].used
	for t, e := range last.tokensIn(0) {
		if e.next == 0 {
			e.until = 1
			last.entries[t] = e
		}
	}
	c.mustSpend(t, c.useAt(capacity), true)
	c.refuse(t, capacity+1, c.wall, ErrFull)
}

// TestAUserIsNotRefusedForWhatIsOverBehindOthers adds many uses of other users, fills the share
// of one user, and lets all uses expire. The store sweeps the uses of the other users first. It
// must go on to the uses of the one user, and accept one more token.
func TestAUserIsNotRefusedForWhatIsOverBehindOthers(t *testing.T) {
	const capacity = 100_000
	c, n := newClocks(t, capacity), uint64(0)
	for ; n < capacity*8/10; n++ {
		u := c.useAt(n)
		u.Owner[0], u.Owner[1] = byte(2+n%200), 7
		c.mustSpend(t, u, true)
	}
	c.pass(5)
	for ; n < capacity*9/10; n++ {
		u := c.useAt(n)
		u.Owner[0] = 1
		c.mustSpend(t, u, true)
	}
	c.pass(100_000)
	u := c.useAt(n)
	u.Owner[0] = 1
	c.mustSpend(t, u, true)
}

// TestAUserIsNotRefusedForWhatIsOver fills the share of a user, and lets all uses expire. The
// store must accept one more token of the user.
func TestAUserIsNotRefusedForWhatIsOver(t *testing.T) {
	const capacity = 10_000
	c := newClocks(t, capacity)
	for i := range uint64(capacity / 10) {
		u := c.useAt(i)
		u.Owner[0] = 1
		c.mustSpend(t, u, true)
	}
	c.pass(1000)
	u := c.useAt(capacity)
	u.Owner[0] = 1
	c.mustSpend(t, u, true)
}

// TestNoUseIsRefusedWhileOthersMakeRoom fills a store and lets all uses expire. Then many
// goroutines use new tokens at once.
func TestNoUseIsRefusedWhileOthersMakeRoom(t *testing.T) {
	const capacity, goroutines = 512, 32
	for turn := range uint64(50) {
		c := newClocks(t, capacity)
		for i := range uint64(capacity) {
			c.mustSpend(t, c.useAt(i), true)
		}
		c.pass(1000)
		var group sync.WaitGroup
		var won atomic.Int32
		for g := range uint64(goroutines) {
			group.Go(func() {
				for i := range uint64(capacity / goroutines) {
					first, err := c.spend(context.Background(), c.moment, c.useAt(turn<<40|g<<20|i|1<<60))
					if err != nil {
						t.Error(err)
					}
					if first {
						won.Add(1)
					}
				}
			})
		}
		group.Wait()
		if won.Load() != capacity {
			t.Fatalf("%d of %d places were given", won.Load(), capacity)
		}
	}
}

// TestACallerWhoGaveUpSpendsNothing ends the context while a use waits for the
// lock.
func TestACallerWhoGaveUpSpendsNothing(t *testing.T) {
	c, s := newShard(1000)
	c.pass(1)
	u := c.useAt(1)
	s.mu.Lock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		first, err := c.spend(ctx, c.moment, u)
		if first {
			err = errors.New("won")
		}
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	cancel()
	s.mu.Unlock()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Spend = %v", err)
	}
	c.mustSpend(t, u, true)
}
