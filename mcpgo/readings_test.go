package mcpgo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/mcpgo"
)

// order is the struct into which a typed handler decodes its arguments. encoding/json then
// ignores the case of names.
type order struct {
	Filter struct {
		Tenant string `json:"tenant"`
		All    bool   `json:"all"`
	} `json:"filter"`
	Tenant   string  `json:"tenant"`
	TenantID string  `json:"tenantID"`
	Amount   int64   `json:"amount"`
	IDs      []int64 `json:"ids"`
	List     []int64 `json:"list"`
}

// addOrders adds a typed tool that returns the order that it read, and a task tool that does the
// same.
func addOrders(srv *server.MCPServer) {
	srv.AddTool(mcp.NewTool("order"), mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in order) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprintf("%+v", in)), nil
	}))
	srv.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
		var in order
		if err := req.BindArguments(&in); err != nil {
			return nil, err
		}
		return &mcp.CreateTaskResult{Content: []mcp.Content{mcp.NewTextContent(fmt.Sprintf("%+v", in))}}, nil
	})
}

func isInvalid(t testing.TB, what string, r reply) {
	t.Helper()
	if r.Error == nil || r.Error.Message != "Invalid params" {
		t.Errorf("%s: %s", what, r.raw)
	}
}

func look(context.Context, *mcp.CallToolRequest) {}

func setDecoded(name string, value any) changeFunc {
	return func(_ context.Context, req *mcp.CallToolRequest) { req.GetArguments()[name] = value }
}

// twoReadings has arguments in which two names of one object are equal after decoding, or differ
// only in case. A hook, which gets the arguments decoded, and a typed handler may read different
// values from them. And if a hook sets one of the two names, the handler may read the other.
var twoReadings = []string{
	`{"tenant":"own","Tenant":"evil"}`, `{"Tenant":"evil","tenant":"own"}`, `{"tenant":"evil","tenant":"own"}`, `{"tenant":"own","tena\u004Et":"evil"}`,
	`{"filter":{"tenant":"x","all":true},"filter":{"tenant":"own"}}`, `{"filter":{"tenant":"own"},"FILTER":{"tenant":"evil"}}`,
	`{"list":[{"a":[{"k":1,"K":2}]}]}`, "{\"k\":1,\"\u212a\":2}", "{\"s\":1,\"\u017f\":2}", `{"\ud800":1,"\ufffd":2}`, "{\"\xff\":1,\"\xfe\":2}",
	`{"a0":0,"a1":0,"a2":0,"a3":0,"a4":0,"a5":0,"a6":0,"a7":0,"a8":0,"a9":0,"A0":1}`,
}

func TestArgumentsWithTwoReadingsAreRefusedIfOthersSeeTheCall(t *testing.T) {
	for place, option := range places {
		for how, change := range map[string]changeFunc{
			"looks": look, "sets the tenant": setDecoded("tenant", "own"), "sets the filter": setDecoded("filter", map[string]any{"tenant": "own"}),
			"writes the text anew": func(_ context.Context, req *mcp.CallToolRequest) {
				req.Params.RawArguments = json.RawMessage(jsonText(req.GetArguments()))
			},
		} {
			l := new(log)
			srv := protected(t, l, server.WithElicitation(), option(change))
			addOrders(srv)
			for _, arguments := range twoReadings {
				for _, tool := range []string{"order", "ask"} {
					call := `"name":"` + tool + `","arguments":` + arguments
					isInvalid(t, place+" "+how+": "+call, send(as(t.Context(), "alice"), t, srv, "tools/call", call))
					isInvalid(t, place+" "+how+", older: "+call, older(t, srv, call))
				}
			}
			has(t, l, "differ only in upper and lower case")
			pages := pagedForms(t, l, nil, option(change))
			for _, arguments := range twoReadings {
				isInvalid(t, place+" "+how+", paged: "+arguments, second(page(as(t.Context(), "alice"), t, pages, arguments)))
			}
		}
	}
}

