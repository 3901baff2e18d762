package mcpgo_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/mcpgo"
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

func TestTheAdapterChangesNoArguments(t *testing.T) {
	for place, option := range places {
		for how, change := range enforced("tenant", `"own"`) {
			var made, got mcp.CallToolParams
			srv := protected(t, new(log), server.WithElicitation(), option(func(ctx context.Context, req *mcp.CallToolRequest) {
				change(ctx, req)
				made = req.Params
			}))
			srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				got = req.Params
				return mcp.NewToolResultText("done"), nil
			})
			for _, arguments := range []string{`,"arguments":{ "tenant":"another's", "b":1e0 }`, `,"arguments":{"a":1,"a":2,"A":3}`, `,"arguments":null`, ``} {
				for _, r := range []reply{send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read"`+arguments), older(t, srv, `"name":"read"`+arguments)} {
					if r.text() != "done" || !reflect.DeepEqual(got.Arguments, made.Arguments) || string(got.RawArguments) != string(made.RawArguments) {
						t.Errorf("%s changes %s, %s: the handler got %v and %s: %s", place, how, arguments, got.Arguments, got.RawArguments, r.raw)
					}
				}
			}
		}
	}
}

type envKey struct{}

// A handler may read either form, so a token must not open if one form has changed since the token
// was sealed.
func TestATokenIsBoundToBothFormsOfTheArguments(t *testing.T) {
	for place, option := range places {
		for how := range enforced("env", `""`) {
			srv := protected(t, new(log), option(func(ctx context.Context, req *mcp.CallToolRequest) {
				env, _ := ctx.Value(envKey{}).(string)
				enforced("env", quote(env))[how](ctx, req)
			}))
			alice := as(t.Context(), "alice")
			staging, production := context.WithValue(alice, envKey{}, "staging"), context.WithValue(alice, envKey{}, "production")
			asked := token(staging, t, srv)
			isRejected(t, retry(production, t, srv, asked))
			isRejected(t, send(staging, t, srv, "tools/call", `"name":"ask","arguments":{"x":2},"requestState":`+quote(asked)))
			if r := retry(staging, t, srv, asked); r.text() != accepted {
				t.Errorf("%s changes %s: %s", place, how, r.raw)
			}
		}
	}
}

// If a hook changes the arguments, the adapter binds the token to a JSON array that has the
// arguments before and after the change. A client may send the same array as its arguments. The
// token of one call must not open in the other.
func TestATokenOfUnchangedArgumentsIsNotOneOfChangedArguments(t *testing.T) {
	hook := asHook(func(_ context.Context, req *mcp.CallToolRequest) {
		if to, ok := req.GetArguments()["to"].(string); ok {
			req.GetArguments()["to"] = strings.ToLower(to)
		}
	})
	srv, alice := protected(t, new(log), hook), as(t.Context(), "alice")
	all := []string{
		`{"to":"Mallory"}`, `{"to":"mallory"}`, `[{"to":"Mallory"},{"to":"Mallory"},{"to":"mallory"}]`, `[ {"to":"mallory"} ]`, `[[{"to":"mallory"}]]`,
		` [[{"to":"Mallory"},{"to":"Mallory"},{"to":"mallory"}]]`,
	}
	for _, first := range all {
		asked := send(alice, t, srv, "tools/call", `"name":"ask","arguments":`+first)
		for _, second := range all {
			r := send(alice, t, srv, "tools/call", `"name":"ask","arguments":`+second+`,"requestState":`+quote(asked.Result.RequestState))
			if second != first {
				isRejected(t, r)
			} else if r.Error != nil {
				t.Errorf("the honest retry of %s: %s", first, r.raw)
			}
		}
	}
}

