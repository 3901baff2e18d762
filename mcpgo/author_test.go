package mcpgo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/mcpgo"
)

type loginKey struct{}

// login is middleware that reads the user from a place that Options.Principal does not read.
func login(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		user, _ := ctx.Value(loginKey{}).(string)
		return next(as(ctx, user), req)
	}
}

// TestAStateIsNotBoundToNobodyInSilence adds the middleware login after Protect, so that our
// middleware finds no user.
func TestAStateIsNotBoundToNobodyInSilence(t *testing.T) {
	const said = "mcpgo: Options.Principal found no user"
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, AllowAnonymous: true, Logger: l.logger()})
	srv.Use(login)
	addHandlers(srv)
	srv.AddTool(mcp.NewTool("set"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := question().ToolResult()
		return r, mcpgo.SetState(ctx, r, "x")
	})
	srv.AddTool(mcp.NewTool("get"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, _, err := mcpgo.State[string](ctx, req)
		return mcp.NewToolResultText("done"), err
	})
	alice := context.WithValue(t.Context(), loginKey{}, "alice")
	for _, tool := range []string{"set", "get"} {
		isInternal(t, send(alice, t, srv, "tools/call", `"name":`+quote(tool)))
	}
	has(t, l, "middleware that was added after Protect put the user into the context")
	token(alice, t, srv)
	has(t, l, said)

	// A caller without a name may use the tools.
	for _, tool := range []string{"set", "get"} {
		if r := send(t.Context(), t, srv, "tools/call", `"name":`+quote(tool)); r.Error != nil {
			t.Errorf("%s: %s", tool, r.raw)
		}
	}
	if n := strings.Count(l.String(), said); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// TestTheRegisteredNameOfAToolCounts uses hooks that show clients other names of the tools than
// those with which the tools were registered.
func TestTheRegisteredNameOfAToolCounts(t *testing.T) {
	for name, once := range map[string]bool{"ask": true, "v1_ask": false} {
		l, hooks := new(log), new(server.Hooks)
		hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
			req.Params.Name = strings.TrimPrefix(req.Params.Name, "v1_")
		})
		hooks.AddAfterListTools(func(_ context.Context, _ any, _ *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
			for i := range r.Tools {
				r.Tools[i].Name = "v1_" + r.Tools[i].Name
			}
		})
		srv, alice := server.NewMCPServer("test", "1", server.WithHooks(hooks)), as(t.Context(), "alice")
		b := boundary(t, l, func(c *mcpseal.Config) { c.Replay, c.ReplayTools = newStore(t), []string{name} })
		mcpgo.Protect(srv, b, &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
		addHandlers(srv)
		send(alice, t, srv, "tools/list", "")
		if warned := strings.Contains(l.String(), "not registered under this name"); warned == once {
			t.Errorf("%s: warned: %v", name, warned)
		}
		asked := send(alice, t, srv, "tools/call", `"name":"v1_ask"`).Result.RequestState
		for range 2 {
			send(alice, t, srv, "tools/call", `"name":"v1_ask","requestState":`+quote(asked))
		}
		if got := strings.Contains(l.String(), "reason=replayed"); got != once {
			t.Errorf("%s: the second use was rejected: %v", name, got)
		}
	}
}

// TestEachTryHasItsOwnAnswers uses middleware from before Protect that calls the handler again if
// it fails. The handler changes the answers that it gets.
func TestEachTryHasItsOwnAnswers(t *testing.T) {
	again := server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r, err := next(ctx, req); err == nil {
				return r, nil
			}
			return next(ctx, req)
		}
	})
	srv := protected(t, new(log), server.WithElicitation(), again)
	var seen []string
	srv.AddTool(mcp.NewTool("flaky"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			return question().ToolResult(), nil
		}
		form := server.ElicitationResponse(req.Params.InputResponses, "ok").Content.(map[string]any)
		seen = append(seen, fmt.Sprint(form))
		clear(form)
		if len(seen)%2 == 1 {
			return nil, errors.New("flaky")
		}
		return mcp.NewToolResultText("done"), nil
	})
	if r := older(t, srv, `"name":"flaky"`); r.text() != "done" || len(seen) != 2 || seen[0] != seen[1] {
		t.Errorf("%s: %v", r.raw, seen)
	}
}

