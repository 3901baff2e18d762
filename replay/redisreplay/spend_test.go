package redisreplay_test

import (
	"bytes"
	"context"
	"math"
	"net"
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
			store.Spend(context.Background(), use) // records the use even if it refuses the token
			lastsAbout(t, client, key(use.Flow), c.want-time.Since(now))
		})
	}
}

// TestAUseIsOneCommand checks that the store sends one command for each use. Besides these
// commands, the store may only check the epoch, and not too often.
func TestAUseIsOneCommand(t *testing.T) {
	t.Parallel()
	client := startServer(t).client(t)
	store := newStore(t, client)
	hook := &counter{}
	client.AddHook(hook)
	ctx := context.WithValue(context.Background(), hook, "a use")
	start := time.Now()
	for range 1000 {
		if first, err := store.Spend(ctx, newUse()); !first || err != nil {
			t.Fatalf("Spend = %v, %v", first, err)
		}
	}
	most := 2 + hook.dials.Load() + int64(time.Since(start)/redisreplay.LookEvery)
	if n := hook.claims.Load(); n != 1000 {
		t.Errorf("%d commands for 1000 uses", n)
	}
	if n := hook.looks.Load(); n > most {
		t.Errorf("%d looks, more than %d", n, most)
	}
	if n := hook.others.Load(); n != 0 {
		t.Errorf("%d other commands", n)
	}
}

// counter is a hook that counts the connections and the commands of its client.
type counter struct{ dials, claims, looks, others atomic.Int64 }

func (c *counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.dials.Add(1)
		return next(ctx, network, addr)
	}
}

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "set":
			if ctx.Value(c) != nil {
				c.claims.Add(1)
				break
			}
			fallthrough
		case "get", "eval", "info", "config": // only these count: a new connection also sends commands of its own
			c.others.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "info" {
			c.looks.Add(1)
		}
		return next(ctx, cmds)
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

// TestALostAnswerIsNotAReplay loses only the answer to the first use of a token. The
// store must report an error, and must not send the command again.
func TestALostAnswerIsNotAReplay(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t)
	use := newUse()
	var sent atomic.Int32
	relay := newRelay(t, s.addr)
	relay.losesAnswerTo = func(command []byte) bool {
		return bytes.Contains(command, []byte(key(use.Flow))) && sent.Add(1) == 1
	}
	client := s.client(t, func(o *redis.Options) { o.Addr, o.MaxRetries = relay.addr, 3 })
	store := newStore(t, client)
	use.Issued = time.Now()
	first, err := store.Spend(ctx, use)
	if first || err == nil || !strings.Contains(err.Error(), "Redis closed the connection") {
		t.Errorf("Spend = %v, %v", first, err)
	}
	if first, err = store.Spend(ctx, use); first || err != nil {
		t.Errorf("the token was not spent: Spend = %v, %v", first, err)
	}
	if n := sent.Load(); n != 2 {
		t.Errorf("SET was sent %d times, not once for each use", n)
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