// TestNoArgumentsAreNotEmptyOnesIfAHookChangesThem uses a hook that changes only Params.Arguments.
// A typed handler reads this change only if the client sent no arguments at all. So a token from a
// call without arguments must not open in a call with empty arguments ({} or null), and the other
// way round.
func TestNoArgumentsAreNotEmptyOnesIfAHookChangesThem(t *testing.T) {
	srv := protected(t, new(log), asHook(func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments = map[string]any{"tenant": "own"}
	}))
	alice, spellings := as(t.Context(), "alice"), []string{``, `,"arguments":{}`, `,"arguments":null`}
	for _, first := range spellings {
		asked := send(alice, t, srv, "tools/call", `"name":"ask"`+first)
		for _, second := range spellings {
			r := send(alice, t, srv, "tools/call", `"name":"ask"`+second+`,"requestState":`+quote(asked.Result.RequestState))
			if same := (first == "") == (second == ""); !same {
				isRejected(t, r)
			} else if r.Error != nil {
				t.Errorf("asked with %q, then %q: %s", first, second, r.raw)
			}
		}
	}
}

// TestOuterMiddlewareMayTryACallAgain uses a handler that changes its arguments. Outer middleware calls
// the handler twice. The second try must get the arguments as they arrived.
func TestOuterMiddlewareMayTryACallAgain(t *testing.T) {
	type change struct {
		context   func(context.Context) context.Context
		arguments func(map[string]any)
	}
	for name, change := range map[string]change{
		"nothing else": {},
		"a context that does not tell what arrived": {context: func(ctx context.Context) context.Context {
			info := *server.RequestProtocolInfoFromContext(ctx)
			return server.WithRequestProtocolInfo(ctx, &info)
		}},
		"arguments that are too long to bind": {arguments: func(args map[string]any) { args["long"] = strings.Repeat("x", 1<<10) }},
		"a value without JSON":                {arguments: func(args map[string]any) { args["c"] = make(chan int) }},
	} {
		for _, late := range []bool{false, true} {
			var again func()
			srv := server.NewMCPServer("test", "1", server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
				return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if change.context != nil {
						ctx = change.context(ctx)
					}
					if change.arguments != nil {
						change.arguments(req.GetArguments())
					}
					again = func() { next(ctx, req) }
					if !late {
						again()
					}
					return next(ctx, req)
				}
			}))
			mcpgo.Protect(srv, boundary(t, new(log), func(c *tripseal.Config) { c.MaxArguments = 1 << 10 }), &mcpgo.Options{AllowAnonymous: true, Logger: new(log).logger()})
			var seen []int
			srv.AddTool(mcp.NewTool("busy"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				seen = append(seen, len(req.GetArguments())+len(req.GetArguments()["deep"].([]any)[0].(map[string]any)))
				clear(req.GetArguments()["deep"].([]any)[0].(map[string]any))
				clear(req.GetArguments())
				return mcp.NewToolResultText("done"), nil
			})
			send(t.Context(), t, srv, "tools/call", `"name":"busy","arguments":{"dry":true,"deep":[{"dry":true}]}`)
			if late { // the call has ended
				again()
			}
			if len(seen) != 2 || seen[0] != seen[1] {
				t.Errorf("%s, late %t: the tries had %d arguments", name, late, seen)
			}
		}
	}
}

// TestOuterMiddlewareMayReadAResourceTwiceAtOnce uses a handler that changes its arguments. Run this test
// with the race detector.
func TestOuterMiddlewareMayReadAResourceTwiceAtOnce(t *testing.T) {
	srv := protected(t, new(log), server.WithResourceHandlerMiddleware(func(next server.ResourceHandlerFunc) server.ResourceHandlerFunc {
		return func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			var other sync.WaitGroup
			other.Go(func() { next(ctx, req) })
			defer other.Wait()
			return next(ctx, req)
		}
	}))
	var mu sync.Mutex
	var seen []string
	srv.AddResourceTemplate(mcp.NewResourceTemplate("test://{tenant}/x", "x"), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, jsonText(req.Params.Arguments))
		clear(req.Params.Arguments)
		return nil, nil
	})
	send(as(t.Context(), "alice"), t, srv, "resources/read", `"uri":"test://own/x"`)
	if want := `{"tenant":["own"]}`; len(seen) != 2 || seen[0] != want || seen[1] != want {
		t.Errorf("the tries saw %s", seen)
	}
}

