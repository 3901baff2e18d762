package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal/mcpgo"
)

type changeFunc func(context.Context, *mcp.CallToolRequest)

func asMiddleware(change changeFunc) server.ToolHandlerMiddleware {
	return func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			change(ctx, &req)
			return next(ctx, req)
		}
	}
}

func asHook(change changeFunc) server.ServerOption {
	hooks := new(server.Hooks)
	hooks.AddBeforeCallTool(func(ctx context.Context, _ any, req *mcp.CallToolRequest) { change(ctx, req) })
	return server.WithHooks(hooks)
}

// places has all places where an author can change arguments before our middleware runs. Each
// function returns the option that makes a change there.
var places = map[string]func(changeFunc) server.ServerOption{
	"hook before a call": asHook,
	"hook before anything": func(change changeFunc) server.ServerOption {
		hooks := new(server.Hooks)
		hooks.AddBeforeAny(func(ctx context.Context, _ any, _ mcp.MCPMethod, message any) {
			if req, ok := message.(*mcp.CallToolRequest); ok {
				change(ctx, req)
			}
		})
		return server.WithHooks(hooks)
	},
	"outer middleware": func(change changeFunc) server.ServerOption {
		return server.WithToolHandlerMiddleware(asMiddleware(change))
	},
	"outer middleware with a context of its own": func(change changeFunc) server.ServerOption {
		return server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				change(ctx, &req)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				return next(ctx, req)
			}
		})
	},
}

// enforceRaw sets one member of RawArguments, and keeps the other members as they are. It does
// not change Arguments.
func enforceRaw(req *mcp.CallToolRequest, name, value string) {
	var members map[string]json.RawMessage
	if len(req.Params.RawArguments) > 0 {
		if err := json.Unmarshal(req.Params.RawArguments, &members); err != nil {
			panic(err)
		}
	}
	if members == nil {
		members = make(map[string]json.RawMessage)
	}
	members[name] = json.RawMessage(value)
	req.Params.RawArguments = json.RawMessage(jsonText(members))
}

// typed returns the same arguments with each member as a json.RawMessage. mcp-go never decodes
// into this type.
func typed(arguments map[string]any) map[string]any {
	args := make(map[string]any)
	for name, member := range arguments {
		args[name] = json.RawMessage(jsonText(member))
	}
	return args
}

// enforced returns the ways in which an author can set one member of the arguments. Each of them
// makes the same change in every round.
func enforced(name, value string) map[string]changeFunc {
	decoded := func() (v any) {
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			panic(err)
		}
		return v
	}
	cloned := func(req *mcp.CallToolRequest) map[string]any {
		args := maps.Clone(req.GetArguments())
		if args == nil {
			args = make(map[string]any)
		}
		args[name] = decoded()
		return args
	}
	return map[string]changeFunc{
		"raw": func(_ context.Context, req *mcp.CallToolRequest) { enforceRaw(req, name, value) },
		"raw in place": func(_ context.Context, req *mcp.CallToolRequest) {
			before := len(req.Params.RawArguments)
			enforced := *req
			enforceRaw(&enforced, name, value)
			if before < len(enforced.Params.RawArguments) { // too long to be written in place
				req.Params.RawArguments = enforced.Params.RawArguments
				return
			}
			for i := range req.Params.RawArguments {
				req.Params.RawArguments[i] = ' '
			}
			copy(req.Params.RawArguments, enforced.Params.RawArguments)
		},
		"decoded": func(_ context.Context, req *mcp.CallToolRequest) { req.Params.Arguments = cloned(req) },
		"decoded in place": func(_ context.Context, req *mcp.CallToolRequest) {
			if args := req.GetArguments(); args != nil {
				args[name] = decoded()
			} else {
				req.Params.Arguments = cloned(req)
			}
		},
		"decoded, in types of its own": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments = typed(cloned(req))
		},
		"decoded, and raw removed": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments, req.Params.RawArguments = cloned(req), nil
		},
		"both": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments = cloned(req)
			enforceRaw(req, name, value)
		},
		"both, in types of its own": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments = typed(cloned(req))
			enforceRaw(req, name, value)
		},
	}
}

