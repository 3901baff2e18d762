package replay_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal/replay"
)

func TestTheLevelCountsOnlyWhatIsNotOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const short, long = 5000, 300
		store := newStore(t, replay.Config{Capacity: 10_000})
		level := func(want int) {
			t.Helper()
			if got := store.Level(); got != (replay.Level{Held: want, Capacity: 10_000}) {
				t.Fatalf("Level = %+v, want %d held", got, want)
			}
		}
		level(0)
		for i := range uint64(short) {
			spend(t, store, use(i, 0, time.Minute), true)
		}
		for i := range uint64(long) {
			spend(t, store, use(short+i, 0, time.Hour), true)
		}
		level(short + long)
		time.Sleep(62 * time.Second)
		level(long)
		time.Sleep(time.Hour)
		level(0)
	})
}

// The store has no logger of its own: its warning goes to the default logger of that time.
func TestTheLogWarnsAt80PercentAndOnceMoreAfterTheLevelFell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := replay.NewSingleProcess(replay.Config{Capacity: 100})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		defer slog.SetDefault(slog.Default())
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		next := uint64(0)
		fill := func(n int, lasts time.Duration, warnings int) {
			t.Helper()
			for range n {
				next++
				spend(t, store, use(next, 0, lasts), true)
			}
			synctest.Wait()
			if got := strings.Count(log.String(), "level=WARN"); got != warnings {
				t.Fatalf("%d warnings, want %d:\n%s", got, warnings, log.String())
			}
		}
		fill(65, time.Hour, 0)
		fill(10, 5*time.Minute, 0)
		fill(4, time.Second, 0)
		fill(1, time.Second, 1)
		fill(20, time.Second, 1)
		time.Sleep(10 * time.Second)
		store.Level()            // removes all expired uses
		fill(20, time.Second, 1) // the level had fallen only to 75
		time.Sleep(6 * time.Minute)
		store.Level()
		fill(10, time.Second, 1)
		fill(10, time.Second, 2) // the level had fallen to 65
	})
}

// TestNoUseIsRefusedByAStoreInWhichAllIsOver fills a store, or the share of a user, from many
// goroutines. It then lets all uses expire, and starts again. A goroutine that finds no room may
// also find nothing to remove, because other goroutines have just removed the expired uses. Its
// token must be accepted all the same.
func TestNoUseIsRefusedByAStoreInWhichAllIsOver(t *testing.T) {
	for name, limits := range map[string]struct{ capacity, owner, uses uint64 }{"store": {64, 0, 64}, "user": {640, 7, 64}} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, replay.Config{Capacity: int(limits.capacity)})
			var refused atomic.Int32
			for turn := range uint64(200) {
				var group sync.WaitGroup
				for i := range limits.uses {
					group.Go(func() {
						if first, _ := store.Spend(context.Background(), use(turn<<8|i, limits.owner, time.Minute)); !first {
							refused.Add(1)
						}
					})
				}
				group.Wait()
				time.Sleep(62 * time.Second)
			}
			if refused.Load() > 0 {
				t.Errorf("%s: %d tokens were refused", name, refused.Load())
			}
		})
	}
}

// hangingHandler writes nothing until it is released.
type hangingHandler struct {
	slog.Handler
	release chan struct{}
	waiting *atomic.Int32
}

func (h hangingHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h hangingHandler) Handle(context.Context, slog.Record) error {
	h.waiting.Add(1)
	<-h.release
	h.waiting.Add(-1)
	return nil
}

// TestALogThatHangsHoldsUpNoToken fills the store again and again while the log hangs.
func TestALogThatHangsHoldsUpNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := hangingHandler{slog.DiscardHandler, make(chan struct{}), new(atomic.Int32)}
		store := newStore(t, replay.Config{Capacity: 4, Logger: slog.New(log)})
		for i := range uint64(40) {
			start := time.Now()
			spend(t, store, use(i, 0, time.Minute), true)
			if took := time.Since(start); took > time.Second {
				t.Fatalf("use %d took %v", i, took)
			}
			if i%4 == 3 {
				time.Sleep(2 * time.Minute) // all expire
			}
		}
		if n := log.waiting.Load(); n != 1 {
			t.Errorf("%d goroutines wait for the log", n)
		}
		close(log.release)
		synctest.Wait()
		if n := log.waiting.Load(); n != 0 {
			t.Errorf("%d goroutines still wait for the log", n)
		}
	})
}