// TestATokenThatAContextMakesUselessIsExplained uses outer middleware that passes on a context that
// does not tell what the client sent. A token that is bound to arguments is then rejected, and the
// log says why. A token that is not bound to arguments still opens.
func TestATokenThatAContextMakesUselessIsExplained(t *testing.T) {
	for _, bound := range []bool{true, false} {
		l := new(log)
		srv := server.NewMCPServer("test", "1", server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if req.Params.RequestState != "" {
					info := *server.RequestProtocolInfoFromContext(ctx)
					ctx = server.WithRequestProtocolInfo(ctx, &info)
				}
				return next(ctx, req)
			}
		}))
		mcpgo.Protect(srv, boundary(t, l, func(c *tripseal.Config) {
			if bound {
				return
			}
			format, err := compat.McpD([]byte(strings.Repeat("k", 32)), compat.McpDOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c.Keys, c.Format, c.Audience = nil, format, "test"
			c.Waive = tripseal.ClaimAudience | tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimQuestions | tripseal.ClaimFlow
		}), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
		addHandlers(srv)
		alice := as(t.Context(), "alice")
		asked := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1}`)
		r := retry(alice, t, srv, asked.Result.RequestState)
		if bound {
			isRejected(t, r)
		} else if r.text() != accepted {
			t.Errorf("got %s", r.raw)
		}
		if said := strings.Contains(l.String(), "nothing tells what the client sent"); said != bound {
			t.Errorf("bound %t: the log says so: %t", bound, said)
		}
	}
}

// TestATokenIsBoundToAnArgumentThatIsTakenOut takes an argument of the client out of Arguments and
// RawArguments, and puts it into the context or a header. The handler can read it there, so the token
// must be bound to it.
func TestATokenIsBoundToAnArgumentThatIsTakenOut(t *testing.T) {
	takeOut := func(req *mcp.CallToolRequest) any {
		args := maps.Clone(req.GetArguments())
		project := args["project"]
		delete(args, "project")
		req.Params.Arguments, req.Params.RawArguments = args, nil
		return project
	}
	outer := server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return next(context.WithValue(ctx, envKey{}, takeOut(&req)), req)
		}
	})
	hook := asHook(func(_ context.Context, req *mcp.CallToolRequest) {
		req.Header = http.Header{"Project": {fmt.Sprint(takeOut(req))}}
	})
	for where, option := range map[string]server.ServerOption{"middleware": outer, "a hook": hook} {
		srv, alice := protected(t, new(log), option), as(t.Context(), "alice")
		asked := send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"project":"sandbox"}`)
		retry := func(project string) reply {
			return send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"project":`+quote(project)+`},"requestState":`+quote(asked.Result.RequestState))
		}
		isRejected(t, retry("production"))
		if r := retry("sandbox"); r.Error != nil {
			t.Errorf("%s: %s", where, r.raw)
		}
	}
}

// anyText is a format that makes a digest of any text, even of one that is not JSON. An author may
// write such a format.
type anyText struct{ tripseal.Format }

func (anyText) Digest(b *tripseal.Binding) ([]byte, error) {
	sum := sha256.Sum256(b.Arguments)
	return sum[:16], nil
}

// An author's own format may make digests of texts that are not JSON. So it may seal a token for a call
// whose arguments cannot be written as JSON. No later call may open this token, even one with the same
// arguments.
func TestArgumentsThatCannotBeBoundAreNeverTheSame(t *testing.T) {
	format := anyText{tripseal.NativeFormat(tripseal.Ephemeral())}
	var set any
	srv := server.NewMCPServer("test", "1", asHook(func(_ context.Context, req *mcp.CallToolRequest) {
		if set != nil {
			req.Params.Arguments = set
		}
	}))
	mcpgo.Protect(srv, boundary(t, new(log), func(c *tripseal.Config) { c.Keys, c.Format, c.MaxArguments, c.Audience = nil, format, 100, "test" }), &mcpgo.Options{Principal: userFromContext})
	addHandlers(srv)
	alice := as(t.Context(), "alice")
	ask := func(arguments, token string) reply {
		return send(alice, t, srv, "tools/call", `"name":"ask","arguments":`+arguments+`,"requestState":`+quote(token))
	}
	long := strings.Repeat("x", 200)
	isInvalid(t, "long arguments", ask(`{"to":"bob","pad":"`+long+`"}`, ""))
	asked := ask(`{"to":"bob"}`, "")
	if asked.Result.RequestState == "" {
		t.Fatalf("not asked: %s", asked.raw)
	}
	isRejected(t, ask(`{"to":"mallory"}`, asked.Result.RequestState))
	isRejected(t, ask(`{"to":"mallory","pad":"`+long+`"}`, asked.Result.RequestState))
	if r := ask(`{"to":"bob"}`, asked.Result.RequestState); r.Error != nil {
		t.Errorf("the honest retry: %s", r.raw)
	}
	set = map[string]any{"to": func() {}}
	asked = ask(`{"to":"bob"}`, "")
	isRejected(t, ask(`{"to":"bob"}`, asked.Result.RequestState+"."))
	if token := asked.Result.RequestState; token != "" {
		isRejected(t, ask(`{"to":"bob"}`, token))
	}
}

// Middleware may pass on a context that does not tell what the client sent. Then no token is sealed,
// and none opens.
func TestNoTokenIsBoundIfNothingTellsWhatArrived(t *testing.T) {
	forgets, l := false, new(log)
	srv := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if info := *server.RequestProtocolInfoFromContext(ctx); forgets {
				ctx = server.WithRequestProtocolInfo(ctx, &info)
			}
			return next(ctx, req)
		}
	}))
	alice := as(t.Context(), "alice")
	asked := token(alice, t, srv)
	forgets = true
	isRejected(t, retry(alice, t, srv, asked))
	isInternal(t, send(alice, t, srv, "tools/call", `"name":"ask","arguments":{"x":1}`))
	has(t, l, "nothing tells what the client sent")
	if r := send(alice, t, srv, "tools/call", `"name":"echo","arguments":{"x":1}`); r.Error != nil {
		t.Errorf("a tool that does not ask: %s", r.raw)
	}
}

// A hook may put into the arguments a Go value that cannot be written as JSON. No token can be
// bound to this value, but a tool that does not ask gets it.
func TestNoTokenIsBoundToArgumentsWithoutJSON(t *testing.T) {
	for place, option := range places {
		srv := protected(t, new(log), option(func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments = map[string]any{"tenant": func() string { return "own" }}
		}))
		srv.AddTool(mcp.NewTool("read"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(req.GetArguments()["tenant"].(func() string)()), nil
		})
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"read","arguments":{"tenant":"another's"}`); r.text() != "own" {
			t.Errorf("%s: %s", place, r.raw)
		}
		isInvalid(t, place, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"ask","arguments":{"tenant":"another's"}`))
	}
}

// encoding/json replaces text that is not UTF-8, so two different values would have the same JSON
// and the same digest.
func TestNoTokenIsBoundToTextThatIsNotUTF8(t *testing.T) {
	type name string
	shapes := map[string]func(string) any{
		"text":         func(text string) any { return text },
		"named text":   func(text string) any { return name(text) },
		"name":         func(text string) any { return map[string]any{text: 1} },
		"name of type": func(text string) any { return map[name]int{name(text): 1} },
		"deep":         func(text string) any { return []any{map[string]any{"a": []any{text}}} },
		"struct":       func(text string) any { return struct{ Name string }{text} },
	}
	var value any
	hook := asHook(func(_ context.Context, req *mcp.CallToolRequest) { req.GetArguments()["env"] = value })
	srv, alice := protected(t, new(log), hook), as(t.Context(), "alice")
	ask := func(arguments string) reply {
		return send(alice, t, srv, "tools/call", `"name":"ask","arguments":`+arguments)
	}
	for shape, of := range shapes {
		for _, text := range []string{"a\xff", "a\xfe", "\xed\xa0\x80", "\ufffd\xff", "\\\xff", `\ufffd` + "\xff"} {
			value = of(text)
			isInvalid(t, fmt.Sprintf("%s %q", shape, text), ask(`{"x":1}`))
		}
		value = of("own")
		for _, text := range []string{`\ufffd`, `the escape \\ufffd`, `\\\\ufffd`, `\u0000\u2028`} {
			if r := ask(`{"x":"` + text + `"}`); r.Error != nil {
				t.Errorf("%s, and the client sent %s: %s", shape, text, r.raw)
			}
		}
	}
	value = "\ufffd"
	if r := ask(`{"x":1}`); r.Error != nil {
		t.Errorf("U+FFFD itself: %s", r.raw)
	}
}

// TestAPagedToolRefusesFormsThatDisagree changes one form of the arguments of a paged tool, or
// both. A change of only one form must not be lost, so such a call is refused.
func TestAPagedToolRefusesFormsThatDisagree(t *testing.T) {
	changes := enforced("filter", `{"tenant":"own"}`)
	nothing := func(value any) changeFunc {
		return func(_ context.Context, req *mcp.CallToolRequest) { req.Params.Arguments = value }
	}
	for name, value := range map[string]any{
		"nil": nil, "a nil map": map[string]any(nil), "no text": json.RawMessage(nil), "the text null": json.RawMessage(" null"),
		"a value without JSON": map[string]any{"tenant": func() {}}, "another number": map[string]any{"id": int64(8)},
	} {
		changes[name] = nothing(value)
	}
	for name, text := range map[string]string{"broken text": `{"id":7`, "two texts": `{"id":7} {}`, "another number in the text": `{"id":8}`} {
		changes[name] = func(_ context.Context, req *mcp.CallToolRequest) { req.Params.RawArguments = json.RawMessage(text) }
	}
	for how, change := range changes {
		check := func(place string, srv *server.MCPServer, l *log) {
			first, r := page(as(t.Context(), "alice"), t, srv, `{"id":7}`)
			if !strings.HasPrefix(how, "both") && how != "decoded, and raw removed" {
				isInternal(t, r)
				has(t, l, "a paged tool got a call whose Params.Arguments and Params.RawArguments disagree")
				return
			}
			next, again := page(as(t.Context(), "alice"), t, srv, `{"id":7,"cursor":`+quote(first.NextCursor)+`}`)
			if len(first.Items) != 1 || first.Items[0].Tenant != "own" || len(next.Items) != 1 || next.Items[0].Tenant != "own" {
				t.Errorf("%s changes %s: %s, then %s\n%s", place, how, r.raw, again.raw, l)
			}
		}
		for place, option := range places {
			l := new(log)
			check(place, pagedSearch(t, l, nil, option(change)), l)
		}
		l := new(log)
		check("inner middleware", pagedSearch(t, l, change), l)
	}
}

func TestACursorIsBoundToWhatIsEnforced(t *testing.T) {
	enforceEnv := func(ctx context.Context, req *mcp.CallToolRequest) {
		env, _ := ctx.Value(envKey{}).(string)
		enforced("filter", `{"tenant":`+quote(env)+`}`)["both"](ctx, req)
	}
	alice := as(t.Context(), "alice")
	one, other := context.WithValue(alice, envKey{}, "one"), context.WithValue(alice, envKey{}, "other")
	servers := map[string]*server.MCPServer{"inner middleware": pagedSearch(t, new(log), enforceEnv)}
	for place, option := range places {
		servers[place] = pagedSearch(t, new(log), nil, option(enforceEnv))
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

// The middleware removes RawArguments, so the paged tool reads the id from Arguments. mcp-go
// decoded the id into a float64, which may have rounded it. So the tool must refuse a large id.
func TestAPagedToolRefusesNumbersThatMayBeRounded(t *testing.T) {
	remove := func(_ context.Context, req *mcp.CallToolRequest) { req.Params.RawArguments = nil }
	srv := pagedSearch(t, new(log), remove)
	for _, id := range []string{"9007199254740993", "9007199254740992", "-9007199254740993", "9223372036854775808"} {
		if _, r := page(as(t.Context(), "alice"), t, srv, `{"id":`+id+`}`); !r.Result.IsError {
			t.Errorf("%s: %s", id, r.raw)
		}
	}
	if p, r := page(as(t.Context(), "alice"), t, srv, `{"id":9007199254740991}`); len(p.Items) != 1 || p.Items[0].ID != 1<<53-1 {
		t.Errorf("got %s", r.raw)
	}
}

func isInvalid(t testing.TB, what string, r reply) {
	t.Helper()
	if r.Error == nil || r.Error.Message != "Invalid params" {
		t.Errorf("%s: %s", what, r.raw)
	}
}

func look(context.Context, *mcp.CallToolRequest) {}

// pagedSearch returns a server with a paged tool, which returns its arguments. If inner is not nil,
// middleware inside the protection calls inner to change the arguments.
func pagedSearch(t *testing.T, l *log, inner changeFunc, options ...server.ServerOption) *server.MCPServer {
	t.Helper()
	srv := server.NewMCPServer("test", "1", options...)
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	if inner != nil {
		srv.Use(asMiddleware(inner))
	}
	mcpgo.AddPagedTool(p, mcp.NewTool("search"), func(_ context.Context, _ mcp.CallToolRequest, in search, after *int) ([]row, *int, error) {
		return []row{{Tenant: in.Filter.Tenant, ID: in.ID}}, new(int), nil
	}, nil)
	return srv
}

// The handler of one tool calls the handler of a paged tool, and sets the arguments itself. What the
// client sends to the first tool must not matter to the paged tool.
func TestTheArgumentsOfAnotherToolDecideNothing(t *testing.T) {
	for how, options := range map[string][]server.ServerOption{"no hook": nil, "a hook": {asHook(look)}, "outer middleware": {server.WithToolHandlerMiddleware(asMiddleware(look))}} {
		l := new(log)
		srv := pagedSearch(t, l, nil, options...)
		srv.AddTool(mcp.NewTool("wrap"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var inner mcp.CallToolRequest
			inner.Params.Name = "search"
			inner.Params.Arguments = map[string]any{"filter": map[string]any{"tenant": "mine"}, "id": 7.0}
			if req.GetArguments()["text"] == true {
				inner.Params.RawArguments = json.RawMessage(jsonText(inner.Params.Arguments))
			}
			return srv.GetTool("search").Handler(ctx, inner)
		})
		for _, arguments := range []string{`{}`, `{"text":true}`, `{"id":"a text"}`, `{"filter":1}`, `{"FILTER":1}`, `{"other":1}`, `[7]`, `{"a":1,"a":2}`} {
			r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"wrap","arguments":`+arguments)
			if !strings.Contains(r.text(), `"id":7`) {
				t.Errorf("%s: %s: %s\n%s", how, arguments, r.raw, l)
			}
		}
	}
}