// A hook that runs after a call often logs the arguments. It must read what the handler has read.
func TestArgumentsWithTwoReadingsAreRefusedIfAHookSeesTheCallAfterwards(t *testing.T) {
	for name, add := range map[string]func(*server.Hooks){
		"after a call": func(h *server.Hooks) { h.AddAfterCallTool(func(context.Context, any, *mcp.CallToolRequest, any) {}) },
		"on success":   func(h *server.Hooks) { h.AddOnSuccess(func(context.Context, any, mcp.MCPMethod, any, any) {}) },
		"on an error":  func(h *server.Hooks) { h.AddOnError(func(context.Context, any, mcp.MCPMethod, any, error) {}) },
	} {
		l, hooks := new(log), new(server.Hooks)
		add(hooks)
		srv := protected(t, l, server.WithHooks(hooks))
		addOrders(srv)
		alice := as(t.Context(), "alice")
		for _, arguments := range twoReadings {
			isInvalid(t, name+": "+arguments, send(alice, t, srv, "tools/call", `"name":"order","arguments":`+arguments))
		}
		has(t, l, "differ only in upper and lower case")
		for _, arguments := range []string{`{"tenant":"own","amount":9007199254740993}`, `{}`, `{"filter":{"tenant":"own"},"ids":[1,2]}`} {
			if r := send(alice, t, srv, "tools/call", `"name":"order","arguments":`+arguments); r.Error != nil || r.Result.IsError {
				t.Errorf("%s: %s: %s", name, arguments, r.raw)
			}
		}
		if r := retry(alice, t, srv, token(alice, t, srv)); r.text() != accepted {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
}

func TestATaskToolRefusesArgumentsWithTwoReadings(t *testing.T) {
	for _, change := range []changeFunc{look, setDecoded("tenant", "own")} {
		l := new(log)
		srv := protected(t, l, server.WithTaskCapabilities(true, true, true), asHook(change))
		addOrders(srv)
		for _, arguments := range twoReadings {
			if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"task","task":{},"arguments":`+arguments); r.Error == nil {
				t.Errorf("%s: %s", arguments, r.raw)
			}
		}
		has(t, l, "differ only in upper and lower case")
	}
}

func TestWithoutHooksAndOuterMiddlewareArgumentsStayAsTheyAre(t *testing.T) {
	srv := protected(t, new(log))
	addOrders(srv)
	for arguments, want := range map[string]string{
		`{"tenant":"own","Tenant":"evil"}`:                               "{Filter:{Tenant: All:false} Tenant:evil TenantID: Amount:0 IDs:[] List:[]}",
		`{"filter":{"all":true},"filter":{"tenant":"own"},"amount":1e0}`: "",
		`{"amount":9007199254740993}`:                                    "{Filter:{Tenant: All:false} Tenant: TenantID: Amount:9007199254740993 IDs:[] List:[]}",
	} {
		r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":`+arguments)
		if want != "" && r.text() != want || r.Error != nil {
			t.Errorf("%s: %s", arguments, r.raw)
		}
	}
}

// The client sends a name, and a hook adds the same name in another case. A typed handler reads
// both into one field, and the last value wins.
func TestANameThatAHookAddsBesideTheClientsIsRefused(t *testing.T) {
	for place, option := range places {
		for how, change := range enforced("tenantID", `"own"`) {
			l := new(log)
			srv := protected(t, l, option(change))
			addOrders(srv)
			for _, name := range []string{"tenantId", "TENANTID", "tenantid"} {
				isInvalid(t, place+" "+how, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"`+name+`":"evil"}`))
			}
			has(t, l, "differ only in upper and lower case")
			r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"tenantID":"evil"}`)
			if !strings.Contains(r.text(), "TenantID:own") {
				t.Errorf("%s %s: %s", place, how, r.raw)
			}
		}
	}
}

// A hook reads a number as a float64, and a typed handler reads all its digits. A long number is
// refused only if the arguments were changed. If it were always refused, none could reach a
// server with mcp-go's own middleware for recovery, which changes nothing.
func TestALongNumberReachesTheHandlerExactlyIfNobodyChangesTheArguments(t *testing.T) {
	const call, want = `"name":"order","arguments":{"amount":9007199254740993}`, "{Filter:{Tenant: All:false} Tenant: TenantID: Amount:9007199254740993 IDs:[] List:[]}"
	for place, option := range places {
		srv := protected(t, new(log), option(look))
		addOrders(srv)
		if r := send(as(t.Context(), "alice"), t, srv, "tools/call", call); r.text() != want {
			t.Errorf("%s: %s", place, r.raw)
		}
		l := new(log)
		srv = protected(t, l, option(setDecoded("tenant", "own")))
		addOrders(srv)
		isInvalid(t, place, send(as(t.Context(), "alice"), t, srv, "tools/call", call))
		has(t, l, "pass long ids as strings")
	}
}

// A hook that moves or copies a number has only its float64, which may lack digits of the number
// that was sent.
func TestANumberThatMayBeRoundedIsNotWrittenAnew(t *testing.T) {
	ids := func(req *mcp.CallToolRequest) []any { return req.GetArguments()["ids"].([]any) }
	for how, change := range map[string]changeFunc{
		"dropped":  func(_ context.Context, req *mcp.CallToolRequest) { req.GetArguments()["ids"] = ids(req)[1:] },
		"copied":   func(_ context.Context, req *mcp.CallToolRequest) { req.GetArguments()["amount"] = ids(req)[1] },
		"appended": func(_ context.Context, req *mcp.CallToolRequest) { req.GetArguments()["ids"] = append(ids(req), 7.0) },
		"in a type": func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.Arguments = map[string][]any{"ids": ids(req)[1:]}
		},
		"renamed": func(_ context.Context, req *mcp.CallToolRequest) {
			req.GetArguments()["list"] = ids(req)
			delete(req.GetArguments(), "ids")
		},
	} {
		for place, option := range places {
			l := new(log)
			srv := protected(t, l, option(change))
			addOrders(srv)
			isInvalid(t, place+" "+how, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"ids":[5,9007199254740993]}`))
			has(t, l, "pass long ids as strings")
			if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"ids":[5,9007199254740992]}`); !strings.Contains(r.text(), "9007199254740992") {
				t.Errorf("%s %s an exact number: %s", place, how, r.raw)
			}
		}
	}
	// This middleware replaces the protocol information. Then the server does not know what the
	// client sent, so any long float64 may be rounded.
	l := new(log)
	unknown := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			req.Params.Arguments, req.Params.RawArguments = map[string]any{"ids": ids(&req)[1:]}, nil
			info := *server.RequestProtocolInfoFromContext(ctx)
			return next(server.WithRequestProtocolInfo(ctx, &info), req)
		}
	}))
	addOrders(unknown)
	isInvalid(t, "unknown", send(as(t.Context(), "alice"), t, unknown, "tools/call", `"name":"order","arguments":{"ids":[5,9007199254740993]}`))
	has(t, l, "pass long ids as strings")

	// Middleware that is added after Protect may round a number too. A paged tool notices this.
	l = new(log)
	srv := pagedForms(t, l, func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments = map[string]any{"id": req.GetArguments()["other"]}
	})
	isInvalid(t, "inner middleware", second(page(as(t.Context(), "alice"), t, srv, `{"other":9007199254740993}`)))
	has(t, l, "pass long ids as strings")
}