// forms returns one member of the arguments in the three ways in which a handler can read it:
// decoded, through BindArguments, and from RawArguments.
func forms(req mcp.CallToolRequest, name string) string {
	var bound, raw map[string]any
	if err := req.BindArguments(&bound); err != nil {
		return err.Error()
	}
	text, _ := req.GetRawArguments().(json.RawMessage)
	if err := json.Unmarshal(text, &raw); err != nil {
		return err.Error()
	}
	return jsonText(req.GetArguments()[name]) + " " + jsonText(bound[name]) + " " + jsonText(raw[name])
}

// A handler may read its arguments decoded or as text.
func TestAHandlerReadsEnforcedArgumentsInEitherForm(t *testing.T) {
	for place, option := range places {
		for how, change := range enforced("tenant", `"own"`) {
			t.Run(place+" changes "+how, func(t *testing.T) {
				l := new(log)
				srv := protected(t, l, server.WithElicitation(), option(change))
				var seen []string
				srv.AddTool(mcp.NewTool("wipe"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					seen = append(seen, forms(req, "tenant"))
					if req.Params.RequestState == "" {
						return question().ToolResult(), nil
					}
					return mcp.NewToolResultText("done"), nil
				})
				for _, arguments := range []string{`,"arguments":{"tenant":"another's","id":1}`, `,"arguments":{}`, `,"arguments":null`, ``} {
					seen = nil
					if r := older(t, srv, `"name":"wipe"`+arguments); r.text() != "done" {
						t.Errorf("%s: %s\n%s", arguments, r.raw, l)
					}
					alice := as(t.Context(), "alice")
					asked := send(alice, t, srv, "tools/call", `"name":"wipe"`+arguments)
					if r := send(alice, t, srv, "tools/call", `"name":"wipe"`+arguments+`,"requestState":`+quote(asked.Result.RequestState)); r.text() != "done" {
						t.Errorf("%s: %s\n%s", arguments, r.raw, l)
					}
					want := strings.Repeat(`"own" "own" "own",`, 4)
					if got := strings.Join(seen, ",") + ","; got != want {
						t.Errorf("%s: the handler read %s", arguments, got)
					}
				}
			})
		}
	}
}

// pagedForms returns a server with a paged tool. The tool returns its argument filter as forms
// reads it. If the parameter inner is not nil, middleware that is added after Protect applies this
// change.
func pagedForms(t *testing.T, l *log, inner changeFunc, options ...server.ServerOption) *server.MCPServer {
	t.Helper()
	srv := server.NewMCPServer("test", "1", options...)
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	if inner != nil {
		srv.Use(asMiddleware(inner))
	}
	mcpgo.AddPagedTool(p, mcp.NewTool("search"), func(_ context.Context, req mcp.CallToolRequest, in search, after *int) ([]row, *int, error) {
		return []row{{Tenant: fmt.Sprint(in.Filter.Tenant, " ", forms(req, "filter")), ID: in.ID}}, new(int), nil
	}, nil)
	return srv
}

func TestAPagedToolGetsWhatAHookOrMiddlewareEnforces(t *testing.T) {
	const own = `own {"tenant":"own"} {"tenant":"own"} {"tenant":"own"}`
	check := func(t *testing.T, srv *server.MCPServer, l *log) {
		t.Helper()
		alice := as(t.Context(), "alice")
		for _, arguments := range []string{`"filter":{"tenant":"another's"},"id":7`, ``} {
			first, r := page(alice, t, srv, `{`+arguments+`}`)
			if len(first.Items) != 1 || first.Items[0].Tenant != own {
				t.Fatalf("%s: %s\n%s", arguments, r.raw, l)
			}
			more := `"cursor":` + quote(first.NextCursor)
			if arguments != "" {
				more = arguments + "," + more
			}
			if next, r := page(alice, t, srv, `{`+more+`}`); len(next.Items) != 1 || next.Items[0].Tenant != own {
				t.Errorf("the next page of %s: %s\n%s", arguments, r.raw, l)
			}
		}
	}
	for how, change := range enforced("filter", `{"tenant":"own"}`) {
		for place, option := range places {
			t.Run(place+" changes "+how, func(t *testing.T) {
				l := new(log)
				check(t, pagedForms(t, l, nil, option(change)), l)
			})
		}
		t.Run("inner middleware changes "+how, func(t *testing.T) {
			l := new(log)
			check(t, pagedForms(t, l, change), l)
		})
		t.Run("inner middleware after a hook changes "+how, func(t *testing.T) {
			l := new(log)
			check(t, pagedForms(t, l, change, asHook(enforced("filter", `{"tenant":"a hook's"}`)["raw"])), l)
		})
	}
}

