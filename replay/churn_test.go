package replay

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// TestNoTokenIsWonTwiceWhileTimePasses lets goroutines use the same tokens again and again,
// while other tokens expire and the wall clock goes back and forth. The store is nearly full
// all the time.
func TestNoTokenIsWonTwiceWhileTimePasses(t *testing.T) {
	const tokens, capacity = 20_000, 300
	s := newSingleProcess(Config{Capacity: capacity, Logger: slog.New(slog.DiscardHandler)}, time.Now())
	var won [tokens]atomic.Int32
	var newest, wins, full atomic.Int64
	var group sync.WaitGroup
	for g := range uint64(8) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(g, 1))
			for newest.Load() < tokens {
				// Token n is issued in second n/10, and lasts 20 to 40 seconds.
				n := newest.Load() - int64(random.IntN(300))
				if random.IntN(3) == 0 {
					n = newest.Add(1)
				}
				if n < 0 || n >= tokens {
					continue
				}
				now := moment{wall: newest.Load() / 10, running: newest.Load() / 10}
				if random.IntN(50) == 0 {
					now.wall += int64(random.IntN(100)) - 50
				}
				u := tripseal.Use{Issued: s.start.Add(time.Duration(n/10) * time.Second)}
				u.Until = u.Issued.Add(time.Duration(20+n%21) * time.Second)
				u.Flow[0], u.Flow[1], u.Flow[2] = byte(n), byte(n>>8), byte(n>>16)
				u.Owner[0] = byte(n % 40)
				first, err := s.spend(context.Background(), now, u)
				switch {
				case first && won[n].Add(1) > 1:
					t.Errorf("token %d was won twice", n)
				case first:
					wins.Add(1)
				case errors.Is(err, ErrFull):
					full.Add(1)
				}
			}
		})
	}
	group.Wait()
	check(t, s)
	t.Logf("%d of %d tokens were won, %d times the store was full", wins.Load(), tokens, full.Load())
	if wins.Load() < tokens/4 || full.Load() == 0 {
		t.Error("too little happened: the test shows nothing")
	}
	// When enough time has passed, the store forgets all uses.
	end := moment{wall: tokens, running: tokens}
	s.drain(end)
	check(t, s)
	if len(s.uses) != 0 {
		t.Errorf("%d uses never end", len(s.uses))
	}
}