// A hook may write RawArguments anew from the decoded form. A number in it then has only the
// digits of a float64.
func TestANumberThatMayBeRoundedIsNotTakenFromRawArguments(t *testing.T) {
	raw := func(text func(map[string]any) string) changeFunc {
		return func(_ context.Context, req *mcp.CallToolRequest) {
			req.Params.RawArguments = json.RawMessage(text(req.GetArguments()))
		}
	}
	fromDecoded := func(args map[string]any) string { args["tenant"] = "own"; return jsonText(args) }
	const exact, rounded = "9007199254740992", "9007199254740993"
	changes := map[string]changeFunc{
		"both forms": func(ctx context.Context, req *mcp.CallToolRequest) {
			setDecoded("tenant", "own")(ctx, req)
			raw(fromDecoded)(ctx, req)
		},
		"the text": raw(fromDecoded),
		"the text, and one more number": raw(func(args map[string]any) string {
			return `{"tenant":"own","ids":` + jsonText(args["ids"]) + `,"amount":` + exact + `}`
		}),
	}
	keep := func(_ context.Context, req *mcp.CallToolRequest) { enforceRaw(req, "tenant", `"own"`) }
	call := func(srv *server.MCPServer, arguments string) reply {
		return send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":`+arguments)
	}
	for place, option := range places {
		for how, change := range changes {
			l := new(log)
			srv := protected(t, l, option(change))
			addOrders(srv)
			for _, ids := range []string{rounded, "-" + rounded, "5," + rounded, exact + "," + rounded, rounded + ".0", "9.007199254740993e15", "19000000000000112"} {
				isInvalid(t, place+" "+how+" "+ids, call(srv, `{"ids":[`+ids+`]}`))
				// The client also sends the rounded number, in a member that the hook replaces.
				// This must not hide that another number was rounded.
				isInvalid(t, place+" "+how+" "+ids+" and a decoy", call(srv, `{"ids":[`+ids+`],"tenant":`+exact+`}`))
				isInvalid(t, place+" "+how+" "+ids+" and decoys", call(srv, `{"ids":[`+ids+`],"tenant":{"a":[`+exact+`,-`+exact+`,`+exact+`]}}`))
			}
			has(t, l, "pass long ids as strings")
			if r := call(srv, `{"ids":[`+exact+`]}`); !strings.Contains(r.text(), "IDs:["+exact+"]") {
				t.Errorf("%s %s, an exact number: %s", place, how, r.raw)
			}
		}
		srv := protected(t, new(log), option(keep))
		addOrders(srv)
		if r := call(srv, `{"ids":[`+exact+`,`+rounded+`]}`); !strings.Contains(r.text(), "Tenant:own TenantID: Amount:0 IDs:["+exact+" "+rounded+"]") {
			t.Errorf("%s keeps the digits: %s", place, r.raw)
		}
	}

	// Outer middleware may round a number that a hook has set.
	l := new(log)
	srv := protected(t, l, asHook(func(_ context.Context, req *mcp.CallToolRequest) { enforceRaw(req, "amount", rounded) }),
		server.WithToolHandlerMiddleware(asMiddleware(raw(fromDecoded))))
	addOrders(srv)
	isInvalid(t, "a hook's number", call(srv, `{}`))
	has(t, l, "pass long ids as strings")

	// This middleware replaces the protocol information. Then the server does not know what the
	// client sent, so any long number may be rounded.
	unknown := protected(t, new(log), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			raw(fromDecoded)(ctx, &req)
			info := *server.RequestProtocolInfoFromContext(ctx)
			return next(server.WithRequestProtocolInfo(ctx, &info), req)
		}
	}))
	addOrders(unknown)
	isInvalid(t, "unknown", call(unknown, `{"ids":[`+rounded+`]}`))

	// Middleware that is added after Protect may round a number too. A paged tool notices this.
	l = new(log)
	paged := pagedForms(t, l, raw(func(args map[string]any) string { delete(args, "other"); return jsonText(args) }))
	isInvalid(t, "inner middleware", second(page(as(t.Context(), "alice"), t, paged, `{"id":`+rounded+`}`)))
	isInvalid(t, "inner middleware and a decoy", second(page(as(t.Context(), "alice"), t, paged, `{"id":`+rounded+`,"other":`+exact+`}`)))
	has(t, l, "pass long ids as strings")
}