func TestTheSpellingOfArgumentsDoesNotDecideWhatATokenIsBoundTo(t *testing.T) {
	normalise := func(_ context.Context, req *mcp.CallToolRequest) {
		if req.Params.Arguments != nil {
			req.Params.RawArguments = json.RawMessage(jsonText(req.Params.Arguments))
		}
	}
	alice := as(t.Context(), "alice")
	for how, change := range map[string]changeFunc{
		"looks": look, "normalises": normalise,
		"sets": enforced("tenant", `"own"`)["decoded"], "sets the text": enforced("tenant", `"own"`)["raw"],
	} {
		for place, option := range places {
			srv := protected(t, new(log), option(change))
			spellings := [][]string{
				{``, `,"arguments":null`, `,"arguments":{}`, `,"arguments":{ }`},
				{`,"arguments":{"a":1,"tenant":"own"}`, `,"arguments":{"tenant":"own","a":1}`, `,"arguments":{ "a": 1.0, "tenant": "\u006fwn" }`},
				{`,"arguments":{"tenant":"own"}`, `,"arguments":{ "tenant":"own"}`},
				{`,"arguments":{"tenant":"x"}`},
			}
			for i, first := range spellings {
				asked := send(alice, t, srv, "tools/call", `"name":"ask"`+first[0])
				if asked.Result.RequestState == "" {
					t.Fatalf("%s %s: %s", place, how, asked.raw)
				}
				for j, others := range spellings {
					for _, arguments := range others {
						r := send(alice, t, srv, "tools/call", `"name":"ask"`+arguments+`,"requestState":`+quote(asked.Result.RequestState))
						if how == "sets" && (first[0] == "") != (arguments == "") {
							continue // see TestNoArgumentsAreNotEmptyOnesIfAHookChangesThem
						}
						if accepted := r.Error == nil; accepted != (i == j) {
							t.Errorf("%s %s: asked with %q, then %q: accepted is %t", place, how, first[0], arguments, accepted)
						}
					}
				}
			}
		}
	}
}