func TestACursorIsBoundToWhatIsEnforcedInRawArguments(t *testing.T) {
	enforceEnv := func(ctx context.Context, req *mcp.CallToolRequest) {
		env, _ := ctx.Value(envKey{}).(string)
		enforceRaw(req, "filter", `{"tenant":`+quote(env)+`}`)
	}
	alice := as(t.Context(), "alice")
	one, other := context.WithValue(alice, envKey{}, "one"), context.WithValue(alice, envKey{}, "other")
	servers := map[string]*server.MCPServer{"inner middleware": pagedForms(t, new(log), enforceEnv)}
	for place, option := range places {
		servers[place] = pagedForms(t, new(log), nil, option(enforceEnv))
	}
	for place, srv := range servers {
		first, _ := page(one, t, srv, `{}`)
		if _, r := page(other, t, srv, `{"cursor":`+quote(first.NextCursor)+`}`); r.Error == nil || r.Error.Message != "Invalid cursor" {
			t.Errorf("%s: %s", place, r.raw)
		}
		if p, r := page(one, t, srv, `{"cursor":`+quote(first.NextCursor)+`}`); len(p.Items) != 1 {
			t.Errorf("%s: the honest next page: %s", place, r.raw)
		}
	}
}

func TestATokenIsBoundToWhatIsEnforcedInRawArgumentsAndToWhatArrived(t *testing.T) {
	for place, option := range places {
		t.Run(place, func(t *testing.T) {
			srv := protected(t, new(log), option(func(ctx context.Context, req *mcp.CallToolRequest) {
				env, _ := ctx.Value(envKey{}).(string)
				req.Params.RawArguments = json.RawMessage(`{"env":` + quote(env) + `}`)
			}))
			alice := as(t.Context(), "alice")
			staging, production := context.WithValue(alice, envKey{}, "staging"), context.WithValue(alice, envKey{}, "production")
			asked := token(staging, t, srv)
			isRejected(t, retry(production, t, srv, asked))
			isRejected(t, send(staging, t, srv, "tools/call", `"name":"ask","arguments":{"x":2},"requestState":`+quote(asked)))
			if r := retry(staging, t, srv, asked); r.text() != accepted {
				t.Errorf("got %s", r.raw)
			}
		})
	}
}

// disagreeing has changes that leave no way to know which arguments are meant.
var disagreeing = map[string]changeFunc{
	"two tenants": func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments, req.Params.RawArguments = map[string]any{"tenant": "a"}, json.RawMessage(`{"tenant":"b"}`)
	},
	"numbers that a float64 cannot tell apart": func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments, req.Params.RawArguments = map[string]any{"id": int64(1<<53 + 1)}, json.RawMessage(`{"id":9007199254740992}`)
	},
	"a text that is not JSON": func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.RawArguments = json.RawMessage(`{"tenant":"own"`)
	},
	"more than one JSON text": func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.RawArguments = json.RawMessage(`{"tenant":"own"} {}`)
	},
	"a value without JSON": func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments, req.Params.RawArguments = map[string]any{"tenant": func() {}}, json.RawMessage(`{"tenant":"own"}`)
	},
}

