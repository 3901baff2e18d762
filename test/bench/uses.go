package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// useComparisons returns comparisons of replay stores, which let each token be used only once.
func useComparisons() []comparison {
	inRedis := comparison{title: "a use in Redis, of a token that is new"}
	client, err := startRedis()
	if err != nil {
		inRedis.missing = err
	} else {
		inRedis.contenders = []contender{rawUse(client), redisUse(client)}
	}
	return []comparison{{title: "memory of one use that is held", measure: useSizes}, inRedis}
}

// newUse returns the use of token number n, which lasts for an hour. The argument users is the number
// of users who share the tokens. 0 means that each token has its own user.
func newUse(n uint64, users uint64) tripseal.Use {
	now := time.Now()
	use := tripseal.Use{Round: 1, Issued: now, Until: now.Add(time.Hour)}
	binary.BigEndian.PutUint64(use.Flow[:], n)
	if users > 0 {
		n = n%users + 1
	}
	binary.BigEndian.PutUint64(use.Owner[:], n)
	return use
}

func spendOne(name string, store tripseal.ReplayStore) contender {
	var n uint64
	return contender{name: name, run: func() {
		n++
		spend(store, n)
	}}
}

func spend(store tripseal.ReplayStore, n uint64) {
	first, err := store.Spend(context.Background(), newUse(n, 0))
	check(err)
	if !first {
		panic("not the first")
	}
}

func memoryStore() *replay.SingleProcess {
	store, err := replay.NewSingleProcess(replay.Config{Capacity: 100_000_000, Logger: slog.New(slog.DiscardHandler)})
	check(err)
	return store
}

func useSizes(time.Duration) (t table) {
	t.columns = []string{"bytes"}
	for _, count := range []uint64{25_000, 100_000, 400_000} {
		for _, users := range []uint64{64, count} {
			before := heapInUse()
			store := memoryStore()
			for n := range count {
				_, err := store.Spend(context.Background(), newUse(n, users))
				check(err)
			}
			bytes := float64(heapInUse()-before) / float64(count)
			runtime.KeepAlive(store)
			name := map[uint64]string{64: "few users", count: "every one another user's"}[users]
			t.add(fmt.Sprintf("%d uses, %s", count, name), fmt.Sprintf("%.1f", bytes))
		}
	}
	return t
}

func heapInUse() int64 {
	for range 5 { // several times, because pools and finalizers free their memory only after further collections
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// rawUse sends Redis the same kind of command that the Redis store sends. It makes none of
// the checks that make the store safe.
func rawUse(client *redis.Client) contender {
	ctx := context.Background()
	n := 0
	return contender{name: "SET NX through the same client", run: func() {
		n++
		first, err := client.SetNX(ctx, "raw:"+strconv.Itoa(n), 1, time.Hour).Result()
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
	return spendOne("tripseal", store)
}
