package mcpgo_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/mcpgo"
)

// plain is middleware that asks for input itself, with a state in plaintext.
func plain(server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return question().ToolResult(), nil
	}
}

func TestAPlaintextStateOfOuterMiddlewareNeverLeaves(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithToolHandlerMiddleware(plain),
		server.WithPromptHandlerMiddleware(func(server.PromptHandlerFunc) server.PromptHandlerFunc {
			return func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return question().PromptResult(), nil
			}
		}))
	for method, params := range map[string]string{"tools/call": `"name":"echo"`, "prompts/get": `"name":"ask"`} {
		r := send(as(t.Context(), "alice"), t, srv, method, params)
		if strings.Contains(r.raw, secret) || strings.Contains(r.raw, "Sure?") || r.Result.ResultType != "complete" {
			t.Errorf("%s: got %s", method, r.raw)
		}
	}
	has(t, l, "directly after server.NewMCPServer")
}

// The copy has a sealed token, so the hook that replaces unsealed results must accept it.
func TestOuterMiddlewareMayCopyAResultThatAsks(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r, err := next(ctx, req)
			if err != nil {
				return nil, err
			}
			copied := *r
			return &copied, nil
		}
	}))
	alice := as(t.Context(), "alice")
	if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
}

func TestAHookThatAsksIsReplaced(t *testing.T) {
	l := new(log)
	hooks := new(server.Hooks)
	hooks.AddAfterReadResource(func(_ context.Context, _ any, _ *mcp.ReadResourceRequest, r *mcp.ReadResourceResult) {
		*r = *question().ResourceResult()
	})
	hooks.AddAfterCallTool(func(_ context.Context, _ any, _ *mcp.CallToolRequest, r any) {
		*r.(*mcp.CallToolResult) = *question().ToolResult()
	})
	hooks.AddOnSuccess(func(_ context.Context, _ any, method mcp.MCPMethod, _, r any) {
		if method == mcp.MethodPromptsGet {
			*r.(*mcp.GetPromptResult) = *question().PromptResult()
		}
	})
	srv, alice := protected(t, l, server.WithHooks(hooks)), as(t.Context(), "alice")
	for method, params := range map[string]string{"resources/read": `"uri":"test://r"`, "tools/call": `"name":"echo"`, "prompts/get": `"name":"ask"`} {
		r := send(alice, t, srv, method, params)
		if strings.Contains(r.raw, secret) || r.Result.RequestState != "" || r.Result.ResultType == "input_required" {
			t.Errorf("%s: got %s", method, r.raw)
		}
	}
}

