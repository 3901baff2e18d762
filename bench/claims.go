package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/replay"
	"github.com/mcpseal/mcpseal/replay/redisreplay"
)

// claimComparisons are about tokens that work once.
func claimComparisons() []comparison {
	all := []comparison{
		{title: "a claim in memory, of a token that is new, while others expire", rows: memoryClaims},
		{title: "memory of one claim that is held", sizes: claimSizes},
	}
	client, err := startRedis()
	if err != nil {
		fmt.Fprintf(os.Stderr, "left out, claims in Redis: %v\n", err)
		return all
	}
	return append(all, comparison{title: "a claim in Redis, of a token that is new", contenders: []contender{rawClaim(client), redisClaim(client)}})
}

func memoryClaims(budget time.Duration) []row {
	return steady([]steadyStore{
		{name: "naive: a map and a mutex, expiring", open: func() mcpseal.ReplayStore { return &mutexStore{used: map[mapKey]time.Time{}} }},
		{name: "naive: a sync.Map without an end", open: func() mcpseal.ReplayStore { return &syncMapStore{} }},
		{name: "mcpseal, bounded and expiring", open: func() mcpseal.ReplayStore { return memoryStore() }},
	}, budget)
}

// newUse is a token, and a user, that nobody has seen.
func newUse(n uint64, lasts time.Duration) mcpseal.Use {
	now := time.Now()
	use := mcpseal.Use{Round: 1, Issued: now, Until: now.Add(lasts)}
	binary.BigEndian.PutUint64(use.Flow[:], n)
	binary.BigEndian.PutUint64(use.Owner[:], n)
	return use
}

func claimOne(name string, store mcpseal.ReplayStore, lasts time.Duration) contender {
	ctx := context.Background()
	var n uint64
	return contender{name: name, run: func() {
		n++
		first, err := store.Claim(ctx, newUse(n, lasts))
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

// syncMapStore is what one writes first: it has no bound and forgets nothing.
type syncMapStore struct{ used sync.Map }

type mapKey struct {
	flow  [16]byte
	round int
}

func (s *syncMapStore) Claim(_ context.Context, use mcpseal.Use) (bool, error) {
	_, used := s.used.LoadOrStore(mapKey{use.Flow, use.Round}, use.Until)
	return !used, nil
}

func claimSizes() (all []size) {
	for _, count := range []int{5_000, 25_000, 100_000, 400_000} {
		for _, kind := range []struct {
			name   string
			store  func() mcpseal.ReplayStore
			owners int
		}{
			{"few users", func() mcpseal.ReplayStore { return memoryStore() }, 64},
			{"every one another user's", func() mcpseal.ReplayStore { return memoryStore() }, count},
			{"a sync.Map", func() mcpseal.ReplayStore { return &syncMapStore{} }, count},
		} {
			before := heapInUse()
			store := kind.store()
			for i := range count {
				use := newUse(uint64(i), 12*time.Minute)
				binary.BigEndian.PutUint64(use.Owner[:], uint64(i%kind.owners+1))
				_, err := store.Claim(context.Background(), use)
				check(err)
			}
			bytes := float64(heapInUse()-before) / float64(count)
			runtime.KeepAlive(store)
			all = append(all, size{fmt.Sprintf("%d claims, %s", count, kind.name), bytes})
		}
	}
	return all
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// rawClaim is the same command, without all that makes it safe to use.
func rawClaim(client *redis.Client) contender {
	ctx := context.Background()
	n := 0
	return contender{name: "SET NX through the same client", run: func() {
		n++
		first, err := client.SetNX(ctx, "raw:"+strconv.Itoa(n), 1, 12*time.Minute).Result()
		check(err)
		if !first {
			panic("not the first")
		}
	}}
}

func redisClaim(client *redis.Client) contender {
	const skew = time.Millisecond // a new server: what is issued after that counts
	store, err := redisreplay.New(context.Background(), client, redisreplay.Config{Skew: skew})
	check(err)
	time.Sleep(2 * skew)
	return claimOne("mcpseal", store, 12*time.Minute)
}