func TestArgumentsThatDisagreeAreRefused(t *testing.T) {
	const whatToDo = "change one of them, or both in the same way"
	for what, change := range disagreeing {
		for place, option := range places {
			t.Run(what+" in "+place, func(t *testing.T) {
				l := new(log)
				srv := protected(t, l, option(change))
				srv.AddTool(mcp.NewTool("wipe"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					t.Errorf("the handler ran with %v and %s", req.Params.Arguments, req.Params.RawArguments)
					return mcp.NewToolResultText(""), nil
				})
				for _, arguments := range []string{``, `,"arguments":{"tenant":"another's"}`} {
					isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"wipe"`+arguments))
				}
				has(t, l, whatToDo)
				isInternal(t, second(page(as(t.Context(), "alice"), t, pagedForms(t, l, nil, option(change)), `{"id":7}`)))
			})
		}
		t.Run(what+" in inner middleware", func(t *testing.T) {
			l := new(log)
			isInternal(t, second(page(as(t.Context(), "alice"), t, pagedForms(t, l, change), `{"id":7}`)))
			has(t, l, whatToDo)
		})
	}
}

// Middleware may pass on a context with its own protocol information. Then the server does not
// know what the client sent.
func TestArgumentsThatDisagreeAreRefusedIfNothingTellsWhatArrived(t *testing.T) {
	for how, change := range enforced("tenant", `"own"`) {
		l := new(log)
		srv := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				change(ctx, &req)
				info := *server.RequestProtocolInfoFromContext(ctx)
				return next(server.WithRequestProtocolInfo(ctx, &info), req)
			}
		}))
		srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(forms(req, "tenant")), nil
		})
		r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":{"tenant":"another's"}`)
		if strings.HasPrefix(how, "both") || strings.Contains(how, "raw removed") {
			if r.text() != `"own" "own" "own"` {
				t.Errorf("%s: %s", how, r.raw)
			}
			continue
		}
		isInternal(t, r)
		has(t, l, "change one of them, or both in the same way")
	}
}

// mcp-go calls the handlers of task tools without any middleware, so only our hook can make the
// two forms of the arguments agree.
func TestATaskToolReadsWhatAHookEnforcesInEitherForm(t *testing.T) {
	for how, change := range enforced("tenant", `"own"`) {
		srv, alice := protected(t, new(log), server.WithTaskCapabilities(true, true, true), asHook(change)), as(t.Context(), "alice")
		srv.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
			return &mcp.CreateTaskResult{Content: []mcp.Content{mcp.NewTextContent(forms(req, "tenant"))}}, nil
		})
		if r := result(alice, t, srv, `"name":"task","task":{},"arguments":{"tenant":"another's"}`); r.text() != `"own" "own" "own"` {
			t.Errorf("%s: %s", how, r.raw)
		}
	}
	for what, change := range disagreeing {
		l := new(log)
		srv := protected(t, l, server.WithTaskCapabilities(true, true, true), asHook(change))
		srv.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
			t.Errorf("%s: the handler ran with %v and %s", what, req.Params.Arguments, req.Params.RawArguments)
			return &mcp.CreateTaskResult{}, nil
		})
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"task","task":{}`); r.Error == nil {
			t.Errorf("%s: %s", what, r.raw)
		}
		has(t, l, "change one of them, or both in the same way")
	}
}

func TestAToolThatRunsAsATaskReadsEnforcedArgumentsInEitherForm(t *testing.T) {
	for place, option := range places {
		srv := protected(t, new(log), server.WithTaskCapabilities(true, true, true), option(enforced("tenant", `"own"`)["raw"]))
		srv.AddTool(mcp.NewTool("both", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(forms(req, "tenant")), nil
		})
		if r := result(as(t.Context(), "alice"), t, srv, `"name":"both","task":{},"arguments":{"tenant":"another's"}`); r.text() != `"own" "own" "own"` {
			t.Errorf("%s: %s", place, r.raw)
		}
	}
}

func TestTheSchemaIsCheckedAgainstWhatAHookPutsIntoRawArguments(t *testing.T) {
	for value, valid := range map[string]bool{`"own"`: true, `1`: false} {
		srv := protected(t, new(log), server.WithInputSchemaValidation(), asHook(enforced("tenant", value)["raw"]))
		srv.AddTool(mcp.NewTool("read", mcp.WithString("tenant")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("ran"), nil
		})
		for _, sent := range []string{`"another's"`, `2`} {
			r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":{"tenant":`+sent+`}`)
			if ran := r.text() == "ran"; ran != valid {
				t.Errorf("%s in place of %s: %s", value, sent, r.raw)
			}
		}
	}
}

