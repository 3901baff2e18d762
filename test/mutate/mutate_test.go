package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/mcpgo"
)

// faults describes what a server does wrong.
type faults struct {
	plain bool                             // true if nothing seals the server's states
	tool  func(*mcp.CallToolRequest) error // runs before the tool; nil for none
	wrap  func(http.Handler) http.Handler  // wraps the HTTP handler; nil for none
}

// target returns a server with these faults. It has a tool that asks once.
func (f faults) target() Target {
	tool := func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if f.tool != nil {
			if err := f.tool(req); err != nil {
				return nil, err
			}
		}
		if form, _ := req.Params.InputResponses["confirm"].(*mcp.ElicitResult); form != nil && req.Params.RequestState == "secret state" {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		}
		return &mcp.CallToolResult{RequestState: "secret state", InputRequests: mcp.InputRequestMap{
			"confirm": &mcp.ElicitParams{Message: "Really?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}}},
		}}, nil
	}
	return Target{
		Start: func(config tripseal.Config) (*mcp.Server, http.Handler, error) {
			boundary, err := tripseal.New(config)
			if err != nil {
				return nil, nil, err
			}
			server := mcp.NewServer(&mcp.Implementation{Name: "faulty", Version: "1"}, nil)
			server.AddTool(&mcp.Tool{Name: "act", InputSchema: map[string]any{"type": "object"}}, tool)
			if !f.plain {
				gosdk.Protect(server, boundary, nil)
			}
			handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
			if f.wrap != nil {
				handler = f.wrap(handler)
			}
			return server, handler, nil
		},
		Calls: []Call{{Method: "tools/call", Params: map[string]any{"name": "act", "arguments": map[string]any{"a": "b"}}, Answer: func(Question) any {
			return json.RawMessage(`{"action":"accept","content":{"ok":true}}`)
		}}},
		Secrets: []string{"secret state"},
	}
}

func TestAGoodServerSurvives(t *testing.T) {
	Survive(t, faults{}.target())
}

