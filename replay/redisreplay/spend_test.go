package redisreplay_test

import (
	"bytes"
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

func TestAUseIsOneKeyThatEndsWithTheToken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	client := startServer(t).client(t)
	store, err := redisreplay.New(ctx, client, redisreplay.Config{Prefix: "app:", Skew: time.Millisecond, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	settle()
	use := newUse()
	use.Flow, use.Round = [16]byte{0xff, 15: 1}, 12
	if first, err := store.Spend(ctx, use); !first || err != nil {
		t.Fatalf("Spend = %v, %v", first, err)
	}
	keys := client.Keys(ctx, "*").Val()
	slices.Sort(keys)
	if want := []string{"app:_wAAAAAAAAAAAAAAAAAAAQ.12", "app:epoch"}; !slices.Equal(keys, want) {
		t.Fatalf("keys %q, want %q", keys, want)
	}
	lastsAbout(t, client, keys[0], time.Until(use.Until))
	if ttl := client.PTTL(ctx, keys[1]).Val(); ttl != -1 {
		t.Errorf("the epoch ends in %v", ttl)
	}
}

// lastsAbout fails the test unless a key that was just set expires in about the given time.
func lastsAbout(t *testing.T, client *redis.Client, key string, want time.Duration) {
	t.Helper()
	if ttl := client.PTTL(context.Background(), key).Val(); ttl < want-time.Second || ttl > want+time.Second {
		t.Errorf("the key lasts %v, want %v", ttl, want)
	}
}

// TestAClockThatIsAheadDoesNotShortenAUse uses tokens that expire in a minute, by the clock of this
// process. If this clock is ahead, processes with a correct clock accept the tokens for more than a
// minute. So Redis must keep a use for at least the whole lifetime of the token. If the time of
// issue makes no sense, the lifetime is unknown, and Redis must keep the use for a minute.
func TestAClockThatIsAheadDoesNotShortenAUse(t *testing.T) {
	t.Parallel()
	client := startServer(t).client(t)
	store := newStore(t, client)
	epoch := client.Get(t.Context(), epochKey).Val()
	client.Set(t.Context(), epochKey, strings.Repeat("0", 12)+"1"+epoch[strings.Index(epoch, " "):], 0) // so that the store refuses no old token
	now := time.Now()
	for name, c := range map[string]struct {
		issued time.Time
		want   time.Duration
	}{
		"late":          {now.Add(-11 * time.Minute), 12 * time.Minute},
		"just issued":   {now, time.Minute},
		"ahead of us":   {now.Add(30 * time.Second), time.Minute},
		"ten years ago": {now.Add(-10 * 365 * 24 * time.Hour), 10*365*24*time.Hour + time.Minute},
		"in 1998":       {time.Unix(9e8, 0), time.Minute},
		"far ahead":     {time.UnixMilli(math.MaxInt64), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			use := newUse()
			use.Issued, use.Until = c.issued, now.Add(time.Minute)
			mustSpend(t, store, use, true)
			lastsAbout(t, client, key(use.Flow), c.want-time.Since(now))
		})
	}
}

// TestAUseIsOneCommand checks that the store sends one command for each use, and nothing else.
func TestAUseIsOneCommand(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store := newStore(t, s.client(t))
	s.admin(t, "config", "resetstat")
	for range 1000 {
		if first, err := store.Spend(t.Context(), newUse()); !first || err != nil {
			t.Fatalf("Spend = %v, %v", first, err)
		}
	}
	stats := s.client(t).Info(t.Context(), "commandstats").Val()
	for _, line := range []string{"cmdstat_evalsha:calls=1000,", "cmdstat_set:calls=1000,"} {
		if !strings.Contains(stats, line) {
			t.Errorf("there is no %q in\n%s", line, stats)
		}
	}
	if strings.Contains(stats, "cmdstat_eval:") || strings.Contains(stats, "cmdstat_command:") {
		t.Errorf("a use is more than one command:\n%s", stats)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	client := startServer(t).client(t)
	store := newStore(t, client)
	for name, spoil := range map[string]func(*tripseal.Use){
		"a negative round": func(u *tripseal.Use) { u.Round = -1 },
		"too many rounds":  func(u *tripseal.Use) { u.Round = 1 << 16 },
		"over":             func(u *tripseal.Use) { u.Until = time.Now() },
		"no end":           func(u *tripseal.Use) { u.Until = time.Time{} },
		"long over":        func(u *tripseal.Use) { u.Until = time.UnixMilli(math.MinInt64) },
	} {
		use := newUse()
		spoil(&use)
		if first, err := store.Spend(context.Background(), use); first || err == nil {
			t.Errorf("%s: Spend = %v, %v", name, first, err)
		}
	}
	use := newUse()
	use.Until = time.UnixMilli(math.MaxInt64) // further away than a time.Duration can hold
	for _, want := range []bool{true, false} {
		if first, err := store.Spend(context.Background(), use); first != want || err != nil {
			t.Errorf("Spend = %v, %v, want %v", first, err, want)
		}
	}
	keys := client.Keys(context.Background(), "*.1").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q", keys)
	}
	if ends, err := client.Do(context.Background(), "pttl", keys[0]).Int64(); ends <= 0 || err != nil {
		t.Errorf("the key lasts %d ms, %v", ends, err)
	}
}

// TestALostAnswerIsAskedForAgain loses the answer to the first use of a token. The client sends the
// command again, and the use still counts as the first; another one does not.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	use := newUse()
	var sent atomic.Int32
	relay := newRelay(t, s.addr)
	relay.losesAnswerTo = func(command []byte) bool {
		return bytes.Contains(command, []byte(key(use.Flow))) && sent.Add(1) == 1
	}
	store := newStore(t, s.client(t, func(o *redis.Options) { o.Addr, o.MaxRetries = relay.addr, 3 }))
	use.Issued = time.Now()
	mustSpend(t, store, use, true)
	mustSpend(t, store, use, false)
	if n := sent.Load(); n != 3 {
		t.Errorf("the script was sent %d times, not twice for the first use and once for the second", n)
	}
}

// TestAUseEndsWithItsContext pauses the server, and then uses tokens from more goroutines than the
// client has connections.
func TestAUseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := s.client(t, func(o *redis.Options) { o.PoolSize = 4 })
	store := newStore(t, client)
	before := runtime.NumGoroutine()
	s.pause()
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			first, err := store.Spend(ctx, newUse())
			if first || err == nil {
				t.Errorf("Spend = %v, %v", first, err)
			}
			if took := time.Since(start); took > 3*time.Second { // without the context, go-redis would wait for 5 seconds, four times
				t.Errorf("a use with 300 ms took %v", took)
			}
		})
	}
	group.Wait()
	s.resume()
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
