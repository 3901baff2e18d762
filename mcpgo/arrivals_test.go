package mcpgo

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
)

// Nothing tells that a call is over if it panics, or if a task outlives it.
func TestTheArgumentsOfACallAreForgotten(t *testing.T) {
	b, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	before, held := arrivalsHeld(), 0
	hooks := new(server.Hooks)
	hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { held = max(held, arrivalsHeld()) })
	srv := server.NewMCPServer("test", "1", server.WithHooks(hooks))
	Protect(srv, b, &Options{AllowAnonymous: true})
	srv.AddTool(mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("over") })
	for range 100 {
		srv.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}}`))
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

func arrivalsHeld() (n int) {
	arrivals.Range(func(any, any) bool { n++; return true })
	return n
}

// If mcp-go kept its middleware elsewhere, every call would pay for outer middleware.
func TestMiddlewareThatWasAddedBeforeProtectIsFound(t *testing.T) {
	for _, has := range []bool{false, true} {
		srv := server.NewMCPServer("test", "1")
		if has {
			srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc { return next })
		}
		if got := hasMiddleware(srv); got != has {
			t.Errorf("got %t, want %t", got, has)
		}
	}
}

// FuzzSettle changes one form of arguments in every way. The other form must follow, and
// settling again must change nothing.
func FuzzSettle(f *testing.F) {
	f.Fuzz(func(t *testing.T, sent, changed string) {
		var value, other any
		if sent != "" && json.Unmarshal([]byte(sent), &value) != nil || json.Unmarshal([]byte(changed), &other) != nil {
			t.Skip()
		}
		for name, params := range map[string]mcp.CallToolParams{
			"raw":     {Arguments: value, RawArguments: json.RawMessage(changed)},
			"decoded": {Arguments: other, RawArguments: json.RawMessage(sent)},
			"both":    {Arguments: other, RawArguments: json.RawMessage(changed)},
			"removed": {Arguments: other},
		} {
			if err := settle(&params, []byte(sent)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var read any
			if len(params.RawArguments) > 0 && json.Unmarshal(params.RawArguments, &read) != nil {
				t.Fatalf("%s: %s is not JSON", name, params.RawArguments)
			}
			if !reflect.DeepEqual(read, params.Arguments) || !reflect.DeepEqual(read, other) {
				t.Fatalf("%s: %v and %s, want %s", name, params.Arguments, params.RawArguments, changed)
			}
			again := params
			if err := settle(&again, params.RawArguments); err != nil || fmt.Sprint(again) != fmt.Sprint(params) {
				t.Fatalf("%s: settled again: %v, %v, was %v", name, again, err, params)
			}
		}
	})
}
