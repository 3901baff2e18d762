package redisreplay_test

import (
	"context"
	"io"
	"math"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/replay/redisreplay"
)

func TestAClaimIsOneKeyThatEndsWithTheToken(t *testing.T) {
	ctx := context.Background()
	client := startServer(t).client(t)
	store, err := redisreplay.New(ctx, client, redisreplay.Config{Prefix: "app:"})
	if err != nil {
		t.Fatal(err)
	}
	use := newUse()
	use.Flow, use.Round = [16]byte{0xff, 15: 1}, 12
	if first, err := store.Claim(ctx, use); !first || err != nil {
		t.Fatalf("Claim = %v, %v", first, err)
	}
	keys := client.Keys(ctx, "*").Val()
	if want := "app:_wAAAAAAAAAAAAAAAAAAAQ.12"; len(keys) != 1 || keys[0] != want {
		t.Fatalf("keys %q, want %q", keys, want)
	}
	lastsAbout(t, client, keys[0], time.Until(use.Until))
}

// lastsAbout looks at a key just after it was set.
func lastsAbout(t *testing.T, client *redis.Client, key string, want time.Duration) {
	t.Helper()
	if ttl := client.PTTL(context.Background(), key).Val(); ttl < want-time.Second || ttl > want+time.Second {
		t.Errorf("the key lasts %v, want %v", ttl, want)
	}
}

// TestAClockThatIsAheadDoesNotShortenAClaim claims where it seems to be late, and
// where nobody can tell.
func TestAClockThatIsAheadDoesNotShortenAClaim(t *testing.T) {
	client := startServer(t).client(t)
	store := newStore(t, client)
	now := time.Now()
	for name, c := range map[string]struct {
		issued time.Time
		want   time.Duration
	}{
		"late":          {now.Add(-11 * time.Minute), 12 * time.Minute},
		"just issued":   {now, time.Minute},
		"ahead of us":   {now.Add(30 * time.Second), time.Minute},
		"ten years ago": {now.Add(-10 * 365 * 24 * time.Hour), 10*365*24*time.Hour + time.Minute},
		"no time":       {time.Time{}, time.Minute},
		"1970":          {time.UnixMilli(0), time.Minute},
		"long ago":      {time.UnixMilli(math.MinInt64), time.Minute},
		"far ahead":     {time.UnixMilli(math.MaxInt64), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			use := newUse()
			use.Issued, use.Until = c.issued, now.Add(time.Minute)
			if first, err := store.Claim(context.Background(), use); !first || err != nil {
				t.Fatalf("Claim = %v, %v", first, err)
			}
			lastsAbout(t, client, key(use.Flow), c.want-time.Since(now))
		})
	}
}

func TestAClaimIsOneCommand(t *testing.T) {
	ctx := context.Background()
	client := startServer(t).client(t)
	store := newStore(t, client)
	processed := func() int {
		var n int
		for line := range strings.Lines(client.Info(ctx, "stats").Val()) {
			if text, ok := strings.CutPrefix(line, "total_commands_processed:"); ok {
				for _, digit := range strings.TrimSpace(text) {
					n = n*10 + int(digit-'0')
				}
			}
		}
		return n
	}
	before := processed()
	for range 100 {
		if _, err := store.Claim(ctx, newUse()); err != nil {
			t.Fatal(err)
		}
	}
	if n := processed() - before; n != 101 { // and INFO itself
		t.Errorf("100 claims and one INFO are %d commands", n)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	client := startServer(t).client(t)
	store := newStore(t, client)
	for name, spoil := range map[string]func(*mcpseal.Use){
		"a negative round": func(u *mcpseal.Use) { u.Round = -1 },
		"too many rounds":  func(u *mcpseal.Use) { u.Round = 1 << 16 },
		"over":             func(u *mcpseal.Use) { u.Until = time.Now() },
		"no end":           func(u *mcpseal.Use) { u.Until = time.Time{} },
		"long over":        func(u *mcpseal.Use) { u.Until = time.UnixMilli(math.MinInt64) },
	} {
		use := newUse()
		spoil(&use)
		if first, err := store.Claim(context.Background(), use); first || err == nil {
			t.Errorf("%s: Claim = %v, %v", name, first, err)
		}
	}
	use := newUse()
	use.Until = time.UnixMilli(math.MaxInt64) // further than a duration reaches
	for _, want := range []bool{true, false} {
		if first, err := store.Claim(context.Background(), use); first != want || err != nil {
			t.Errorf("Claim = %v, %v, want %v", first, err, want)
		}
	}
	keys := client.Keys(context.Background(), "*").Val()
	if len(keys) != 1 {
		t.Fatalf("keys %q", keys)
	}
	if ends, err := client.Do(context.Background(), "pttl", keys[0]).Int64(); ends <= 0 || err != nil {
		t.Errorf("the key lasts %d ms, %v", ends, err)
	}
}

// TestALostAnswerIsNotAReplay loses the answer to the claim on the way, and
// nothing after that.
func TestALostAnswerIsNotAReplay(t *testing.T) {
	ctx := context.Background()
	s := startServer(t)
	var lose atomic.Bool
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", s.addr)
			if err != nil {
				near.Close()
				return
			}
			go io.Copy(far, near)
			go func() {
				defer near.Close()
				defer far.Close()
				buffer := make([]byte, 4096)
				for {
					n, err := far.Read(buffer)
					if err != nil || lose.CompareAndSwap(true, false) {
						return
					}
					near.Write(buffer[:n])
				}
			}()
		}
	}()
	client := s.client(t, func(o *redis.Options) { o.Addr, o.MaxRetries = listener.Addr().String(), 3 })
	store := newStore(t, client)
	lose.Store(true)
	use := newUse()
	first, err := store.Claim(ctx, use)
	if first || err == nil || !strings.Contains(err.Error(), "Redis closed the connection") {
		t.Errorf("Claim = %v, %v", first, err)
	}
	if first, err = store.Claim(ctx, use); first || err != nil {
		t.Errorf("the token was not spent: Claim = %v, %v", first, err)
	}
	stats := s.client(t).Info(ctx, "commandstats").Val()
	if !strings.Contains(stats, "cmdstat_set:calls=2,") {
		t.Errorf("SET was not sent twice, once for each claim:\n%s", stats)
	}
}

// TestAClaimEndsWithItsContext asks a server that stands still, from more
// goroutines than there are connections.
func TestAClaimEndsWithItsContext(t *testing.T) {
	s := startServer(t)
	client := s.client(t, func(o *redis.Options) { o.PoolSize = 4 })
	store := newStore(t, client)
	before := runtime.NumGoroutine()
	s.pause()
	defer s.resume()
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			first, err := store.Claim(ctx, newUse())
			if first || err == nil {
				t.Errorf("Claim = %v, %v", first, err)
			}
			if took := time.Since(start); took > 3*time.Second { // go-redis would wait for 5 seconds, four times
				t.Errorf("a claim with 300 ms took %v", took)
			}
		})
	}
	group.Wait()
	for deadline := time.Now().Add(3 * time.Second); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
