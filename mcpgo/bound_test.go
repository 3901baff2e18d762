package mcpgo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"runtime"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
)

// hasMiddleware reads private fields of mcp-go. If a newer mcp-go has no such fields, hasMiddleware
// returns true for every server, which makes calls slower.
func TestMiddlewareThatWasAddedBeforeProtectIsFound(t *testing.T) {
	tools := server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc { return next })
	prompts := server.WithPromptHandlerMiddleware(func(next server.PromptHandlerFunc) server.PromptHandlerFunc { return next })
	resources := server.WithResourceHandlerMiddleware(func(next server.ResourceHandlerFunc) server.ResourceHandlerFunc { return next })
	for _, options := range [][]server.ServerOption{nil, {tools}, {prompts}, {tools, prompts}} {
		if got, want := hasMiddleware(server.NewMCPServer("test", "1", options...), "tool", "prompt"), options != nil; got != want {
			t.Errorf("%d options: got %t, want %t", len(options), got, want)
		}
	}
	if hasMiddleware(server.NewMCPServer("test", "1", tools, prompts), "resource") || !hasMiddleware(server.NewMCPServer("test", "1", resources), "resource") {
		t.Error("middleware for resources is not told from other middleware")
	}
}

// Servers on other SDKs open the same tokens, and bind them to the object that arrived. They must
// not open a token for changed arguments. So if a hook or middleware changed the arguments, the
// token must be bound to a text that is not an object. Two calls must have different texts if one
// of three things differs: what the client sent, what a typed handler reads, or Params.Arguments.
func TestNoOtherArgumentsHaveTheTextOfChangedOnes(t *testing.T) {
	texts := []string{
		``, `{}`, `{"a":1}`, `[]`, `[{}]`, `[{},{},{}]`, `[{},{},{"a":1}]`, `[{"a":1},{},{}]`, `[[{},{},{"a":1}]]`, ` [[]]`, `[[],[],[]]`, `5`, `"a"`, `{"a":[{},{}]}`,
	}
	seen := make(map[string]string)
	for _, sent := range texts {
		for _, raw := range texts {
			for _, decoded := range texts {
				params := mcp.CallToolParams{RawArguments: json.RawMessage(raw), Arguments: decode(t, decoded)}
				bound := string(boundText([]byte(sent), &params, 1<<10))
				typed := raw // what a typed handler reads
				if typed == "" {
					typed = decoded
				}
				// An empty text means the same as {}.
				sent, typed, decoded, bound := cmp.Or(sent, "{}"), cmp.Or(typed, "{}"), cmp.Or(decoded, "{}"), cmp.Or(bound, "{}")
				if isSame := sent == typed && sent == decoded; !isSame && bound[0] != '[' {
					t.Errorf("%s, %s and %s are bound to %s", sent, raw, decoded, bound)
				}
				var compact bytes.Buffer
				if err := json.Compact(&compact, []byte(bound)); err != nil {
					t.Fatalf("%s, %s and %s: %v", sent, raw, decoded, err)
				}
				all := sent + " became " + typed + " and " + decoded
				if other, ok := seen[compact.String()]; ok && other != all {
					t.Errorf("%s is bound to %s, as is %s", all, bound, other)
				}
				seen[compact.String()] = all
			}
		}
	}
}

func decode(t testing.TB, text string) (value any) {
	t.Helper()
	if text != "" && json.Unmarshal([]byte(text), &value) != nil {
		t.Skip("not JSON")
	}
	return value
}

// FuzzBoundText makes two calls with changed arguments. If the token of the first call opens in the
// second, both clients must have sent the same arguments, and both handlers must get the same
// arguments.
func FuzzBoundText(f *testing.F) {
	b := newBoundary(f)
	f.Fuzz(func(t *testing.T, sent, raw, decoded, otherSent, otherRaw, otherDecoded string) {
		one := mcp.CallToolParams{RawArguments: json.RawMessage(raw), Arguments: decode(t, decoded)}
		other := mcp.CallToolParams{RawArguments: json.RawMessage(otherRaw), Arguments: decode(t, otherDecoded)}
		if !opensFor(t, b, boundText([]byte(sent), &one, 1<<20), boundText([]byte(otherSent), &other, 1<<20)) {
			return
		}
		typed := func(params mcp.CallToolParams) (value any) { // what a typed handler reads
			request := mcp.CallToolRequest{Params: params}
			if request.BindArguments(&value) != nil {
				t.Skip("a typed handler reads nothing")
			}
			return value
		}
		if !opensFor(t, b, []byte(sent), []byte(otherSent)) || !reflect.DeepEqual(orEmpty(typed(one)), orEmpty(typed(other))) ||
			!opensFor(t, b, []byte(raw), []byte(otherRaw)) || !reflect.DeepEqual(orEmpty(one.Arguments), orEmpty(other.Arguments)) {
			t.Errorf("%s and %v are bound to %s, as are %s and %v", raw, one.Arguments, boundText([]byte(sent), &one, 1<<20), otherRaw, other.Arguments)
		}
	})
}

// opensFor reports whether a token that was sealed for some arguments opens for others.
func opensFor(t *testing.T, b *tripseal.Boundary, sealed, opened []byte) bool {
	request := tripseal.Request{Method: "tools/call", Target: "t", Arguments: sealed}
	round, err := b.Open(t.Context(), request, "")
	if err != nil {
		return false
	}
	state := "s"
	token, err := b.Seal(t.Context(), &round, &state)
	if err != nil {
		return false
	}
	request.Arguments = opened
	_, err = b.Open(t.Context(), request, token)
	return err == nil
}

// TestTheArgumentsOfACallAreForgotten makes calls in which outer middleware panics, so no hook runs
// at the end of the call. The arguments of a call must be forgotten all the same, when the
// RequestProtocolInfo of the call is garbage-collected.
func TestTheArgumentsOfACallAreForgotten(t *testing.T) {
	b := newBoundary(t)
	before, held := arrivalsHeld(), 0
	hooks := new(server.Hooks)
	hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { held = max(held, arrivalsHeld()) })
	srv := server.NewMCPServer("test", "1", server.WithHooks(hooks), server.WithToolHandlerMiddleware(func(server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("over") }
	}))
	Protect(srv, b, &Options{AllowAnonymous: true, Logger: slog.New(slog.DiscardHandler)})
	srv.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	for range 100 {
		func() {
			defer func() { recover() }()
			srv.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}`))
		}()
	}
	if held <= before {
		t.Fatal("nothing was remembered")
	}
	for range 100 {
		if runtime.GC(); arrivalsHeld() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d of 100 are held for ever", arrivalsHeld()-before)
}

// mcp-go keeps the context of a task for as long as the client wants. So the arguments of a task
// must be forgotten before it runs.
func TestTheArgumentsOfATaskAreForgotten(t *testing.T) {
	before, held := arrivalsHeld(), 0
	srv := server.NewMCPServer("test", "1", server.WithRecovery(), server.WithTaskCapabilities(true, true, true))
	Protect(srv, newBoundary(t), &Options{AllowAnonymous: true})
	ran := make(chan struct{})
	srv.AddTool(mcp.NewTool("t", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		held = arrivalsHeld()
		close(ran)
		return mcp.NewToolResultText("done"), nil
	})
	srv.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{},"arguments":{"a":1}}}`))
	if <-ran; held > before {
		t.Errorf("%d are held", held-before)
	}
}

func arrivalsHeld() (n int) {
	arrivals.Range(func(any, any) bool { n++; return true })
	return n
}

func newBoundary(t testing.TB) *tripseal.Boundary {
	t.Helper()
	b, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