func TestAPagedToolServesArgumentsThatAHookHasRepaired(t *testing.T) {
	repair := func(_ context.Context, req *mcp.CallToolRequest) {
		args := req.GetArguments()
		if args == nil {
			args = make(map[string]any)
			req.Params.Arguments = args
		}
		if text, ok := args["id"].(string); ok {
			args["id"] = float64(len(text))
		}
		if f, ok := args["id"].(float64); ok && f > 1<<53 {
			args["id"] = 1.0
		}
		if filter, ok := args["Filter"]; ok {
			args["filter"] = filter
			delete(args, "Filter")
		}
	}
	servers := map[string]*server.MCPServer{"inner middleware": pagedForms(t, new(log), repair)}
	for place, option := range places {
		servers[place] = pagedForms(t, new(log), nil, option(repair))
	}
	for place, srv := range servers {
		for arguments, want := range map[string]row{
			`{"id":7}`: {ID: 7}, `{"id":"1234567"}`: {ID: 7}, `{"Filter":{"tenant":"a"}}`: {Tenant: "a "}, `{"id":9007199254740995}`: {ID: 1}, `[]`: {},
		} {
			p, r := page(as(t.Context(), "alice"), t, srv, arguments)
			if len(p.Items) != 1 || p.Items[0].ID != want.ID || !strings.HasPrefix(p.Items[0].Tenant, want.Tenant) {
				t.Errorf("%s: %s: %s", place, arguments, r.raw)
			}
		}
		for _, arguments := range []string{`{"Filter":{"tenant":"a"},"filter":{"tenant":"b"}}`, `{"id":"1","id":"2"}`} {
			isInvalid(t, place+": "+arguments, second(page(as(t.Context(), "alice"), t, srv, arguments)))
		}
	}
}

