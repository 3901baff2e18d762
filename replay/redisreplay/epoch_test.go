package redisreplay_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

const epochKey = "tripseal:used:epoch"

func mustSpend(t *testing.T, store tripseal.ReplayStore, use tripseal.Use, want bool) {
	t.Helper()
	if first, err := store.Spend(context.Background(), use); err != nil || first != want {
		t.Fatalf("Spend = %v, %v, want %v", first, err, want)
	}
}

// forgotten checks that the store refuses a token because Redis may have forgotten its use. The
// first tries may fail because a connection is gone.
func forgotten(t *testing.T, store tripseal.ReplayStore, use tripseal.Use) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := store.Spend(context.Background(), use)
		switch {
		case first:
			t.Fatal("a token that Redis may have forgotten was accepted")
		case err == nil:
			t.Fatal("the token counts as used: the test shows nothing")
		case strings.Contains(err.Error(), "Redis may have forgotten whether this token was used"):
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Spend = %v", err)
		}
	}
}

// works uses fresh tokens until the store accepts one.
func works(t *testing.T, store tripseal.ReplayStore) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := store.Spend(context.Background(), newUse())
		if first {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("fresh tokens are still refused: %v", err)
		}
	}
}

// ageEpochs sets the dates of all epochs in a server to an hour ago, so that stores accept fresh tokens.
func ageEpochs(t *testing.T, client *redis.Client) {
	t.Helper()
	ctx, digits := context.Background(), regexp.MustCompile(`^\d+`)
	keys := client.Keys(ctx, "*epoch").Val()
	for _, key := range keys {
		text := digits.ReplaceAllString(client.Get(ctx, key).Val(), strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10))
		if err := client.Set(ctx, key, text, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) == 0 {
		t.Fatal("there is no epoch")
	}
}

// TestWhatWasIssuedBeforeRedisForgotIsRefused makes a server forget. Older tokens must be refused at
// once, by a store that was there before and by one that starts afterwards; newer ones must work.
func TestWhatWasIssuedBeforeRedisForgotIsRefused(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*testing.T, *server){
		"flush":   func(t *testing.T, s *server) { s.admin(t, "flushall") },
		"restart": func(t *testing.T, s *server) { s.kill(); s.start(t) },
		"an epoch that is gone": func(t *testing.T, s *server) {
			s.admin(t, "del", epochKey)
		},
		"an epoch of nonsense":    func(t *testing.T, s *server) { s.admin(t, "set", epochKey, "9") },
		"an epoch without a date": func(t *testing.T, s *server) { s.admin(t, "set", epochKey, strings.Repeat(" ", 100)) },
		"a promotion, on a living connection": func(t *testing.T, s *server) {
			s.admin(t, "replicaof", "127.0.0.1", "1")
			s.admin(t, "replicaof", "no", "one")
		},
		"an eviction": func(t *testing.T, s *server) {
			s.admin(t, "config", "set", "maxmemory-policy", "volatile-random") // which spares the epoch
			s.admin(t, "config", "set", "maxmemory", "1")
			s.client(t).Set(t.Context(), "other", "1", 0) // this write makes Redis evict keys
			s.admin(t, "config", "set", "maxmemory", "0")
			s.client(t).Del(t.Context(), "other")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			log := new(logbook)
			store, err := redisreplay.New(t.Context(), s.client(t), redisreplay.Config{Skew: time.Millisecond, Logger: log.logger()})
			if err != nil {
				t.Fatal(err)
			}
			settle()
			use := newUse()
			mustSpend(t, store, newUse(), true)
			forget(t, s)
			forgotten(t, store, use)
			if !strings.Contains(log.String(), "tokens issued before issued_before are refused") {
				t.Errorf("the log does not say so: %s", log)
			}
			works(t, store)
			if name == "an eviction" {
				refused(t, s.client(t), redisreplay.Config{}, "set its maxmemory-policy to noeviction")
				return
			}
			other := newStore(t, s.client(t))
			forgotten(t, other, use)
			works(t, other)
		})
	}
}

