package probe_test

import (
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal/probe"
	"github.com/tripseal/tripseal/test/leaky"
)

// serveVariable names the holes of the server that the test binary becomes when it is started again.
const serveVariable = "TRIPSEAL_TEST_HOLES"

func TestMain(m *testing.M) {
	holes, serve := os.LookupEnv(serveVariable)
	debug.SetGCPercent(400) // most of the time goes into large messages that are soon forgotten
	if !serve {
		os.Exit(m.Run())
	}
	server, err := leaky.New(strings.Fields(holes)...)
	if err == nil {
		err = server.Serve(os.Stdin, os.Stdout)
	}
	if err != nil {
		os.Exit(1)
	}
}

func newServer(t *testing.T, holes ...string) *leaky.Server {
	t.Helper()
	server, err := leaky.New(holes...)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// fullOptions makes every attack possible on the test server. Its clock is a day ahead when the attack
// begins that sends an old state, so that nobody waits.
func fullOptions(server *leaky.Server) probe.Options {
	const release = `{"env":"staging","build":7}`
	var mu sync.Mutex
	var ahead time.Duration
	server.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(ahead)
	}
	return probe.Options{
		Targets: []probe.Target{
			{Method: "tools/call", Name: "deploy", Arguments: release},
			{Method: "tools/call", Name: "rollback", Arguments: release},
			{Method: "tools/call", Name: "book", Arguments: `{"seat":"12A"}`},
			{Method: "prompts/get", Name: "greet", Arguments: `{"who":"somebody"}`},
			{Method: "resources/read", Name: "note:///1"},
		},
		Paged:  []probe.Target{{Method: "tools/call", Name: "orders", Arguments: `{"status":"open"}`}},
		Bearer: "alice-token", OtherBearer: "bob-token",
		SingleUse: true, MaxAge: time.Millisecond,
		Timeout: 30 * time.Second,
		Progress: func(p probe.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Attack == "expired" {
				ahead = 24 * time.Hour
			}
		},
	}
}

// run lets the probe attack a server over HTTP.
func run(t *testing.T, handler http.Handler, options probe.Options) *probe.Report {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: handler} // httptest.Server waits half a second for a connection with an unread body
	go web.Serve(listener)
	defer web.Close()
	server, err := probe.HTTP("http://" + listener.Addr().String() + "/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	report, err := probe.Run(t.Context(), server, options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func verdicts(r *probe.Report) map[string]probe.Verdict {
	all := map[string]probe.Verdict{}
	for _, result := range r.Results {
		all[result.ID] = result.Verdict
	}
	return all
}

// found returns the ids of the attacks that got through, sorted.
func found(r *probe.Report) (all []string) {
	for _, result := range r.Results {
		if result.Verdict == probe.Found {
			all = append(all, result.ID)
		}
	}
	slices.Sort(all)
	return all
}
