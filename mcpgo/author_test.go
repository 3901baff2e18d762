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

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

type loginKey struct{}

// login is middleware that reads the user from a place that Options.Principal does not read.
func login(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		user, _ := ctx.Value(loginKey{}).(string)
		return next(as(ctx, user), req)
	}
}

// TestAStateIsNotBoundToNobodyInSilence adds the function login as middleware, after Protect. So
// Options.Principal finds no user, and mcpgo would bind a state to nobody. SetState must fail. If a
// handler sets RequestState itself, the log must have a warning.
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
	isInternal(t, send(alice, t, srv, "tools/call", `"name":"set"`))
	has(t, l, "middleware that was added after Protect put the user into the context")
	token(alice, t, srv)
	has(t, l, said)

	// The tool "get" seals nothing, so alice may use it. A caller without a name may use both tools.
	if r := send(alice, t, srv, "tools/call", `"name":"get"`); r.Error != nil {
		t.Errorf("get: %s", r.raw)
	}
	for _, tool := range []string{"set", "get"} {
		if r := send(t.Context(), t, srv, "tools/call", `"name":`+quote(tool)); r.Error != nil {
			t.Errorf("%s: %s", tool, r.raw)
		}
	}
	if n := strings.Count(l.String(), said); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// TestTheRegisteredNameOfAToolCounts uses a tool that is registered as ask. Hooks show it to
// clients as v1_ask.
func TestTheRegisteredNameOfAToolCounts(t *testing.T) {
	for name, once := range map[string]bool{"ask": true, "v1_ask": false, "v1_long": false} {
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
		b := boundary(t, l, func(c *tripseal.Config) { c.Replay, c.ReplayTools = newStore(t), []string{name} })
		mcpgo.Protect(srv, b, &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
		addHandlers(srv)
		registered := srv.GetTool("ask")
		registered.Tool.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportOptional}
		srv.AddTools(*registered)
		srv.AddTaskTool(mcp.NewTool("long", mcp.WithTaskSupport(mcp.TaskSupportRequired)), nil)
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

// TestAContextKeepsNoArguments keeps the contexts of calls that have ended. These contexts must not
// keep the arguments in memory.
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

// TestTheContextOfAnEarlierCallTellsNothing uses outer middleware. In every call, the middleware
// passes on the context of the first call, and takes out an argument.
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

// TestAPrintedContextShowsNoState prints the context that a handler gets, with fmt, log/slog and
// encoding/json.
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

// TestHooksAreKnownHoweverTheyWereAdded gives a second server a copy of the first server's hooks.
// The copy already has our hooks. removeOurs must find them by the addresses of their code. These
// addresses would differ if the compiler inlined addOurs, as it could in a build with a profile.
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

// TestALostNotificationForgetsNoArguments uses outer middleware. During a call, the middleware
// reports a lost notification to all hooks, with the context of the call. mcp-go does the same if
// it loses a notification. After that, the adapter must still know the arguments of the call.
func TestALostNotificationForgetsNoArguments(t *testing.T) {
	srv := protected(t, new(log), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for _, lost := range server.ServerFromContext(ctx).GetHooks().OnError {
				lost(ctx, nil, "notification", nil, server.ErrNotificationChannelBlocked)
			}
			return next(ctx, req)
		}
	}))
	alice := as(t.Context(), "alice")
	if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
}

// TestATaskToolIsRegistered lists task tools in Options.Unsolicited. The log must not say that they are
// not registered.
func TestATaskToolIsRegistered(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1", server.WithTaskCapabilities(true, true, true), server.WithPaginationLimit(1))
	srv.AddTool(mcp.NewTool("first"), nil)
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Unsolicited: []string{"required", "optional", "missing"}, Logger: l.logger()})
	for name, support := range map[string]mcp.TaskSupport{"required": mcp.TaskSupportRequired, "optional": mcp.TaskSupportOptional} {
		srv.AddTaskTool(mcp.NewTool(name, mcp.WithTaskSupport(support)), func(context.Context, mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
			return nil, nil
		})
	}
	send(t.Context(), t, srv, "tools/list", "")
	const warned = "option=mcpgo.Options.Unsolicited tool="
	said := l.String()
	if strings.Contains(said, warned+"required") || strings.Contains(said, warned+"optional") || !strings.Contains(said, warned+"missing") {
		t.Error(said)
	}
}

// callsBack is the handler of a log. It calls a function for each record.
type callsBack struct {
	slog.Handler
	back func(context.Context)
}

func (h callsBack) Handle(ctx context.Context, _ slog.Record) error {
	h.back(ctx)
	return nil
}

// TestALogThatAsksWhoIsCallingDoesNotHang uses a log that asks Options.Principal for the user of
// each record. The first record says that there is no user.
func TestALogThatAsksWhoIsCallingDoesNotHang(t *testing.T) {
	var principal tripseal.Principal
	records := 0
	handler := callsBack{slog.NewTextHandler(new(log), nil), func(ctx context.Context) {
		records++
		principal(ctx)
	}}
	p := mcpgo.Prepare(boundary(t, new(log), nil), &mcpgo.Options{Principal: userFromContext, AllowAnonymous: true, Logger: slog.New(handler)})
	request, err := p.Request(t.Context(), mcp.CallToolRequest{})
	if err != nil {
		t.Fatal(err)
	}
	principal = request.Principal
	if user, err := principal(t.Context()); user != "" || err != nil || records != 1 {
		t.Errorf("user %q, error %v, %d records", user, err, records)
	}
}

// TestACursorThatAHookChangedIsNotSealed uses a hook that makes the cursor of a list unreadable for
// mcp-go. The client must notice that it does not have the whole list.
func TestACursorThatAHookChangedIsNotSealed(t *testing.T) {
	l, hooks := new(log), new(server.Hooks)
	hooks.AddAfterListTools(func(_ context.Context, _ any, _ *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
		r.NextCursor = "page 2"
	})
	srv := protected(t, l, server.WithHooks(hooks), server.WithPaginationLimit(1))
	if r := send(as(t.Context(), "alice"), t, srv, "tools/list", ""); r.Result.NextCursor != "unavailable" {
		t.Errorf("got %s", r.raw)
	}
	has(t, l, "leave NextCursor as it is")
}

// TestArgumentsThatAHookMakesEmptyAgree uses a hook that replaces the arguments of a paged tool
// with a nil map of another type. This map and the {} that the client sent must count as the same
// arguments.
func TestArgumentsThatAHookMakesEmptyAgree(t *testing.T) {
	hooks := new(server.Hooks)
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		req.Params.Arguments = map[string]string(nil)
	})
	srv := paged(t, new(log), nil, server.WithHooks(hooks))
	if p, r := page(as(t.Context(), "alice"), t, srv, `{}`); len(p.Items) != 2 {
		t.Errorf("got %s", r.raw)
	}
}
