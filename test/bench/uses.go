package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

// useComparisons returns comparisons of replay stores, which let each token be used only once.
func useComparisons() []comparison {
	one := comparison{title: "a use in Redis, of a token that is new, by one caller"}
	many := comparison{title: "a use in Redis, of a token that is new, by sixteen callers at once"}
	client, err := startRedis()
	if err != nil {
		one.missing, many.missing = err, err
	} else {
		one.contenders = []contender{rawUse(client, 1), redisUse(client, 1), redisCall(client)}
		one.limits = []limit{{"tripseal", ratio, 1.4}}
		many.contenders = []contender{rawUse(client, 16), redisUse(client, 16)}
		many.limits = []limit{{"tripseal", ratio, 2.1}}
	}
	return []comparison{{title: "memory of one use that is held", measure: useSizes}, one, many}
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

// rawUse sends Redis a SET NX for each use. It makes none of the checks that make the store safe.
func rawUse(client *redis.Client, callers int) contender {
	prefix := fmt.Sprintf("raw%d:", callers)
	return concurrently("SET NX through the same client", callers, func(n uint64) {
		first, err := client.SetNX(context.Background(), prefix+strconv.FormatUint(n, 10), 1, time.Hour).Result()
		check(err)
		if !first {
			panic("not the first")
		}
	})
}

func redisUse(client *redis.Client, callers int) contender {
	store := redisStore(client)
	return concurrently("tripseal", callers, func(n uint64) { spend(store, n) })
}

// redisCall begins a call and ends it with a result of 1 KiB.
func redisCall(client *redis.Client) contender {
	store, result := redisStore(client), make([]byte, 1024)
	return concurrently("tripseal, with a result of 1 KiB", 1, func(n uint64) {
		use, claim := newUse(n, 0), tripseal.Claim{Lease: time.Minute}
		begun, err := store.Begin(context.Background(), use, claim)
		check(err)
		if begun.State != tripseal.CallFirst {
			panic("not the first")
		}
		check(store.End(context.Background(), use, claim, tripseal.End{Result: result, Keep: time.Minute}))
	})
}

var prefixes int

// redisStore returns a store whose keys no other store has.
func redisStore(client *redis.Client) *redisreplay.Store {
	const skew = time.Millisecond // short, because the store rejects all tokens for this time if the Redis server is new
	prefixes++
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Skew: skew, Prefix: fmt.Sprintf("%d:", prefixes)})
	check(err)
	time.Sleep(2 * skew)
	return store
}

// concurrently returns a contender in which so many callers each do a job once.
func concurrently(name string, callers int, job func(n uint64)) contender {
	var n atomic.Uint64
	return contender{name: name, run: func() {
		if callers == 1 {
			job(n.Add(1))
			return
		}
		var group sync.WaitGroup
		for range callers {
			group.Go(func() { job(n.Add(1)) })
		}
		group.Wait()
	}}
}