func TestArgumentsThatAHookRewritesAloneMayBeAsLongAsOthers(t *testing.T) {
	srv := server.NewMCPServer("test", "1", asHook(func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.RawArguments = json.RawMessage(jsonText(req.Params.Arguments))
	}))
	mcpgo.Protect(srv, boundary(t, new(log), func(c *tripseal.Config) { c.MaxArguments = 4096 }), &mcpgo.Options{AllowAnonymous: true})
	addHandlers(srv)
	if r := send(t.Context(), t, srv, "tools/call", `"name":"ask","arguments":{ "t":"`+strings.Repeat("x", 4000)+`"}`); r.Result.RequestState == "" {
		t.Errorf("got %s", r.raw)
	}
}

// selfish is a map with a method MarshalJSON of its own, so encoding/json does not read its
// members.
type selfish map[string]any

func (selfish) MarshalJSON() ([]byte, error) { return []byte(`{}`), nil }

type selfishText []any

func (selfishText) MarshalText() ([]byte, error) { return []byte(`x`), nil }

// If mcp-go may ask an older client, the handler gets a deep copy of the arguments. Copying a
// value that contains itself would never end.
func TestAValueThatContainsItselfIsNotCopied(t *testing.T) {
	node, named, list := make(map[string]any), make(selfish), make(selfishText, 1)
	node["parent"], named["self"], list[0] = map[string]any{"child": node}, named, list
	for how, value := range map[string]any{"map": node, "map with JSON of its own": named, "list with text of its own": list} {
		for place, option := range places {
			srv := protected(t, new(log), server.WithElicitation(), option(func(_ context.Context, req *mcp.CallToolRequest) {
				req.Params.Arguments = map[string]any{"node": value}
			}))
			if r := older(t, srv, `"name":"echo","arguments":{}`); r.Error != nil {
				t.Errorf("%s, %s: %s", place, how, r.raw)
			}
			srv = protected(t, new(log), server.WithElicitation(), server.WithRecovery(), server.WithTaskCapabilities(true, true, true), option(func(_ context.Context, req *mcp.CallToolRequest) {
				req.Params.Arguments = map[string]any{"node": value}
			}))
			srv.AddTool(mcp.NewTool("either", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText("done"), nil
			})
			if r := result(as(t.Context(), "alice"), t, srv, `"name":"either","arguments":{},"task":{}`); r.text() != "done" {
				t.Errorf("%s, %s, as a task: %s", place, how, r.raw)
			}
		}
	}
}