func TestAFaultIsFound(t *testing.T) {
	var kept [][]byte
	var mu sync.Mutex
	ended := make(chan struct{})
	defer close(ended)
	every := func(n int64, then http.HandlerFunc) func(http.Handler) http.Handler {
		var requests atomic.Int64
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && requests.Add(1)%n == 0 {
					then(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	says := func(status int, media, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name, want string
		faults     faults
	}{
		{"a state in plain text", "is not sealed", faults{plain: true}},
		{"a state in an answer", `shows "secret state"`, faults{tool: func(r *mcp.CallToolRequest) error {
			if form, _ := r.Params.InputResponses["confirm"].(*mcp.ElicitResult); form != nil && form.Action != "accept" {
				return errors.New("cannot go on from " + r.Params.RequestState)
			}
			return nil
		}}},
		{"a state in the log", `the log shows "secret state"`, faults{tool: func(r *mcp.CallToolRequest) error {
			slog.Info("going on", "from", r.Params.RequestState)
			return nil
		}}},
		{"a handler that panicked", "the log tells of a panic", faults{tool: func(r *mcp.CallToolRequest) error {
			if string(r.Params.Arguments) != `{"a":"b"}` {
				slog.Error("a handler panicked")
			}
			return nil
		}}},
		{"a panic in the web server", "the log tells of a panic", faults{wrap: every(20, func(http.ResponseWriter, *http.Request) { panic("oops") })}},
		{"a broken connection", "EOF", faults{wrap: every(20, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })}},
		{"an outage", "the server failed", faults{wrap: every(20, says(500, "text/plain", "down"))}},
		{"an empty answer", "no answer", faults{wrap: every(20, says(200, "text/event-stream", ""))}},
		{"an answer that is not JSON", "not JSON-RPC", faults{wrap: every(20, says(200, "application/json", "hello"))}},
		{"an answer that is not JSON-RPC", "not JSON-RPC", faults{wrap: every(20, says(200, "application/json", `{"jsonrpc":"2.0","id":1}`))}},
		{"an error without a code", "not JSON-RPC", faults{wrap: every(20, says(400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}`))}},
		{"an honest request refused", "an honest request was refused", faults{wrap: every(20, says(400, "text/plain", "no"))}},
		{"memory kept", "the live heap grew", faults{tool: func(*mcp.CallToolRequest) error {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, make([]byte, 128<<10))
			return nil
		}}},
		{"goroutines kept", "goroutines are left over", faults{tool: func(*mcp.CallToolRequest) error {
			go func() { <-ended }()
			return nil
		}}},
	} {
		// Before the attack, run makes a few honest calls. If one of them fails, run returns an
		// error, and makes no attack. This error must show the fault.
		r, err := run(t.Context(), c.faults.target(), 400, 1)
		kept = nil
		found := ""
		if err != nil {
			found = err.Error()
		} else {
			found = strings.Join(append(r.failures, r.shortcomings()...), "\n")
		}
		if !strings.Contains(found, c.want) {
			t.Errorf("%s: found %q", c.name, found)
		}
	}
}

// TestAFaultOnMCPGoIsFound attacks servers on mcp-go: one without a fault, one whose states are in
// plain text, and one that refuses every call.
func TestAFaultOnMCPGoIsFound(t *testing.T) {
	target := func(protect bool, result func() *mcpgotypes.CallToolResult) Target {
		target := faults{}.target()
		target.Start = nil
		target.StartMCPGo = func(config tripseal.Config, options ...server.ServerOption) (http.Handler, error) {
			boundary, err := tripseal.New(config)
			if err != nil {
				return nil, err
			}
			srv := server.NewMCPServer("faulty", "1", options...)
			if protect {
				mcpgo.Protect(srv, boundary, &mcpgo.Options{AllowAnonymous: true})
			}
			srv.AddTool(mcpgotypes.NewTool("act"), func(_ context.Context, req mcpgotypes.CallToolRequest) (*mcpgotypes.CallToolResult, error) {
				if form := server.ElicitationResponse(req.Params.InputResponses, "confirm"); form != nil && req.Params.RequestState == "secret state" {
					return mcpgotypes.NewToolResultText("done"), nil
				}
				return result(), nil
			})
			return server.NewStreamableHTTPServer(srv), nil
		}
		return target
	}
	asks := func() *mcpgotypes.CallToolResult {
		form := mcpgotypes.ElicitationParams{Message: "Really?", RequestedSchema: map[string]any{"type": "object"}}
		return server.NewInputRequestBuilder("secret state").Elicit("confirm", form).ToolResult()
	}
	refuses := func() *mcpgotypes.CallToolResult { return mcpgotypes.NewToolResultError("no") }
	for _, c := range []struct {
		name, want string
		target     Target
	}{
		{"nothing", "", target(true, asks)},
		{"a state in plain text", "is not sealed", target(false, asks)},
		{"a tool that never asks", "carried an accepted token", target(true, refuses)},
		{"a tool that does nothing", "reached a handler", target(true, refuses)},
	} {
		r, err := run(t.Context(), c.target, 1000, 1)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Join(append(r.failures, r.shortcomings()...), "\n")
		if !strings.Contains(found, c.want) || c.want == "" && found != "" {
			t.Errorf("%s: found %q", c.name, found)
		}
	}
}

func TestAnAttackThatProvesLittleFails(t *testing.T) {
	r, err := run(t.Context(), Target{Start: faults{}.target().Start, Calls: []Call{{Method: "tools/list"}}}, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	short := strings.Join(r.shortcomings(), "\n")
	for _, want := range []string{"reached a handler", "carried an accepted token"} {
		if !strings.Contains(short, want) {
			t.Errorf("no %q in %q", want, short)
		}
	}
	if r, err = run(t.Context(), faults{}.target(), 8, 1); err != nil || len(r.unmade) == 0 {
		t.Errorf("eight requests make all mutations: %v", err)
	}
}

// sentBy returns what an attacker with this seed sends to a server that accepts everything.
func sentBy(seed uint64) (sent []string) {
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		sent = append(sent, fmt.Sprint(r.Header, string(body)))
		return &http.Response{StatusCode: 202, Header: http.Header{}, Body: http.NoBody}, err
	})
	r := &recording{
		users: []string{"a", "b"}, tokens: []string{"ms1.AAAA", "ms1.BBBB"}, names: []string{"act"}, answers: []any{map[string]any{"action": "accept"}},
		rounds: []round{{"a", "tools/call", json.RawMessage(`{"name":"act","requestState":"ms1.AAAA","inputResponses":{"confirm":{"action":"accept","content":{"ok":true}}}}`)}},
		calls:  []olderCall{{"b", "tools/call", json.RawMessage(`{"name":"act"}`), nil}},
	}
	a := &attacker{
		judge: &judge{counts: make(map[int]int)}, recorded: r, rand: rand.New(rand.NewPCG(seed, 0)), applied: make(map[string]bool),
		client: func(user string) *Client {
			return &Client{URL: "http://127.0.0.1/", Bearer: user, HTTP: &http.Client{Transport: transport}}
		},
	}
	for range 2000 {
		a.attack(context.Background())
	}
	return sent
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestASeedRepeatsAnAttack(t *testing.T) {
	first := sentBy(1)
	if !slices.Equal(first, sentBy(1)) {
		t.Error("one seed sends two different things")
	}
	if slices.Equal(first, sentBy(2)) {
		t.Error("two seeds send the same")
	}
}

// TestAMutationChangesNothingOfTheNext checks that mutations do not change oddValues, which all
// attackers share, and never put a value into itself. These two bugs once ended an attack with an
// endless recursion.
func TestAMutationChangesNothingOfTheNext(t *testing.T) {
	before, err := json.Marshal(oddValues)
	if err != nil {
		t.Fatal(err)
	}
	a := &attacker{rand: rand.New(rand.NewPCG(1, 2))}
	var value any = map[string]any{"a": []any{map[string]any{}}}
	for range 5000 {
		if value = a.twist(value); len(nodes(value)) > 50 {
			value = a.junk()
		}
	}
	if after, err := json.Marshal(oddValues); err != nil || string(after) != string(before) {
		t.Errorf("the odd values have changed: %v", err)
	}
}