// RawArguments has digits that a float64 cannot hold.
func TestFractionsStayExactIfOtherArgumentsAreChanged(t *testing.T) {
	type order struct {
		Price  json.Number
		Parts  []json.Number
		Nested struct{ Price json.Number }
		Tenant string
	}
	for place, option := range places {
		for how, change := range enforced("tenant", `"own"`) {
			if strings.Contains(how, "types") || strings.HasPrefix(how, "both") {
				continue // these write the numbers anew, from a float64
			}
			srv := protected(t, new(log), option(change))
			srv.AddTool(mcp.NewTool("pay"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in order
				err := req.BindArguments(&in)
				return mcp.NewToolResultText(fmt.Sprint(in, err)), nil
			})
			r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"pay","arguments":{"price":0.12345678901234567890,"parts":[1,6.02214076e23],"nested":{"price":1.10},"tenant":"x"}`)
			if want := "{0.12345678901234567890 [1 6.02214076e23] {1.10} own} <nil>"; r.text() != want {
				t.Errorf("%s changes %s: %s", place, how, r.raw)
			}
		}
	}
}

// A hook may put a Go value into Arguments that cannot be written as JSON. Then RawArguments must
// be empty, so that no handler reads there what the client sent.
func TestArgumentsWithoutJSONHaveNoRawArguments(t *testing.T) {
	for place, option := range places {
		srv := protected(t, new(log), option(func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments = map[string]any{"tenant": func() string { return "own" }}
		}))
		srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			tenant := req.GetArguments()["tenant"].(func() string)()
			return mcp.NewToolResultText(fmt.Sprintf("%s %d %t", tenant, len(req.Params.RawArguments), req.BindArguments(new(map[string]any)) != nil)), nil
		})
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":{"tenant":"another's"}`); r.text() != "own 0 true" {
			t.Errorf("%s: %s", place, r.raw)
		}
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"ask","arguments":{"tenant":"another's"}`); r.Error == nil || r.Error.Message != "Invalid params" {
			t.Errorf("%s: a tool that asks: %s", place, r.raw)
		}
	}
}

// A hook changes one form of the arguments, and then middleware changes the other form. The
// handler must get both changes.
func TestHooksAndMiddlewareMayChangeDifferentForms(t *testing.T) {
	l := new(log)
	number := func(_ context.Context, req *mcp.CallToolRequest) { req.GetArguments()["id"] = int64(1<<53 + 1) }
	raw := enforced("tenant", `"own"`)["raw"]
	for _, options := range [][]server.ServerOption{
		{asHook(number), server.WithToolHandlerMiddleware(asMiddleware(raw))},
		{asHook(raw), server.WithToolHandlerMiddleware(asMiddleware(number))},
	} {
		srv := protected(t, l, options...)
		srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(forms(req, "tenant") + string(req.Params.RawArguments)), nil
		})
		r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":{"tenant":"another's"}`)
		if want := `"own" "own" "own"{"id":9007199254740993,"tenant":"own"}`; r.text() != want {
			t.Errorf("got %s, want %s\n%s", r.raw, want, l)
		}
	}
}

// If hooks and middleware only read the arguments, RawArguments stays as the client wrote it.
func TestUnchangedArgumentsStayAsTheyWereSent(t *testing.T) {
	const sent = `{ "b":1e0, "a":"\u0041" }`
	for place, option := range places {
		srv := protected(t, new(log), option(func(context.Context, *mcp.CallToolRequest) {}))
		srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(string(req.Params.RawArguments) + jsonText(req.Params.Arguments)), nil
		})
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":`+sent); r.text() != sent+`{"a":"A","b":1}` {
			t.Errorf("%s: %s", place, r.raw)
		}
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read"`); r.text() != "null" {
			t.Errorf("%s: no arguments: %s", place, r.raw)
		}
	}
}

func TestAHookThatIsAddedLaterMayEnforceRawArguments(t *testing.T) {
	srv := protected(t, new(log))
	srv.GetHooks().AddBeforeAny(func(_ context.Context, _ any, _ mcp.MCPMethod, message any) {
		enforceRaw(message.(*mcp.CallToolRequest), "tenant", `"own"`)
	})
	srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(forms(req, "tenant")), nil
	})
	if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":{"tenant":"another's"}`); r.text() != `"own" "own" "own"` {
		t.Errorf("got %s", r.raw)
	}
}

func TestAPagedToolRefusesArgumentsWithoutJSON(t *testing.T) {
	change := func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments = map[string]any{"filter": func() {}}
	}
	servers := map[string]*server.MCPServer{"inner middleware": pagedForms(t, new(log), change)}
	for place, option := range places {
		servers[place] = pagedForms(t, new(log), nil, option(change))
	}
	for place, srv := range servers {
		if _, r := page(as(t.Context(), "alice"), t, srv, `{"id":7}`); r.Error == nil || r.Error.Message != "Invalid params" {
			t.Errorf("%s: %s", place, r.raw)
		}
	}
}