// The tool wrap calls the handler of a paged tool, with arguments of its own. What the client
// sends to wrap must not matter there.
func TestTheArgumentsOfAnotherToolDecideNothing(t *testing.T) {
	for how, options := range map[string][]server.ServerOption{"no hook": nil, "a hook": {asHook(look)}, "outer middleware": {server.WithToolHandlerMiddleware(asMiddleware(look))}} {
		l := new(log)
		srv := pagedForms(t, l, nil, options...)
		srv.AddTool(mcp.NewTool("wrap"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var inner mcp.CallToolRequest
			inner.Params.Name = "search"
			inner.Params.Arguments = map[string]any{"filter": map[string]any{"tenant": "mine"}, "id": 7.0}
			if req.GetArguments()["text"] == true {
				inner.Params.Arguments, inner.Params.RawArguments = nil, json.RawMessage(jsonText(inner.Params.Arguments))
			}
			return srv.GetTool("search").Handler(ctx, inner)
		})
		sent := []string{`{}`, `{"text":true}`, `{"id":"a text"}`, `{"filter":1}`, `{"FILTER":1}`, `{"other":1}`, `[7]`}
		if options == nil {
			sent = append(sent, `{"a":1,"a":2}`)
		}
		for _, arguments := range sent {
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
	fill := func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments, req.Params.RawArguments = map[string]any{"tenant": "own"}, nil
	}
	empty := func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Arguments, req.Params.RawArguments = nil, nil
	}
	alice := as(t.Context(), "alice")
	for how, change := range map[string]changeFunc{
		"looks": look, "normalises": normalise, "fills": fill, "empties": empty,
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
	mcpgo.Protect(srv, boundary(t, new(log), func(c *mcpseal.Config) { c.MaxArguments = 4096 }), &mcpgo.Options{AllowAnonymous: true})
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
		}
	}
}

