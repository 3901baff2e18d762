package mutate

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// What [Survive] does can be changed from outside.
const (
	CountVariable = "MCPSEAL_MUTATIONS"     // how many requests
	SeedVariable  = "MCPSEAL_MUTATION_SEED" // repeats the mutations of an earlier run
)

const (
	usualCount = 1500
	workers    = 4

	// Of all requests, this many percent must reach a handler, or bring a token
	// that is accepted: what is refused at the door proves little.
	leastReached, leastAccepted = 30, 10

	// maxGrowth is by how much the live heap may grow from the first tenth of the
	// requests to the last.
	maxGrowth     = 16 << 20
	maxGoroutines = 100 // the same for goroutines
)

// Target is a server to attack.
type Target struct {
	// Start makes the server with this config, and what serves it.
	Start func(mcpseal.Config) (*mcp.Server, http.Handler, error)
	Path  string   // where it is served
	Users []string // access tokens; none means that the server knows no users
	Calls []Call   // honest ones; they are made on both revisions, by every user
	// Secrets are parts of states and positions, which no response and no log may
	// hold.
	Secrets []string
}

// Survive attacks the target, and fails the test if it crashes, panics, hangs,
// answers with anything but JSON-RPC or an HTTP error, shows a secret, refuses an
// honest call, or keeps memory.
func Survive(t *testing.T, target Target) {
	count, seed := number(t, CountVariable, usualCount), uint64(number(t, SeedVariable, time.Now().UnixNano()))
	t.Logf("%s=%d", SeedVariable, seed)

	j := &judge{t: t, secrets: target.Secrets}
	before := slog.Default()
	slog.SetDefault(slog.New(j)) // servers take it where nobody gives them another
	defer slog.SetDefault(before)
	server, handler, err := target.Start(mcpseal.Config{
		Keys: mcpseal.Ephemeral(), Audience: "mutate.example.com", Logger: slog.New(j), Observer: j.observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	server.AddReceivingMiddleware(j.watch) // added last, it runs first
	web := httptest.NewUnstartedServer(handler)
	web.Config.ErrorLog = slog.NewLogLogger(j, slog.LevelError)
	web.Start()
	defer web.Close()
	client := func(user string) *Client {
		return &Client{URL: web.URL + target.Path, Bearer: user, HTTP: web.Client()}
	}

	recorded, err := record(t.Context(), target, client)
	if err != nil {
		t.Fatalf("recording honest calls: %v", err)
	}
	j.reset()
	attackers := make([]*attacker, workers)
	for i := range attackers {
		attackers[i] = &attacker{judge: j, recorded: recorded, client: client, rand: rand.New(rand.NewPCG(seed, uint64(i))), applied: make(map[string]int)}
	}
	part := func(n int64) {
		var group sync.WaitGroup
		for _, a := range attackers {
			group.Go(func() {
				for end := a.sent + n/workers; a.sent < end && !j.hopeless(); {
					a.attack(t.Context())
				}
			})
		}
		group.Wait()
		web.Client().CloseIdleConnections()
	}
	part(count / 10)
	heap, goroutines := settle(0, 0)
	part(count - count/10 + workers)
	heapAfter, goroutinesAfter := settle(heap+maxGrowth, goroutines+maxGoroutines)

	sent, applied := int64(0), make(map[string]int)
	for _, a := range attackers {
		sent += a.sent
		for name, n := range a.applied {
			applied[name] += n
		}
	}
	reached, accepted := 100*float64(j.reached.Load())/float64(sent), 100*float64(j.accepted.Load())/float64(sent)
	t.Logf("%d requests: %.1f %% reached a handler, %.1f %% carried an accepted token", sent, reached, accepted)
	t.Logf("the live heap grew by %d KiB, goroutines from %d to %d; answers %v, of them %d internal errors",
		(heapAfter-heap)>>10, goroutines, goroutinesAfter, j.answers(), j.internal.Load())
	if sent < count {
		t.Errorf("only %d of %d requests were sent", sent, count)
	}
	if reached < leastReached || accepted < leastAccepted {
		t.Errorf("at least %d %% must reach a handler, and %d %% carry an accepted token", leastReached, leastAccepted)
	}
	if heapAfter > heap+maxGrowth {
		t.Errorf("the live heap grew by more than %d MiB", maxGrowth>>20)
	}
	if goroutinesAfter > goroutines+maxGoroutines {
		t.Errorf("%d goroutines are left over", goroutinesAfter-goroutines)
	}
	for name := range mutations {
		if applied[name] == 0 {
			t.Errorf("the mutation %q was never made: %v", name, slices.Sorted(maps.Keys(applied)))
		}
	}
}

func number(t *testing.T, variable string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// settle returns the live heap and the goroutines. Sessions end a little after
// their last request, so it looks again while there is more than enough.
func settle(enoughHeap int64, enoughGoroutines int) (heap int64, goroutines int) {
	for range 50 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		heap, goroutines = int64(stats.HeapAlloc), runtime.NumGoroutine()
		if heap <= enoughHeap && goroutines <= enoughGoroutines {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return heap, goroutines
}