func TestAHookAfterProtectIsRefused(t *testing.T) {
	for name, add := range map[string]func(*server.Hooks){
		"before a call": func(h *server.Hooks) {
			h.AddBeforeCallTool(func(context.Context, any, *mcp.CallToolRequest) {})
		},
		"call": func(h *server.Hooks) { h.AddAfterCallTool(func(context.Context, any, *mcp.CallToolRequest, any) {}) },
		"prompt": func(h *server.Hooks) {
			h.AddAfterGetPrompt(func(context.Context, any, *mcp.GetPromptRequest, *mcp.GetPromptResult) {})
		},
		"read": func(h *server.Hooks) {
			h.AddAfterReadResource(func(context.Context, any, *mcp.ReadResourceRequest, *mcp.ReadResourceResult) {})
		},
		"tools": func(h *server.Hooks) {
			h.AddAfterListTools(func(context.Context, any, *mcp.ListToolsRequest, *mcp.ListToolsResult) {})
		},
		"prompts": func(h *server.Hooks) {
			h.AddAfterListPrompts(func(context.Context, any, *mcp.ListPromptsRequest, *mcp.ListPromptsResult) {})
		},
		"resources": func(h *server.Hooks) {
			h.AddAfterListResources(func(context.Context, any, *mcp.ListResourcesRequest, *mcp.ListResourcesResult) {})
		},
		"templates": func(h *server.Hooks) {
			h.AddAfterListResourceTemplates(func(context.Context, any, *mcp.ListResourceTemplatesRequest, *mcp.ListResourceTemplatesResult) {})
		},
		"tasks": func(h *server.Hooks) {
			h.AddAfterListTasks(func(context.Context, any, *mcp.ListTasksRequest, *mcp.ListTasksResult) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := new(log)
			srv := protected(t, l)
			add(srv.GetHooks())
			r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"echo"`)
			if r.Error == nil || r.Error.Code != -32600 || r.Error.Message != "Internal error" {
				t.Errorf("got %s", r.raw)
			}
			has(t, l, "a hook was added after Protect")
		})
	}
}

func TestHooksThatOnlyLookMayBeAddedLater(t *testing.T) {
	l := new(log)
	srv := protected(t, l)
	seen := 0
	srv.GetHooks().AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { seen++ })
	srv.GetHooks().AddOnError(func(context.Context, any, mcp.MCPMethod, any, error) { seen++ })
	if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"echo"`); r.Error != nil || seen != 1 {
		t.Errorf("got %s, seen %d", r.raw, seen)
	}
}

func TestReplacingTheHooksIsNoticed(t *testing.T) {
	for name, hooks := range map[string]*server.Hooks{"others": new(server.Hooks), "none": nil} {
		t.Run(name, func(t *testing.T) {
			l := new(log)
			srv, alice := protected(t, l, server.WithPaginationLimit(1)), as(t.Context(), "alice")
			server.WithHooks(hooks)(srv)
			for _, r := range []reply{
				send(alice, t, srv, "tools/call", `"name":"echo"`),
				send(alice, t, srv, "tools/call", `"name":"ask"`),
				send(alice, t, srv, "prompts/get", `"name":"ask"`),
				send(alice, t, srv, "resources/read", `"uri":"test://r"`),
			} {
				if r.Error == nil {
					t.Errorf("served: %s", r.raw)
				}
			}
			for _, method := range []string{"tools/list", "prompts/list"} {
				if r := send(alice, t, srv, method, ""); len(r.Result.Tools)+len(r.Result.Prompts) != 0 || r.Result.NextCursor != "" {
					t.Errorf("%s: %s", method, r.raw)
				}
			}
			has(t, l, "server.WithHooks was applied after it")
		})
	}
}

func TestServersMayShareHooks(t *testing.T) {
	one, two := new(log), new(log)
	hooks := new(server.Hooks)
	a, b := protected(t, one, server.WithHooks(hooks), server.WithPaginationLimit(2)), protected(t, two, server.WithHooks(hooks), server.WithPaginationLimit(2))
	unprotected := server.NewMCPServer("test", "1", server.WithHooks(hooks), server.WithPaginationLimit(2))
	addHandlers(unprotected)
	alice := as(t.Context(), "alice")
	for _, srv := range []*server.MCPServer{a, b} {
		if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
			t.Errorf("got %s", r.raw)
		}
		first := send(alice, t, srv, "tools/list", "")
		if r := send(alice, t, srv, "tools/list", `"cursor":`+quote(first.Result.NextCursor)); len(r.Result.Tools) != 2 {
			t.Errorf("got %s", r.raw)
		}
	}
	isRejected(t, retry(alice, t, b, token(alice, t, a)))
	if r := send(alice, t, unprotected, "tools/list", ""); strings.HasPrefix(r.Result.NextCursor, "mc1.") {
		t.Errorf("the hooks sealed for a server that is not protected: %s", r.raw)
	}
}

func TestOneProtectionServesManyServersAndForgetsThem(t *testing.T) {
	l := new(log)
	p := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	alice := as(t.Context(), "alice")
	install := func() *server.MCPServer {
		srv := server.NewMCPServer("test", "1")
		if protected := p.Install(srv); protected.Server() != srv || protected.Boundary() != p.Boundary() {
			t.Error("Install returned another server or boundary")
		}
		addHandlers(srv)
		return srv
	}
	first := install()
	state := token(alice, t, first)
	if r := retry(alice, t, install(), state); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
	gone := weak.Make(first)
	first = nil
	for range 100 {
		if runtime.GC(); gone.Value() == nil {
			return
		}
	}
	t.Error("a protected server is kept for ever")
}

// The hooks, the principal and the handlers of a server may refer to the server itself. These
// references must not keep the server in memory for ever.
func TestAProtectedServerThatItsOwnOptionsReferToIsForgotten(t *testing.T) {
	l := new(log)
	b := boundary(t, l, nil)
	install := func() weak.Pointer[server.MCPServer] {
		hooks := new(server.Hooks)
		srv := server.NewMCPServer("test", "1", server.WithHooks(hooks))
		hooks.AddBeforeAny(func(context.Context, any, mcp.MCPMethod, any) { runtime.KeepAlive(srv) })
		p := mcpgo.Protect(srv, b, &mcpgo.Options{Logger: l.logger(), Principal: func(ctx context.Context) (string, error) {
			runtime.KeepAlive(srv)
			return userFromContext(ctx)
		}})
		mcpgo.AddPagedTool(p, mcp.NewTool("paged"), func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]int, *int, error) {
			runtime.KeepAlive(srv)
			return nil, nil, nil
		}, nil)
		addHandlers(srv)
		alice := as(t.Context(), "alice")
		if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
			t.Errorf("got %s", r.raw)
		}
		return weak.Make(srv)
	}
	isForgotten(t, "a protected server", install())
}

