package sealtest

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// testNonBlocking tests a store that claims not to block.
func testNonBlocking(t *testing.T, store tripseal.ReplayStore, newUse func() tripseal.Use) {
	t.Run("ANonBlockingStoreDoesNotWaitForItsContext", func(t *testing.T) {
		ctx := &watchedContext{Context: context.Background()}
		use := newUse()
		for range 2 {
			if _, err := store.Spend(ctx, use); err != nil {
				t.Fatal(err)
			}
		}
		if ctx.waits.Load() {
			t.Error("Spend calls the context's method Done, as if it could block")
		}
	})
	t.Run("ANonBlockingStoreWaitsForNothing", func(t *testing.T) {
		for _, goroutines := range []int{1, 32} { // some stores wait only if one call runs alone, and others only if many run
			if why := findWaiting(t, store, newUse, goroutines); why != "" {
				t.Fatalf("NonBlocking says that Spend cannot block, and a call of Spend waits: %s", why)
			}
		}
	})
}

// findWaiting calls Spend in several goroutines at once. It returns the stack of a call that waits, or ""
// if it has seen none.
func findWaiting(t *testing.T, store tripseal.ReplayStore, newUse func() tripseal.Use, goroutines int) (why string) {
	const calls, looks = 50, 200
	shared := newUse()
	var begun, group sync.WaitGroup
	var enough atomic.Bool
	defer enough.Store(true)
	begun.Add(goroutines)
	for range goroutines {
		group.Go(func() {
			for range calls {
				spendDirectly(store, newUse())
			}
			begun.Done()
			// Spend the same use again and again, so that the store does not grow.
			for !enough.Load() {
				spendDirectly(store, shared)
				runtime.Gosched()
			}
		})
	}
	ready := make(chan struct{})
	go func() { begun.Wait(); close(ready) }()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("calls of Spend do not return")
	}
	stacks := make([]byte, 1<<20)
	for range looks {
		if why = waitingFor(stacks[:runtime.Stack(stacks, true)]); why != "" {
			return why
		}
		time.Sleep(100 * time.Microsecond)
	}
	enough.Store(true)
	group.Wait()
	return ""
}

// watchedContext records whether Spend calls Done, that is, whether Spend waits for the end
// of the context.
type watchedContext struct {
	context.Context
	waits atomic.Bool
}

func (c *watchedContext) Done() <-chan struct{} {
	c.waits.Store(true)
	return c.Context.Done()
}

// spendDirectly calls Spend. The function waitingFor looks for the name spendDirectly in
// stacks.
func spendDirectly(store tripseal.ReplayStore, use tripseal.Use) {
	store.Spend(context.Background(), use)
}

// longWait matches the states of goroutines that wait for something other than a lock, the
// processor or the garbage collector.
var longWait = regexp.MustCompile(`^goroutine \d+ \[(IO wait|sleep|chan receive|chan send|select|sync\.Cond\.Wait|sync\.WaitGroup\.Wait)[^]]*\]`)

// waitingFor returns the stack of a goroutine that waits in spendDirectly, or "" if none does.
func waitingFor(stacks []byte) string {
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "sealtest.spendDirectly(") && longWait.MatchString(stack) {
			return stack
		}
	}
	return ""
}