// If arguments are too long for a paged tool, our hook removes them. Outer middleware may then
// set new arguments, which have neither what the client sent nor what a hook has enforced. The
// tool must not run with them.
func TestArgumentsThatAreTooLongAreRefusedWhateverOuterMiddlewareDoes(t *testing.T) {
	arguments := func(req *mcp.CallToolRequest) map[string]any {
		if args := req.GetArguments(); args != nil {
			return args
		}
		return map[string]any{}
	}
	hook := asHook(func(_ context.Context, req *mcp.CallToolRequest) {
		args := arguments(req)
		args["filter"] = map[string]any{"tenant": "own"}
		req.Params.Arguments = args
	})
	for how, change := range map[string]changeFunc{
		"looks":           look,
		"sets decoded":    setDecoded("id", 7.0),
		"removes the raw": func(_ context.Context, req *mcp.CallToolRequest) { req.Params.RawArguments = nil },
		"sets both": func(_ context.Context, req *mcp.CallToolRequest) {
			args := arguments(req)
			args["id"] = 7.0
			req.Params.Arguments, req.Params.RawArguments = args, json.RawMessage(jsonText(args))
		},
		"sets decoded, and removes the raw": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments, req.Params.RawArguments = map[string]any{"id": 7.0}, nil
		},
		"writes the raw anew": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.RawArguments = json.RawMessage(jsonText(arguments(req)))
		},
	} {
		middleware := server.WithToolHandlerMiddleware(asMiddleware(change))
		for place, options := range map[string][]server.ServerOption{"outer middleware": {middleware}, "outer middleware and a hook": {middleware, hook}} {
			l := new(log)
			srv := pagedForms(t, l, nil, options...)
			alice := as(t.Context(), "alice")
			isInvalid(t, place+" "+how, second(page(alice, t, srv, `{"filter":{"tenant":"`+strings.Repeat("x", 70_000)+`"}}`)))
			has(t, l, "more than PageOptions.MaxArguments")
			if p, r := page(alice, t, srv, `{"filter":{"tenant":"x"}}`); len(p.Items) != 1 {
				t.Errorf("%s %s: short arguments: %s", place, how, r.raw)
			}
		}
	}
}

// Arguments are refused after hooks have seen them. Then outer middleware passes on a context
// with its own protocol information, so our middleware cannot know that they were refused. It
// must refuse every such call.
func TestWhatWasRefusedAfterHooksStaysRefusedIfNothingTellsWhatArrived(t *testing.T) {
	forget := server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			req.Params.RawArguments = json.RawMessage(jsonText(req.GetArguments()))
			info := *server.RequestProtocolInfoFromContext(ctx)
			return next(server.WithRequestProtocolInfo(ctx, &info), req)
		}
	})
	l := new(log)
	srv := protected(t, l, forget, asHook(look))
	addOrders(srv)
	for _, arguments := range twoReadings {
		isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":`+arguments))
	}
	has(t, l, "keep the RequestProtocolInfo")
	isInternal(t, second(page(as(t.Context(), "alice"), t, pagedForms(t, l, nil, forget), `{"filter":{"tenant":"`+strings.Repeat("x", 70_000)+`"}}`)))
}

// TestACopyOfARequestThroughJSONMayBeChanged uses middleware that writes a request as JSON, reads
// it again, and changes Arguments of the copy. RawArguments of the copy may be spelled in another
// way, which must not count as a change.
func TestACopyOfARequestThroughJSONMayBeChanged(t *testing.T) {
	copying := func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := json.Marshal(req)
			if err != nil {
				return nil, err
			}
			var own mcp.CallToolRequest
			if err := json.Unmarshal(text, &own); err != nil {
				return nil, err
			}
			own.GetArguments()["limit"] = 1
			return next(ctx, own)
		}
	}
	for _, arguments := range []string{`{"id":1}`, `{"id": 1}`, `{"filter":{"tenant":"<a>"}}`, `{"id":1,"filter":{"tenant":"caf\u00e9"}}`} {
		outer, inner := paged(t, new(log), nil, server.WithToolHandlerMiddleware(copying)), paged(t, new(log), nil)
		inner.Use(copying)
		for name, srv := range map[string]*server.MCPServer{"outer": outer, "inner": inner} {
			if p, r := page(as(t.Context(), "alice"), t, srv, arguments); len(p.Items) != 1 {
				t.Errorf("%s, %s: %s", name, arguments, r.raw)
			}
		}
	}
}
