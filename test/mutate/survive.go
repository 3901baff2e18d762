package mutate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// Environment variables that change what [Survive] does.
const (
	CountVariable = "TRIPSEAL_MUTATIONS"     // the number of requests to send
	SeedVariable  = "TRIPSEAL_MUTATION_SEED" // the seed of an earlier run, so that its mutations are repeated
)

const (
	usualCount = 1500
	workers    = 4

	// At least leastReached percent of the requests must reach a handler. At least leastAccepted
	// percent must have an accepted token. Requests that the server refuses at once prove little.
	leastReached, leastAccepted = 30, 10

	// After the first tenth of the requests, the live heap may grow by maxGrowth bytes, and the
	// number of goroutines by maxGoroutines.
	maxGrowth     = 16 << 20
	maxGoroutines = 100
)

// Target is a server to attack.
type Target struct {
	// Start makes a server of the official SDK with this config, and its HTTP handler.
	Start func(tripseal.Config) (*mcp.Server, http.Handler, error)
	// StartMCPGo is set in place of Start if the server is built with mcp-go. It must pass
	// the options to server.NewMCPServer.
	StartMCPGo func(tripseal.Config, ...server.ServerOption) (http.Handler, error)

	Path  string   // the path of the server's URL
	Users []string // the access tokens of the users; nil means that the server has no users
	Calls []Call   // honest calls, which each user makes with both protocol revisions
	// Secrets are texts in states and in the positions that cursors hold. No response and no
	// log record may contain one of them.
	Secrets []string
}

// Survive attacks the target. It fails the test if the target crashes, panics, hangs, answers
// with anything but JSON-RPC or an HTTP error, reveals a secret, refuses an honest request, or
// leaks memory.
func Survive(t *testing.T, target Target) {
	seed := uint64(number(t, SeedVariable, time.Now().UnixNano()))
	t.Logf("%s=%d", SeedVariable, seed)
	r, err := run(t.Context(), target, number(t, CountVariable, usualCount), seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d requests: %.1f %% reached a handler, %.1f %% carried an accepted token", r.sent, r.reached, r.accepted)
	t.Logf("the live heap grew by %d KiB, and by %d goroutines; answers by status %v, of them %d internal errors",
		r.growth>>10, r.goroutines, r.answers, r.internal)
	for _, failure := range append(r.failures, r.shortcomings()...) {
		t.Error(failure)
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

// report is the result of an attack.
type report struct {
	count, sent int64
	reached     float64     // the percentage of the requests that reached a handler
	accepted    float64     // the percentage of the requests whose token was accepted
	growth      int64       // how much the live heap grew, in bytes
	goroutines  int         // how much the number of goroutines grew
	answers     map[int]int // the number of replies for each HTTP status
	internal    int64
	failures    []string
	unmade      []string // the names of the mutations that were never made
}

// shortcomings returns what is wrong with the attack as a whole, for example that too few
// requests reached a handler or that the server leaks memory.
func (r *report) shortcomings() (all []string) {
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	add(r.sent < r.count, "only %d of %d requests were sent", r.sent, r.count)
	add(r.reached < leastReached, "less than %d %% of the requests reached a handler", leastReached)
	add(r.accepted < leastAccepted, "less than %d %% of the requests carried an accepted token", leastAccepted)
	add(r.growth > maxGrowth, "the live heap grew by more than %d MiB", maxGrowth>>20)
	add(r.goroutines > maxGoroutines, "%d goroutines are left over", r.goroutines)
	add(len(r.unmade) > 0, "mutations that were never made: %q", r.unmade)
	return all
}

// run starts the target, records honest calls, and sends the given number of requests, mutated
// or not.
func run(ctx context.Context, target Target, count int64, seed uint64) (*report, error) {
	j := &judge{secrets: target.Secrets, counts: make(map[int]int)}
	before := slog.Default()
	slog.SetDefault(slog.New(j)) // for servers that are given no other logger
	defer slog.SetDefault(before)
	handler, err := target.start(j)
	if err != nil {
		return nil, err
	}
	web := httptest.NewUnstartedServer(handler)
	web.Config.ErrorLog = slog.NewLogLogger(j, slog.LevelError)
	web.Start()
	defer func() {
		ended := make(chan struct{})
		go func() { web.Close(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(patience): // do not wait any longer: a call hangs, and this was already reported
		}
	}()
	client := func(user string) *Client {
		return &Client{URL: web.URL + target.Path, Bearer: user, HTTP: web.Client(), Listens: target.StartMCPGo != nil}
	}

	recorded, err := record(ctx, target, client)
	if err != nil {
		return nil, fmt.Errorf("an honest call: %w", err)
	}
	j.reset()
	attackers := make([]*attacker, workers)
	for i := range attackers {
		attackers[i] = &attacker{judge: j, recorded: recorded, client: client, rand: rand.New(rand.NewPCG(seed, uint64(i))), applied: make(map[string]bool)}
	}
	for i, shot := range systematicShots(recorded) {
		a := attackers[i%workers]
		a.first = append(a.first, shot)
	}
	send := func(n int64) {
		var group sync.WaitGroup
		for _, a := range attackers {
			group.Go(func() {
				for end := a.sent + n; a.sent < end && !j.hopeless(); {
					a.attack(ctx)
				}
			})
		}
		group.Wait()
		web.Client().CloseIdleConnections()
	}
	each := (count + workers - 1) / workers
	send(each / 10)
	heap, goroutines := settle(10, 0, 0)
	send(each - each/10)
	heapAfter, goroutinesAfter := settle(100, heap+maxGrowth, goroutines+maxGoroutines)

	r := &report{count: count, growth: heapAfter - heap, goroutines: goroutinesAfter - goroutines, answers: j.counts, internal: j.internal.Load(), failures: j.failures}
	for _, a := range attackers {
		r.sent += a.sent
	}
	r.reached = 100 * float64(j.reached.Load()) / float64(max(r.sent, 1))
	r.accepted = 100 * float64(j.accepted.Load()) / float64(max(r.sent, 1))
	for _, alike := range mutations {
		for _, m := range alike {
			made := false
			for _, a := range attackers {
				made = made || a.applied[m.name]
			}
			if !made {
				r.unmade = append(r.unmade, m.name)
			}
		}
	}
	return r, nil
}

// start makes the server. The judge is its logger, its observer and its middleware.
func (target *Target) start(j *judge) (http.Handler, error) {
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "mutate.example.com", Logger: slog.New(j), Observer: j.observe}
	if target.StartMCPGo != nil {
		return target.StartMCPGo(config, j.watchMCPGo()...)
	}
	server, handler, err := target.Start(config)
	if err == nil {
		server.AddReceivingMiddleware(j.watch) // in the official SDK, the middleware that was added last runs first
	}
	return handler, err
}

// settle returns the bytes of live heap and the number of goroutines. Sessions end a little
// after their last request, so settle measures again while one of the two numbers is above its
// limit. It measures at most maxTries times.
func settle(maxTries int, enoughHeap int64, enoughGoroutines int) (heap int64, goroutines int) {
	for try := range maxTries {
		if try > 0 {
			time.Sleep(20 * time.Millisecond)
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		heap, goroutines = int64(stats.HeapAlloc), runtime.NumGoroutine()
		if heap <= enoughHeap && goroutines <= enoughGoroutines {
			break
		}
	}
	return heap, goroutines
}