func isForgotten[T any](t *testing.T, what string, object weak.Pointer[T]) {
	t.Helper()
	for range 100 {
		if runtime.GC(); object.Value() == nil {
			return
		}
	}
	t.Errorf("%s is kept for ever", what)
}

// The author keeps only the server. The garbage collector must not remove what protects it.
func TestAServerStaysProtectedAfterGarbageCollection(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithPaginationLimit(1))
	alice := as(t.Context(), "alice")
	for range 5 {
		runtime.GC()
	}
	if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
	if r := send(alice, t, srv, "tools/list", ""); !strings.HasPrefix(r.Result.NextCursor, "mc1.") {
		t.Errorf("a cursor left in plaintext: %s", r.raw)
	}
}

// The fields of Hooks are exported, so an author may assign to them, and so remove a hook of
// ours.
func TestRemovingAHookOfProtectIsRefused(t *testing.T) {
	removals := map[string]func(*server.Hooks){
		"init, for another": func(h *server.Hooks) {
			h.OnRequestInitialization = []server.OnRequestInitializationFunc{func(context.Context, any, any) error { return nil }}
		},
		"init, and before lists": func(h *server.Hooks) {
			h.OnRequestInitialization, h.OnBeforeListResources, h.OnBeforeListResourceTemplates, h.OnBeforeListTasks = nil, nil, nil, nil
		},
		"after a list": func(h *server.Hooks) {
			h.OnAfterListTools = []server.OnAfterListToolsFunc{func(context.Context, any, *mcp.ListToolsRequest, *mcp.ListToolsResult) {}}
		},
		"before a call": func(h *server.Hooks) {
			h.OnBeforeCallTool = []server.OnBeforeCallToolFunc{func(context.Context, any, *mcp.CallToolRequest) {}}
		},
	}
	fields := reflect.ValueOf(protected(t, new(log)).GetHooks()).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Len() > 0 {
			removals[fields.Type().Field(i).Name] = func(h *server.Hooks) { reflect.ValueOf(h).Elem().Field(i).SetZero() }
		}
	}
	if len(removals) < 20 {
		t.Fatalf("only %d removals", len(removals))
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			l := new(log)
			srv := protected(t, l, server.WithTaskCapabilities(true, true, true), server.WithPaginationLimit(1))
			srv.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
				t.Errorf("a task tool ran with the state %q", req.Params.RequestState)
				return &mcp.CreateTaskResult{}, nil
			})
			remove(srv.GetHooks())
			refusesEverything(t, srv, l)
		})
	}
}

// refusesEverything is for a server whose hooks were changed. It fails the test if the server
// serves a call, a prompt or a resource, if it lists tools or prompts, or if it sends a cursor that
// a list could accept.
func refusesEverything(t *testing.T, srv *server.MCPServer, l *log) {
	t.Helper()
	alice := as(t.Context(), "alice")
	for method, params := range map[string]string{
		"tools/call": `"name":"echo"`, "prompts/get": `"name":"ask"`, "resources/read": `"uri":"test://r"`,
	} {
		if r := send(alice, t, srv, method, params); r.Error == nil {
			t.Errorf("%s: %s", method, r.raw)
		}
	}
	if r := send(alice, t, srv, "tools/call", `"name":"task","task":{},"requestState":"forged"`); r.Error == nil {
		t.Errorf("a task tool: %s", r.raw)
	}
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"} {
		r := send(alice, t, srv, method, "")
		if r.Error == nil && (len(r.Result.Tools)+len(r.Result.Prompts) > 0 || r.Result.NextCursor != "" && r.Result.NextCursor != "unavailable") {
			t.Errorf("%s: %s", method, r.raw)
		}
	}
	if text := l.String(); !strings.Contains(text, "a hook of Protect was removed") && !strings.Contains(text, "the hooks of Protect are gone") {
		t.Errorf("the log: %s", text)
	}
}

// If the hook for whole requests is gone, only the hook that runs before mcp-go makes a list can
// refuse the list.
func TestRemovingTheHookForRequestsIsRefusedInEveryList(t *testing.T) {
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"} {
		l := new(log)
		srv := protected(t, l, server.WithTaskCapabilities(true, true, true))
		srv.GetHooks().OnRequestInitialization = nil
		if r := send(as(t.Context(), "alice"), t, srv, method, ""); r.Error == nil {
			t.Errorf("%s: %s", method, r.raw)
		}
		has(t, l, "a hook of Protect was removed")
	}
}

