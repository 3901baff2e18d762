package mcpgo_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/mcpgo"
)

// Servers that are made on demand may share hooks, for example for metrics. Run this test with
// the race detector.
func TestServersThatShareHooksMayBeInstalledAtTheSameTime(t *testing.T) {
	p := mcpgo.Prepare(boundary(t, new(log), nil), &mcpgo.Options{Principal: userFromContext, Logger: slog.New(slog.DiscardHandler)})
	for range 50 {
		hooks := new(server.Hooks)
		start := make(chan struct{})
		var group sync.WaitGroup
		for range 4 {
			srv := server.NewMCPServer("test", "1", server.WithHooks(hooks), server.WithPaginationLimit(1))
			addHandlers(srv)
			group.Go(func() {
				<-start
				p.Install(srv)
				answer, err := json.Marshal(srv.HandleMessage(as(context.Background(), "alice"),
					json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{`+meta+`}}`)))
				if err != nil || !strings.Contains(string(answer), "mc1.") {
					t.Errorf("a list without a sealed cursor: %s, %v", answer, err)
				}
			})
		}
		close(start)
		group.Wait()
	}
}

// TestACopyOfProtectedHooksServesAnotherServer protects a server, copies its hooks, and protects
// a second server that uses the copy.
func TestACopyOfProtectedHooksServesAnotherServer(t *testing.T) {
	t.Cleanup(mcpgo.ForgetSharedStdio)
	var base server.Hooks
	seen := 0
	base.AddOnSuccess(func(context.Context, any, mcp.MCPMethod, any, any) { seen++ })
	first := protected(t, new(log), server.WithHooks(&base), server.WithPaginationLimit(1))
	copied := base
	copied.AddOnError(func(context.Context, any, mcp.MCPMethod, any, error) {})
	second := protected(t, new(log), server.WithHooks(&copied), server.WithPaginationLimit(1))
	alice := as(t.Context(), "alice")
	for name, srv := range map[string]*server.MCPServer{"first": first, "second": second} {
		if r := retry(alice, t, srv, token(alice, t, srv)); r.Error != nil || r.Result.IsError {
			t.Errorf("%s: %s", name, r.raw)
		}
		list := send(alice, t, srv, "tools/list", "")
		if r := send(alice, t, srv, "tools/list", `"cursor":`+quote(list.Result.NextCursor)); len(r.Result.Tools) != 1 {
			t.Errorf("%s: the second page: %s", name, r.raw)
		}
	}
	if seen != 8 {
		t.Errorf("the author's hook ran %d times for eight requests", seen)
	}
	c := listen(t, second, "alice")
	c.write(askOverStdio)
	if text, _ := c.read(t); !strings.Contains(text, "elicitation/create") {
		t.Errorf("alice was not asked: %s", text)
	}
}

// TestHooksThatWereAddedBeforeASecondServerAreServed adds a hook after one server was protected,
// and before another server with the same hooks is protected.
func TestHooksThatWereAddedBeforeASecondServerAreServed(t *testing.T) {
	for name, change := range map[string]func(base, used *server.Hooks){
		"added": func(_, used *server.Hooks) {
			used.AddAfterCallTool(func(context.Context, any, *mcp.CallToolRequest, any) {})
		},
		"filled": func(base, used *server.Hooks) { *used = *base },
	} {
		t.Run(name, func(t *testing.T) {
			base, used := new(server.Hooks), new(server.Hooks)
			base.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) {})
			protected(t, new(log), server.WithHooks(base))
			first := protected(t, new(log), server.WithHooks(used), server.WithPaginationLimit(1))
			change(base, used)
			second := protected(t, new(log), server.WithHooks(used), server.WithPaginationLimit(1))
			alice := as(t.Context(), "alice")
			for name, srv := range map[string]*server.MCPServer{"first": first, "second": second} {
				if r := retry(alice, t, srv, token(alice, t, srv)); r.Error != nil || r.Result.IsError {
					t.Errorf("%s: %s", name, r.raw)
				}
				list := send(alice, t, srv, "tools/list", "")
				if r := send(alice, t, srv, "tools/list", `"cursor":`+quote(list.Result.NextCursor)); len(r.Result.Tools) != 1 {
					t.Errorf("%s: the second page: %s", name, r.raw)
				}
			}
		})
	}
}

// TestProtectLeavesNoRoomThatCopiesOfHooksWouldShare adds a hook to the hooks of a protected
// server, and then another hook to a copy of them. The second must not overwrite the first.
func TestProtectLeavesNoRoomThatCopiesOfHooksWouldShare(t *testing.T) {
	for n := range 9 {
		hooks, ran := new(server.Hooks), ""
		for range n {
			hooks.AddOnRequestInitialization(func(context.Context, any, any) error { return nil })
		}
		srv := protected(t, new(log), server.WithHooks(hooks))
		copied := *hooks
		hooks.AddOnRequestInitialization(func(context.Context, any, any) error { ran += "first"; return nil })
		copied.AddOnRequestInitialization(func(context.Context, any, any) error { ran += "second"; return nil })
		if send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"echo"`); ran != "first" {
			t.Errorf("with %d hooks before Protect, %q ran", n, ran)
		}
	}
}