// TestTokensAreRefusedForTheSkew uses tokens on a new server. The skew is a minute. Tokens
// must be refused if they were issued less than a minute after the epoch was made: the
// clock that dated them may be ahead.
func TestTokensAreRefusedForTheSkew(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	store, err := redisreplay.New(context.Background(), s.client(t), redisreplay.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	use := newUse()
	forgotten(t, store, use)
	use.Issued = time.Now().Add(59 * time.Second)
	forgotten(t, store, use)
	use.Issued = time.Now().Add(61 * time.Second)
	mustSpend(t, store, use, true)
}

// TestProcessesShareAnEpoch starts many stores at once on a new server. They must make one epoch,
// and accept tokens that were issued before they started.
func TestProcessesShareAnEpoch(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	newStore(t, s.client(t))
	unused := newUse()
	epoch := s.client(t).Get(t.Context(), epochKey).Val()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			store, err := redisreplay.New(t.Context(), s.client(t), redisreplay.Config{Skew: time.Millisecond, Logger: quiet})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := store.Spend(t.Context(), unused); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if now := s.client(t).Get(t.Context(), epochKey).Val(); now != epoch {
		t.Errorf("the epoch was %q and is %q", epoch, now)
	}
}

// TestADurableRestartIsNoLoss restarts servers whose operator says that they lose nothing, and that
// may say so.
func TestADurableRestartIsNoLoss(t *testing.T) {
	t.Parallel()
	durable := []string{"--appendonly", "yes", "--appendfsync", "always"}
	s := startServer(t, durable...)
	store, err := redisreplay.New(t.Context(), s.client(t), redisreplay.Config{Skew: time.Millisecond, Logger: quiet, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	settle()
	used, unused := newUse(), newUse()
	mustSpend(t, store, used, true)
	s.kill()
	s.start(t)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		first, err := store.Spend(t.Context(), unused)
		if first {
			break
		}
		if err == nil || time.Now().After(deadline) {
			t.Fatalf("Spend of an unused token = %v, %v", first, err)
		}
	}
	mustSpend(t, store, used, false)
	s.admin(t, "flushall")
	forgotten(t, store, newUse()) // issued before the epoch
	for _, args := range [][]string{nil, {"--appendonly", "yes"}, append(durable, "--no-appendfsync-on-rewrite", "yes")} {
		refused(t, startServer(t, args...).client(t), redisreplay.Config{Durable: true}, "Config.Durable says")
	}
}

// TestTheLaterClockDatesAnEpoch sends the script as a process with a wrong clock does, or as one whose command arrives
// late: after a flush that it was sent before.
func TestTheLaterClockDatesAnEpoch(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := s.client(t)
	for _, away := range []time.Duration{-time.Hour, time.Hour} {
		sent := time.Now()
		keys := []string{key(newUse().Flow), "of:" + away.String(), ""}
		answer, err := redisreplay.Script.Run(t.Context(), client, keys, "look", "", sent.Add(away).UnixMilli(), false).Slice()
		if err != nil {
			t.Fatal(err)
		}
		if began := time.UnixMilli(answer[0].(int64)); began.Before(sent.Add(max(away, 0)).Truncate(time.Millisecond)) {
			t.Errorf("with a clock that is %v away, the epoch begins at %v, before %v", away, began, sent)
		}
	}
}

// TestGarbageInPlaceOfAUseOpensNothing writes texts into the key of a use.
func TestGarbageInPlaceOfAUseOpensNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	client := s.client(t)
	store := newStore(t, client)
	claim := tripseal.Claim{Lease: time.Minute, Repeat: true, Tag: [32]byte{1}}
	for _, text := range []string{"", "1", "x", "s", "r", "d", strings.Repeat("r", 49), "r" + strings.Repeat("\x00", 48) + "9", strings.Repeat("d", 1<<20)} {
		use := newUse()
		if err := client.Set(t.Context(), key(use.Flow), text, 0).Err(); err != nil {
			t.Fatal(err)
		}
		mustSpend(t, store, use, false)
		if begun, err := store.Begin(t.Context(), use, claim); err != nil || begun.State != tripseal.CallOther {
			t.Errorf("with %.20q, Begin = state %d, %v", text, begun.State, err)
		}
	}
	for _, make := range [][]any{{"lpush"}, {"sadd"}, {"hset", "field"}} {
		use := newUse()
		if err := client.Do(t.Context(), append([]any{make[0], key(use.Flow)}, append(make[1:], "value")...)...).Err(); err != nil {
			t.Fatal(err)
		}
		if first, err := store.Spend(t.Context(), use); first || err == nil {
			t.Errorf("with a %v, Spend = %v, %v", make[0], first, err)
		}
	}
	s.admin(t, "del", epochKey)
	s.admin(t, "lpush", epochKey, "a list")
	if first, err := store.Spend(t.Context(), newUse()); first || err == nil {
		t.Errorf("with a list as epoch, Spend = %v, %v", first, err)
	}
}
