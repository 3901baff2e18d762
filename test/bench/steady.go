package main

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/tripseal/tripseal"
)

// steadyStore is a replay store that is measured alone, while no other store runs.
type steadyStore struct {
	name string
	open func() tripseal.ReplayStore
}

const (
	lifetime = time.Second
	pace     = 50_000          // tokens used per second; replay.SingleProcess keeps each for 2 to 3 seconds, so it holds 100,000 to 150,000
	settling = 3 * time.Second // how long a store runs before it is measured; a store may keep a token that long, although tokens live only for one second
)

// steady measures replay stores in a steady state: tokens live for a second, so they expire at
// the rate at which new tokens are added. Stores remove expired tokens in bursts, and the
// measured times include these bursts. So each store runs alone, and its time is the mean over
// several seconds, not a median. The measurement takes longer than the budget, except in a test.
func steady(stores []steadyStore, users uint64, budget time.Duration) (rows []row) {
	settle, measured := settling, max(2*settling, budget/time.Duration(len(stores)))
	if budget < time.Second {
		settle, measured = budget, budget
	}
	for _, s := range stores {
		runtime.GC()
		spend := spendOne(s.name, s.open(), lifetime, users)
		paced(spend.run, settle)
		r := row{Name: s.name, Nanos: paced(spend.run, measured), Ratio: 1}
		allocations := allocs(spend.run, 500)
		r.Allocs = &allocations
		if len(rows) > 0 {
			r.Ratio = r.Nanos / rows[0].Nanos
		}
		rows = append(rows, r)
	}
	return rows
}

// paced calls the given function at a steady pace, and returns the mean time of one call, in
// nanoseconds. A slow store gets as many calls as a fast store.
func paced(run func(), lasts time.Duration) float64 {
	var busy time.Duration
	n := 0
	for begin := time.Now(); n == 0 || time.Since(begin) < lasts; time.Sleep(time.Millisecond) {
		due := int(time.Since(begin)*pace/time.Second) + 1
		start := time.Now()
		for ; n < due; n++ {
			run()
		}
		busy += time.Since(start)
	}
	return float64(busy) / float64(n)
}

// mutexStore is a naive replay store. Once a second it checks all recorded uses and removes
// the expired ones.
type mutexStore struct {
	mu    sync.Mutex
	used  map[mapKey]time.Time
	swept time.Time
}

func (s *mutexStore) Spend(_ context.Context, use tripseal.Use) (bool, error) {
	key, now := mapKey{use.Flow, use.Round}, time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.swept) >= time.Second {
		for other, until := range s.used {
			if !now.Before(until) {
				delete(s.used, other)
			}
		}
		s.swept = now
	}
	if _, used := s.used[key]; used {
		return false, nil
	}
	s.used[key] = use.Until
	return true, nil
}
