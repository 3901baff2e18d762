package redisreplay_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// rush presents tokens from many goroutines, and counts how often each token opens.
type rush struct {
	boundaries []*tripseal.Boundary
	tokens     []string
	opened     []atomic.Int32
	presented  atomic.Int64
	failed     atomic.Int64 // how many were rejected as store_failed
}

func newRush(t *testing.T, s *server, tokens int, config redisreplay.Config) *rush {
	t.Helper()
	key := tripseal.GenerateKey().Reveal()
	r := &rush{tokens: make([]string, tokens), opened: make([]atomic.Int32, tokens)}
	for range 3 { // three boundaries with separate clients, as in three processes
		client := s.client(t, func(o *redis.Options) { o.PoolSize = 16 })
		store, err := redisreplay.New(t.Context(), client, config)
		if err != nil {
			t.Fatal(err)
		}
		r.boundaries = append(r.boundaries, newBoundary(t, key, store, 300*time.Millisecond, slog.New(slog.DiscardHandler)))
	}
	settle()
	for i := range r.tokens {
		r.tokens[i] = sealToken(t, r.boundaries[0])
	}
	return r
}

// run adds goroutines to the group. For each boundary, so many goroutines present every token to it.
func (r *rush) run(t *testing.T, group *sync.WaitGroup, goroutines int) {
	for _, boundary := range r.boundaries {
		for g := range goroutines {
			group.Go(func() {
				for i := range r.tokens {
					r.present(t, boundary, (i+g)%len(r.tokens))
				}
			})
		}
	}
}

func (r *rush) present(t *testing.T, boundary *tripseal.Boundary, i int) {
	_, err := boundary.Open(context.Background(), request, r.tokens[i])
	r.presented.Add(1)
	if err == nil {
		r.opened[i].Add(1)
		return
	}
	var rejected *tripseal.RejectError
	if !errors.Is(err, tripseal.ErrRejected) || !errors.As(err, &rejected) {
		t.Errorf("not a rejection: %v", err)
		return
	}
	switch rejected.Reason {
	case tripseal.ReasonStoreFailed:
		r.failed.Add(1)
	case tripseal.ReasonReplayed:
	default:
		t.Errorf("rejected as %s", rejected.Reason)
	}
}

// wait waits until the given number of tokens have opened.
func (r *rush) wait(t *testing.T, opened int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); r.total() < opened; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d tokens opened", r.total())
		}
	}
}

func (r *rush) total() (n int) {
	for i := range r.opened {
		n += int(r.opened[i].Load())
	}
	return n
}

func (r *rush) check(t *testing.T) {
	t.Helper()
	for i := range r.opened {
		if n := r.opened[i].Load(); n > 1 {
			t.Errorf("token %d opened %d times", i, n)
		}
	}
	if r.failed.Load() == 0 {
		t.Error("no use failed: the server was not away")
	}
	// Afterwards, the boundaries must accept fresh tokens again, without any help.
	for _, boundary := range r.boundaries {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if _, err := boundary.Open(context.Background(), request, sealToken(t, boundary)); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("fresh tokens are still rejected")
			}
		}
	}
}

// TestNothingOpensTwiceAcrossACrash kills the server while tokens are used, starts it
// again, and presents the same tokens once more.
func TestNothingOpensTwiceAcrossACrash(t *testing.T) {
	t.Parallel()
	s := startServer(t, "--appendonly", "yes", "--appendfsync", "always")
	r := newRush(t, s, 2000, redisreplay.Config{Skew: time.Millisecond, Logger: quiet, Durable: true})
	var group sync.WaitGroup
	r.run(t, &group, 4)
	r.wait(t, 200)
	s.kill()
	before := r.total()
	if before >= len(r.tokens) {
		t.Fatal("all tokens had opened before the crash: the test shows nothing")
	}
	time.Sleep(200 * time.Millisecond)
	s.start(t)
	group.Wait()

	r.run(t, &group, 1) // all tokens again, opened or not
	group.Wait()
	after := r.total() - before
	if after <= 0 {
		t.Error("no token opened after the crash")
	}
	t.Logf("%d tokens opened before the crash, %d after; of %d presentations %d failed", before, after, r.presented.Load(), r.failed.Load())
	r.check(t)
}

// TestNothingOpensTwiceAcrossAPause pauses the server while tokens are used. The pause is longer
// than the ReplayTimeout of the boundaries.
func TestNothingOpensTwiceAcrossAPause(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	r := newRush(t, s, 2000, redisreplay.Config{Skew: time.Millisecond, Logger: quiet})
	var group sync.WaitGroup
	r.run(t, &group, 4)
	r.wait(t, 200)
	s.pause()
	before := r.total()
	time.Sleep(time.Second)
	if paused := r.total(); paused > before+len(r.boundaries)*4 || paused >= len(r.tokens) {
		t.Fatalf("%d tokens opened, %d before the pause: the server does not stand still", paused, before)
	}
	s.resume()
	group.Wait()
	r.run(t, &group, 1)
	group.Wait()
	after := r.total() - before
	if after <= 0 {
		t.Error("no token opened after the pause")
	}
	t.Logf("%d tokens opened before the pause, %d after; of %d presentations %d failed", before, after, r.presented.Load(), r.failed.Load())
	r.check(t)
}
