package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// useComparisons returns comparisons of replay stores, which let each token be used only once.
func useComparisons() []comparison {
	all := []comparison{
		{title: "a use in memory, of a new token of a new user, while others expire", rows: memoryUses(0)},
		{title: "a use in memory, of a new token of one of 64 users, while others expire", rows: memoryUses(64)},
		{title: "the longest use in memory, of 100,000 with 100,000 held", rows: longestUses},
		{title: "memory of one use that is held", sizes: useSizes},
	}
	inRedis := comparison{title: "a use in Redis, of a token that is new"}
	client, err := startRedis()
	if err != nil {
		inRedis.missing = err
		inRedis.contenders = []contender{{name: rawUseName}, {name: redisUseName}}
	} else {
		inRedis.contenders = []contender{rawUse(client), redisUse(client)}
	}
	return append(all, inRedis)
}

var memoryStores = []steadyStore{
	{name: "naive: a map and a mutex, expiring", open: func() tripseal.ReplayStore { return &mutexStore{used: map[mapKey]time.Time{}} }},
	{name: "naive: a sync.Map without an end", open: func() tripseal.ReplayStore { return &syncMapStore{} }},
	{name: "tripseal, bounded and expiring", open: func() tripseal.ReplayStore { return memoryStore() }},
}

func memoryUses(users uint64) func(time.Duration) []row {
	return func(budget time.Duration) []row { return steady(memoryStores, users, budget) }
}

// longestUses measures the longest time that a request may have to wait for a store, while
// the store removes expired uses or grows its map. Pauses of the machine make this time
// longer. So longestUses takes this time from several runs, and reports the shortest.
func longestUses(budget time.Duration) (rows []row) {
	const held, runs = 100_000, 5
	for _, s := range memoryStores {
		best := time.Duration(math.MaxInt64)
		for range runs {
			spend := spendOne(s.name, s.open(), lifetime, 0)
			for range held {
				spend.run()
			}
			longest := time.Duration(0)
			for range held {
				start := time.Now()
				spend.run()
				longest = max(longest, time.Since(start))
			}
			best = min(best, longest)
			if budget < time.Second { // a test has no time for more runs
				break
			}
		}
		r := row{Name: s.name, Nanos: float64(best), Ratio: 1}
		if len(rows) > 0 {
			r.Ratio = r.Nanos / rows[0].Nanos
		}
		rows = append(rows, r)
	}
	return rows
}

// newUse returns the use of token number n. The argument users is the number of users who
// share the tokens. 0 means that each token has its own user.
func newUse(n uint64, lasts time.Duration, users uint64) tripseal.Use {
	now := time.Now()
	use := tripseal.Use{Round: 1, Issued: now, Until: now.Add(lasts)}
	binary.BigEndian.PutUint64(use.Flow[:], n)
	if users > 0 {
		n = n%users + 1
	}
	binary.BigEndian.PutUint64(use.Owner[:], n)
	return use
}

func spendOne(name string, store tripseal.ReplayStore, lasts time.Duration, users uint64) contender {
	ctx := context.Background()
	var n uint64
	return contender{name: name, run: func() {
		n++
		first, err := store.Spend(ctx, newUse(n, lasts, users))
		check(err)
		if !first {
			panic("not the first")
		}
	}}
}

func memoryStore() *replay.SingleProcess {
	store, err := replay.NewSingleProcess(replay.Config{Capacity: 100_000_000, Logger: slog.New(slog.DiscardHandler)})
	check(err)
	return store
}

// syncMapStore is a naive replay store that grows without limit: it never removes a use.
type syncMapStore struct{ used sync.Map }

type mapKey struct {
	flow  [16]byte
	round int
}

func (s *syncMapStore) Spend(_ context.Context, use tripseal.Use) (bool, error) {
	_, used := s.used.LoadOrStore(mapKey{use.Flow, use.Round}, use.Until)
	return !used, nil
}

func useSizes() (all []size) {
	for _, count := range []int{25_000, 100_000, 400_000} {
		for _, kind := range []struct {
			name   string
			store  func() tripseal.ReplayStore
			owners int
		}{
			{"few users", func() tripseal.ReplayStore { return memoryStore() }, 64},
			{"every one another user's", func() tripseal.ReplayStore { return memoryStore() }, count},
			{"a sync.Map", func() tripseal.ReplayStore { return &syncMapStore{} }, count},
		} {
			before := heapInUse()
			store := kind.store()
			for i := range count {
				_, err := store.Spend(context.Background(), newUse(uint64(i), 12*time.Minute, uint64(kind.owners)))
				check(err)
			}
			bytes := float64(heapInUse()-before) / float64(count)
			runtime.KeepAlive(store)
			all = append(all, size{fmt.Sprintf("%d uses, %s", count, kind.name), bytes})
		}
	}
	return all
}

func heapInUse() int64 {
	for range 5 { // several times, because pools and finalizers free their memory only after further collections
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

const (
	rawUseName   = "SET NX through the same client"
	redisUseName = "tripseal"
)

// rawUse sends Redis the same kind of command that the Redis store sends. It makes none of
// the checks that make the store safe.
func rawUse(client *redis.Client) contender {
	ctx := context.Background()
	n := 0
	return contender{name: rawUseName, run: func() {
		n++
		first, err := client.SetNX(ctx, "raw:"+strconv.Itoa(n), 1, 12*time.Minute).Result()
		check(err)
		if !first {
			panic("not the first")
		}
	}}
}

func redisUse(client *redis.Client) contender {
	const skew = time.Millisecond // short, because the store rejects all tokens for this time if the Redis server is new
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Skew: skew})
	check(err)
	time.Sleep(2 * skew)
	return spendOne(redisUseName, store, 12*time.Minute, 0)
}
