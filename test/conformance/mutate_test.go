package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/mcpgo"
)

const (
	usualCount = 2000
	workers    = 4

	// Of the replies, at least leastResults percent must be results, and for each 100 requests at
	// least leastAccepted tokens must be accepted: requests that are refused at once prove little.
	leastResults, leastAccepted = 30, 10

	// After the first tenth of the requests, the live heap may grow by maxGrowth bytes, and the
	// number of goroutines by maxGoroutines.
	maxGrowth     = 16 << 20
	maxGoroutines = 100
)

// TestTheServerSurvivesMutatedRequests attacks the server like a hostile client. It records honest
// calls of two users, and sends them again with changed methods, states, cursors, answers, arguments,
// users and ids. The variable TRIPSEAL_MUTATIONS sets how many requests it sends, and
// TRIPSEAL_MUTATION_SEED repeats an earlier run. The server must not crash, panic, hang, leak memory,
// reveal a secret or refuse an honest request, and no handler may get a state, an answer or a position
// that is not its own.
func TestTheServerSurvivesMutatedRequests(t *testing.T) {
	count, seed := number(t, "TRIPSEAL_MUTATIONS", usualCount), number(t, "TRIPSEAL_MUTATION_SEED", time.Now().UnixNano())
	t.Logf("TRIPSEAL_MUTATION_SEED=%d", seed)
	for _, sdk := range []string{officialSDK, mcpgoSDK} {
		t.Run(sdk, func(t *testing.T) {
			for kind, failure := range attack(t, sdk, count, uint64(seed), faults{}) {
				t.Errorf("%s: %s", kind, failure)
			}
		})
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

// faults describes what a server does wrong.
type faults struct {
	unprotected bool
	sometimes   http.HandlerFunc // serves some of the requests of the attack; nil for none
}

// TestTheJudgeNoticesWhatGoesWrong attacks servers with faults.
func TestTheJudgeNoticesWhatGoesWrong(t *testing.T) {
	var mu sync.Mutex
	var kept [][]byte
	status := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
	}
	for _, c := range []struct {
		faults faults
		want   []string
	}{
		{faults{unprotected: true},
			[]string{"a bad message", "a secret in an answer", "a foreign state", "a foreign answer"}},
		{faults{sometimes: func(http.ResponseWriter, *http.Request) { panic("oops") }},
			[]string{"a panic", "a request failed"}},
		{faults{sometimes: status(500)}, []string{"an outage"}},
		{faults{sometimes: status(400)}, []string{"an honest request was refused"}},
		{faults{sometimes: func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, make([]byte, 1<<20))
		}}, []string{"memory", "no answer"}},
	} {
		for _, sdk := range []string{officialSDK, mcpgoSDK} {
			if sdk == mcpgoSDK && !c.faults.unprotected {
				continue // the other faults are in front of the SDK
			}
			found := attack(t, sdk, 1000, 1, c.faults)
			for _, kind := range c.want {
				if found[kind] == "" {
					t.Errorf("%s: %s is not noticed; found %q", sdk, kind, found)
				}
			}
		}
	}
	runtime.KeepAlive(kept)
}

// attack starts a server, records honest calls, and sends the given number of requests, mutated or
// not. It returns what went wrong.
func attack(t *testing.T, sdk string, count int64, seed uint64, f faults) map[string]string {
	t.Helper()
	j := new(judge)
	before := slog.Default()
	slog.SetDefault(slog.New(j)) // for code that is given no other logger
	defer slog.SetDefault(before)
	handler := witnessed(t, sdk, j, f.unprotected)
	var attacking atomic.Bool
	var requests atomic.Int64
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.sometimes != nil && attacking.Load() && requests.Add(1)%20 == 0 && r.Method == http.MethodPost {
			f.sometimes(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	web.Config.ErrorLog = slog.NewLogLogger(j, slog.LevelError)
	web.Start()
	defer web.Close()

	honestly, recorded := client{url: web.URL, listens: sdk == mcpgoSDK}, new(recording)
	for _, honestly.user = range []string{"alice", "bob"} {
		for _, call := range honestCalls(sdk, f.unprotected) {
			if err := recorded.call(t.Context(), &honestly, call); err != nil {
				t.Fatal(err)
			}
		}
	}
	j.accepted.Store(0)
	attacking.Store(true)
	honestly.user = ""
	attackers := make([]*attacker, workers)
	for i := range attackers {
		attackers[i] = &attacker{judge: j, recorded: recorded, client: honestly, rand: rand.New(rand.NewPCG(seed, uint64(i)))}
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
					a.attack(t.Context())
				}
			})
		}
		group.Wait()
		http.DefaultClient.CloseIdleConnections()
	}
	each := (count + workers - 1) / workers
	send(each / 10)
	heap, goroutines := settle(10, 0, 0)
	send(each - each/10)
	heapAfter, goroutinesAfter := settle(100, heap+maxGrowth, goroutines+maxGoroutines)
	sent := int64(0)
	for _, a := range attackers {
		sent += a.sent
	}
	results, accepted := 100*j.results.Load()/sent, 100*j.accepted.Load()/sent
	if results < leastResults || accepted < leastAccepted {
		j.fail("it proves little", "%d %% of the requests got a result, %d %% had an accepted token", results, accepted)
	}
	if heapAfter > heap+maxGrowth {
		j.fail("memory", "the live heap grew by %d KiB", (heapAfter-heap)>>10)
	}
	if goroutinesAfter > goroutines+maxGoroutines {
		j.fail("goroutines", "%d are left over", goroutinesAfter-goroutines)
	}
	return j.failures
}

