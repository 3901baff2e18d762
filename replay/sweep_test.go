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
	c := newClocks(t, 2*claims)
	for i := range uint64(claims) {
		c.mustSpend(t, c.useAt(i), true)
	}
	c.pass(1000)
	for i := range uint64(claims/maxSwept + 1) {
		before := len(c.uses)
		c.mustSpend(t, c.useAt(claims+i), true)
		removed := before + 1 - len(c.uses)
		if removed > maxSwept {
			t.Fatalf("one use removed %d", removed)
		}
		if removed < maxSwept && before > claims/maxSwept+maxSwept {
			t.Fatalf("one use removed only %d of %d", removed, before)
		}
	}
	if held := len(c.uses); held != claims/maxSwept+1 {
		t.Errorf("%d are held in the end", held)
	}
	check(t, c.SingleProcess)
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
	c := newClocks(t, 1000)
	c.pass(1)
	u := c.useAt(1)
	c.mu.Lock()
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
	c.mu.Unlock()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Spend = %v", err)
	}
	c.mustSpend(t, u, true)
}