// A hook of the kind OnRequestInitialization can refuse a request. It gets the text of the whole
// request, and may decide by the arguments in it.
func TestArgumentsWithTwoReadingsAreRefusedIfAHookDecidesByTheRequest(t *testing.T) {
	l, hooks := new(log), new(server.Hooks)
	hooks.AddOnRequestInitialization(func(_ context.Context, _ any, message any) error {
		var req mcp.CallToolRequest
		text, ok := message.(json.RawMessage)
		if ok && json.Unmarshal(text, &req) == nil && req.Method == string(mcp.MethodToolsCall) && req.GetString("tenant", "") != "own" {
			return errors.New("forbidden")
		}
		return nil
	})
	srv := protected(t, l, server.WithHooks(hooks))
	addOrders(srv)
	if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"tenant":"own"}`); r.Error != nil {
		t.Error(r.raw)
	}
	isInvalid(t, "two names", send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"tenant":"own","Tenant":"evil"}`))
	has(t, l, "differ only in upper and lower case")
}

// A hook that gets the text of a request may decode it in any way. It must find the same method,
// tool and arguments as mcp-go.
func TestARequestWithTwoReadingsIsRefusedIfAHookDecidesByTheRequest(t *testing.T) {
	const own, evil = `{"tenant":"own"}`, `{"tenant":"evil"}`
	call := func(srv *server.MCPServer, members string) reply {
		return message(as(t.Context(), "alice"), t, srv, `{"jsonrpc":"2.0","id":1,`+members+`}`)
	}
	params := func(members string) string { return `"params":{` + meta + `,"name":"order",` + members + `}` }
	for name, hook := range map[string]func(message json.RawMessage) (method string, tenant any){
		"into a struct": func(message json.RawMessage) (string, any) {
			var m struct {
				Method string
				Params struct{ Arguments map[string]any }
			}
			json.Unmarshal(message, &m)
			return m.Method, m.Params.Arguments["tenant"]
		},
		"into a map": func(message json.RawMessage) (string, any) {
			var m map[string]any
			json.Unmarshal(message, &m)
			method, _ := m["method"].(string)
			params, _ := m["params"].(map[string]any)
			arguments, _ := params["arguments"].(map[string]any)
			return method, arguments["tenant"]
		},
	} {
		l, hooks := new(log), new(server.Hooks)
		hooks.AddOnRequestInitialization(func(_ context.Context, _ any, message any) error {
			if method, tenant := hook(message.(json.RawMessage)); method == string(mcp.MethodToolsCall) && tenant != "own" {
				return errors.New("forbidden")
			}
			return nil
		})
		srv := protected(t, l, server.WithHooks(hooks))
		addOrders(srv)
		if r := call(srv, `"method":"tools/call",`+params(`"arguments":`+own)); r.Error != nil {
			t.Errorf("%s: %s", name, r.raw)
		}
		for _, members := range []string{
			`"method":"tools/call",` + params(`"arguments":`+own+`,"arguments":`+evil),
			`"method":"tools/call",` + params(`"arguments":`+own+`,"arguments":{}`),
			`"method":"tools/call",` + params(`"arguments":`+own+`,"Arguments":`+evil),
			`"method":"tools/call",` + params(`"arguments":`+own+`,"argument\u017f":`+evil),
			`"method":"tools/call",` + params(`"arguments":`+own) + `,` + params(`"arguments":`+evil),
			`"method":"tools/call",` + params(`"arguments":`+own) + `,"P` + params(`"arguments":` + evil)[2:],
			`"method":"tools/list","Method":"tools/call",` + params(`"arguments":`+evil),
			`"method":"tools/call",` + params(`"arguments":`+own+`,"Name":"order"`),
		} {
			if r := call(srv, members); r.Error == nil {
				t.Errorf("%s: %s ran: %s", name, members, r.raw)
			}
		}
		has(t, l, "a request was refused")
		prompt := func(arguments string) string {
			return `"method":"prompts/get","params":{` + meta + `,"name":"p","arguments":` + arguments + `}`
		}
		srv.AddPrompt(mcp.NewPrompt("p"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("ran", nil), nil
		})
		if r := call(srv, prompt(own)); r.Error != nil {
			t.Errorf("%s: %s", name, r.raw)
		}
		if r := call(srv, prompt(`{"tenant":"own","Tenant":"evil"}`)); r.Error == nil {
			t.Errorf("%s: a prompt ran: %s", name, r.raw)
		}
		if r := call(srv, `"method":"prompts/get","params":{`+meta+`,"name":"p","inputResponses":{"x":{"action":"accept"},"X":{"action":"accept"}},"arguments":`+own+`}`); r.Error != nil {
			t.Errorf("%s: a prompt that asked two questions: %s", name, r.raw)
		}
		// Deeper in a request, the client may choose the names, for example in the content of an
		// answer. There they may differ only in case.
		if r := call(srv, `"method":"tools/call",`+params(`"inputResponses":{"a":{"action":"accept","content":{"a":"b","A":"b"}}},"arguments":`+own)); r.Error != nil {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
}

// Outer middleware renames a call of v1_pay to pay, which the server refuses, and then tries
// again. The second try must be refused too, even if the client asks for a task, which v1_pay
// does not support.
func TestARenamedCallStaysRefusedIfMiddlewareTriesAgain(t *testing.T) {
	rename := func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			req.Params.Name = strings.TrimPrefix(req.Params.Name, "v1_")
			return next(ctx, req)
		}
	}
	again := func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if result, err := next(ctx, req); err == nil {
				return result, nil
			}
			return next(ctx, req)
		}
	}
	srv := protected(t, new(log), server.WithTaskCapabilities(true, true, true), server.WithToolHandlerMiddleware(again), server.WithToolHandlerMiddleware(rename))
	for _, tool := range []mcp.Tool{mcp.NewTool("pay", mcp.WithTaskSupport(mcp.TaskSupportOptional)), mcp.NewTool("v1_pay")} {
		srv.AddTool(tool, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.RequestState == "" {
				return question().ToolResult(), nil
			}
			return mcp.NewToolResultText("paid"), nil
		})
	}
	alice := as(t.Context(), "alice")
	state := send(alice, t, srv, "tools/call", `"name":"pay","arguments":{}`).Result.RequestState
	for _, task := range []string{"", `,"task":{}`} {
		answer := `,"requestState":` + quote(state) + `,"inputResponses":{"ok":{"action":"accept","content":{"yes":true}}}`
		if r := send(alice, t, srv, "tools/call", `"name":"v1_pay","arguments":{}`+task+answer); r.Error == nil || state == "" {
			t.Errorf("%q: %s", task, r.raw)
		}
	}
}

func TestALongNumberTakesLinearTime(t *testing.T) {
	// Reading such a number exactly would take the test a minute.
	srv := protected(t, new(log), asHook(setDecoded("tenant", "own")))
	addOrders(srv)
	for _, number := range []string{"9007199254740992." + strings.Repeat("0", 4<<20), "0." + strings.Repeat("0", 1<<18) + "1e262161"} {
		isInvalid(t, "a long number", send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"order","arguments":{"amount":`+number+`}`))
	}
}

// mcp-go chooses the handler before middleware runs. If middleware then changes the name, a token
// would be bound to another tool than the one that runs.
func TestOuterMiddlewareCannotMoveATokenToAnotherTool(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if _, name, ok := strings.Cut(req.Params.Name, "."); ok {
				req.Params.Name = name
			}
			return next(ctx, req)
		}
	}))
	for _, name := range []string{"test.pay", "prod.pay", "pay"} {
		srv.AddTool(mcp.NewTool(name), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("ran"), nil
		})
	}
	for name, want := range map[string]bool{"test.pay": false, "prod.pay": false, "pay": true} {
		r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"`+name+`","arguments":{}`)
		if (r.Error == nil && r.text() == "ran") != want {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
	has(t, l, "changed Params.Name of a call")
}