// TestAContextKeepsNoArguments keeps the contexts of calls, as a handler does that goes on after
// its call.
func TestAContextKeepsNoArguments(t *testing.T) {
	for name, options := range map[string][]server.ServerOption{
		"alone": nil, "hook": {asHook(look)}, "middleware": {server.WithToolHandlerMiddleware(asMiddleware(look))},
	} {
		t.Run(name, func(t *testing.T) {
			srv, alice := protected(t, new(log), options...), as(t.Context(), "alice")
			var contexts []context.Context
			srv.AddTool(mcp.NewTool("keep"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				contexts = append(contexts, ctx)
				if len(contexts)%2 == 0 {
					return nil, errors.New("failed")
				}
				return mcp.NewToolResultText("done"), nil
			})
			heap := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			const calls, size = 16, 1 << 20
			params := `"name":"keep","arguments":{"x":` + quote(strings.Repeat("x", size)) + `}`
			before := heap()
			for range calls {
				send(alice, t, srv, "tools/call", params)
			}
			if after := heap(); after > before+calls*size/4 {
				t.Errorf("%d KiB kept", (after-before)>>10)
			}
			runtime.KeepAlive(contexts)
		})
	}
}

// TestTheContextOfAnEarlierCallTellsNothing uses middleware from before Protect that passes on the
// context of the first call, and takes out an argument.
func TestTheContextOfAnEarlierCallTellsNothing(t *testing.T) {
	var first context.Context
	srv := protected(t, new(log), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if first == nil {
				first = context.WithoutCancel(ctx)
			}
			arguments := maps.Clone(req.GetArguments())
			delete(arguments, "project")
			req.Params.Arguments, req.Params.RawArguments = arguments, nil
			return next(first, req)
		}
	}))
	alice := as(t.Context(), "alice")
	asked := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"project":"sandbox"}`).Result.RequestState
	isRejected(t, send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"project":"production"},"requestState":`+quote(asked)))
}

// TestAPrintedContextShowsNoState prints the context that a handler gets, in every way.
func TestAPrintedContextShowsNoState(t *testing.T) {
	srv, alice := protected(t, new(log)), as(t.Context(), "alice")
	printed := ""
	srv.AddTool(mcp.NewTool("print"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			return question().ToolResult(), nil
		}
		var logged bytes.Buffer
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("", "ctx", ctx)
		text, _ := json.Marshal(ctx)
		printed = fmt.Sprintf("%v %+v %#v %s %q %d %s %s", ctx, ctx, ctx, ctx, ctx, ctx, logged.String(), text)
		return mcp.NewToolResultText("done"), nil
	})
	r := send(alice, t, srv, "tools/call", `"name":"print"`)
	send(alice, t, srv, "tools/call", `"name":"print","requestState":`+quote(r.Result.RequestState))
	if !strings.Contains(printed, "passage.Call") || strings.Contains(printed, secret) {
		t.Errorf("printed %.300s", printed)
	}
}

func TestAZeroProtectionBindsNoTokenToNobody(t *testing.T) {
	if _, err := new(mcpgo.Protection).Request(t.Context(), mcp.CallToolRequest{}); err == nil {
		t.Error("no error")
	}
}

// TestHooksAreKnownHoweverTheyWereAdded compares the code of the hooks that Install adds with the
// code of those that removeOurs knows: a build with a profile could make copies of the code.
func TestHooksAreKnownHoweverTheyWereAdded(t *testing.T) {
	hooks := new(server.Hooks)
	p := mcpgo.Prepare(boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true})
	p.Install(server.NewMCPServer("test", "1", server.WithHooks(hooks)))
	copied := *hooks
	p.Install(server.NewMCPServer("test", "2", server.WithHooks(&copied)))
	if a, b := len(slices.Concat(hooks.OnAfterListTools)), len(copied.OnAfterListTools); a != 1 || b != 1 {
		t.Errorf("%d and %d hooks", a, b)
	}
}