// A copy of a Hooks value has slices that share memory with those of the original. So a hook that
// is added to the copy could overwrite a hook of Protect.
func TestACopyOfTheHooksCannotOverwriteAHookOfProtect(t *testing.T) {
	l := new(log)
	base := new(server.Hooks)
	for range 3 { // after three, the slice has room for a fourth
		base.AddOnRequestInitialization(func(context.Context, any, any) error { return nil })
	}
	one, two := *base, *base
	srv := protected(t, l, server.WithHooks(&one), server.WithPaginationLimit(1))
	two.AddOnRequestInitialization(func(context.Context, any, any) error { return errors.New("of the copy") })
	alice := as(t.Context(), "alice")
	if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
		t.Errorf("got %s", r.raw)
	}
}

func TestServersMayHaveCopiesOfHooks(t *testing.T) {
	l := new(log)
	base := new(server.Hooks)
	for range 3 {
		base.AddOnRequestInitialization(func(context.Context, any, any) error { return nil })
	}
	one, two := *base, *base
	a, b := protected(t, l, server.WithHooks(&one)), protected(t, l, server.WithHooks(&two))
	alice := as(t.Context(), "alice")
	for _, srv := range []*server.MCPServer{a, b} {
		if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
			t.Errorf("got %s", r.raw)
		}
	}
	one.OnAfterReadResource = nil
	if r := send(alice, t, a, "resources/list", ""); r.Error == nil {
		t.Errorf("the hooks of the other server were checked: %s", r.raw)
	}
	if r := send(alice, t, b, "resources/list", ""); r.Error != nil {
		t.Errorf("got %s", r.raw)
	}
}

// TestProtectKeepsTheHooksOfCopies makes two copies of a Hooks value. The slices of the copies
// share memory. The author adds hooks to one copy. If Protect adds hooks to the other copy, it must
// not overwrite the author's hooks.
func TestProtectKeepsTheHooksOfCopies(t *testing.T) {
	for n := range 9 {
		for _, first := range []string{"the copy without them", "the copy with them", "only the copy without them"} {
			l := new(log)
			base := new(server.Hooks)
			ran := map[string]int{}
			add := func(h *server.Hooks, name string) {
				h.AddBeforeCallTool(func(context.Context, any, *mcp.CallToolRequest) { ran[name]++ })
				h.AddAfterCallTool(func(context.Context, any, *mcp.CallToolRequest, any) { ran[name]++ })
				h.AddAfterListTools(func(context.Context, any, *mcp.ListToolsRequest, *mcp.ListToolsResult) { ran[name]++ })
				h.AddOnRequestInitialization(func(context.Context, any, any) error { ran[name]++; return nil })
			}
			for range n {
				add(base, "base")
			}
			one, two := *base, *base
			add(&one, "added")
			var a *server.MCPServer
			switch first {
			case "the copy without them":
				protected(t, l, server.WithHooks(&two))
				a = protected(t, l, server.WithHooks(&one))
			case "the copy with them":
				a = protected(t, l, server.WithHooks(&one))
				protected(t, l, server.WithHooks(&two))
			default:
				a = server.NewMCPServer("unprotected", "1", server.WithHooks(&one))
				addHandlers(a)
				protected(t, l, server.WithHooks(&two))
			}
			alice := as(t.Context(), "alice")
			for _, r := range []reply{send(alice, t, a, "tools/call", `"name":"echo"`), send(alice, t, a, "tools/list", "")} {
				if r.Error != nil {
					t.Errorf("%d hooks, Protect of %s: %s", n, first, r.raw)
				}
			}
			if ran["added"] != 5 { // three for the call, and two for the list
				t.Errorf("%d hooks, Protect of %s: %d of the author's hooks ran", n, first, ran["added"])
			}
		}
	}
}

// TestHooksThatAreFilledAnewAreProtectedAnew makes three servers, one after the other. All use
// the same variable for their hooks, which is emptied and filled again for each server.
func TestHooksThatAreFilledAnewAreProtectedAnew(t *testing.T) {
	var hooks server.Hooks
	var servers []*server.MCPServer
	for n := range 3 {
		l := new(log)
		hooks = server.Hooks{}
		for range n {
			hooks.AddOnError(func(context.Context, any, mcp.MCPMethod, any, error) {})
			hooks.AddOnRequestInitialization(func(context.Context, any, any) error { return nil })
		}
		servers = append(servers, protected(t, l, server.WithHooks(&hooks), server.WithPaginationLimit(1)))
		for _, srv := range servers { // this server, and the earlier ones
			alice := as(t.Context(), "alice")
			if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
				t.Errorf("got %s", r.raw)
			}
			for _, list := range []string{"resources/list", "tools/list", "prompts/list"} {
				if r := send(alice, t, srv, list, ""); !strings.HasPrefix(r.Result.NextCursor, "mc1.") {
					t.Errorf("%s: %s", list, r.raw)
				}
			}
		}
	}
}