// honestCalls returns the calls that each user makes with both protocol revisions.
func honestCalls(sdk string, unprotected bool) []wireCall {
	service := func(of string) map[string]any { return map[string]any{"service": of} }
	calls := []wireCall{
		{"tools/list", nil, nil}, {"prompts/list", nil, nil},
		{"tools/call", map[string]any{"name": prefix + "witness", "arguments": service("a")}, answer},
		{"tools/call", map[string]any{"name": prefix + "witness", "arguments": service("b")}, answer},
	}
	for _, s := range scenarios {
		calls = append(calls, scenarioCall(s.name, answer))
	}
	if !unprotected {
		calls = append(calls, wireCall{"tools/call", map[string]any{"name": "list", "arguments": service("a")}, nil})
		if sdk == officialSDK {
			calls = append(calls, wireCall{"tools/call", map[string]any{"name": "elicits", "arguments": service("a")}, answer})
		}
	}
	return calls
}

// witnessed returns the HTTP handler of the server with more tools. Each notices when it gets a
// state, an answer or a position that it did not write, or wrote for another user or other arguments.
func witnessed(t *testing.T, sdk string, j *judge, unprotected bool) (handler http.Handler) {
	t.Helper()
	tools["witness"] = j.witness
	s := settings{sdk: sdk, unprotected: unprotected, pageSize: 5, config: tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "mutate.example.com", Logger: slog.New(j), Observer: j.observe,
	}}
	if unprotected {
		s.pageSize = 0
	}
	engine, err := newEngine(s)
	if err != nil {
		t.Fatal(err)
	}
	if sdk == mcpgoSDK {
		srv := newMCPGoServer(s)
		if engine != nil {
			mcpgo.AddPagedTool(srv, engine, mcpgotypes.NewTool("list"),
				func(ctx context.Context, _ mcpgotypes.CallToolRequest, in listArgs, after *position) ([]int, *position, error) {
					user, _ := mcpgoUser(ctx)
					return j.list(user, in, after)
				}, nil)
		}
		return mcpgoHandler(srv, engine)
	}
	server, protected, err := newServer(s)
	if err != nil {
		t.Fatal(err)
	}
	if protected != nil {
		gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list"},
			func(ctx context.Context, req *mcp.CallToolRequest, in listArgs, after *position) ([]int, *position, error) {
				user, _ := sdkUser(ctx, req.Extra)
				return j.list(user, in, after)
			}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "elicits"}, gosdk.AskingTool(j.elicits))
	}
	return sdkHandler(server, protected, engine)
}

// witness asks twice. Its state says which call it was written for.
func (j *judge) witness(r round) reply {
	owner := fmt.Sprintf("written for %s, %s: ", r.user, canonical(r.arguments))
	asked := map[string]map[string]question{
		"":        {},
		"state 1": {"name": form("What is your name?", "name", "string"), "sample": sample("What is the capital?", 9)},
		"state 2": {"roots": roots()},
	}
	step, ok := strings.CutPrefix(r.state, owner)
	if !ok && r.state != "" || asked[step] == nil {
		j.fail("a foreign state", "%.200q in a call of %.200q", r.state, owner)
	}
	for _, key := range r.keys() {
		if _, ok := asked[step][key]; !ok {
			j.fail("a foreign answer", "%q in step %.100q", key, step)
		}
	}
	_, named := fieldText(r, "name", "name")
	switch _, listed := r.roots("roots"); {
	case step == "state 2" && listed:
		return text("done")
	case step == "state 2" || step == "state 1" && named && r.sample("sample") != "":
		return ask(owner+"state 2", asked["state 2"])
	}
	return ask(owner+"state 1", asked["state 1"])
}

// canonical returns a text that is the same for equal arguments.
func canonical(arguments string) string {
	var value map[string]any
	if err := json.Unmarshal([]byte(arguments), &value); err != nil {
		return arguments
	}
	text, _ := json.Marshal(value)
	return strings.ReplaceAll(string(text), "null", "{}")
}

type listArgs struct {
	Service string `json:"service"`
}

// position is where a page of the tool named list ends.
type position struct {
	Of   string `json:"of"`
	Page int    `json:"page"`
}

func (j *judge) list(user string, in listArgs, after *position) ([]int, *position, error) {
	if len(in.Service) > 100 {
		return nil, nil, fmt.Errorf("no such service")
	}
	next := position{Of: "written for " + user + in.Service}
	if after != nil {
		if after.Of != next.Of {
			j.fail("a foreign cursor", "%+v in a call of %s", after, next.Of)
		}
		next.Page = after.Page + 1
	}
	if next.Page == 3 {
		return []int{next.Page}, nil, nil
	}
	return []int{next.Page}, &next, nil
}

func (j *judge) elicits(_ context.Context, ask *elicit.Asker, in listArgs) (listArgs, error) {
	of, err := elicit.Once(ask, "of", func() (string, error) { return "written for " + in.Service, nil })
	if err != nil {
		return listArgs{}, err
	}
	if of != "written for "+in.Service {
		j.fail("a foreign state", "%q in a call for %q", of, in.Service)
	}
	type confirm struct {
		OK bool `json:"ok"`
	}
	yes, err := elicit.Form[confirm](ask, "confirm", "Please confirm").Value()
	if err != nil || !yes.OK {
		return listArgs{}, err
	}
	_, err = elicit.Sample[mcp.CreateMessageResult](ask, "sample", &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "What is the capital of France?"}},
	}}).Value()
	return in, err
}

// settle returns the bytes of live heap and the number of goroutines. Sessions end a little after
// their last request, so settle measures again while one of the two numbers is above its limit. It
// measures at most maxTries times.
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
