package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/mcpgo"
)

type filter struct {
	Tenant string `json:"tenant"`
}

type search struct {
	Filter filter `json:"filter,omitempty"`
	ID     int64  `json:"id,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

type row struct {
	N      int    `json:"n"`
	Tenant string `json:"tenant"`
	ID     int64  `json:"id"`
}

// paged returns a server with a paged tool that has five rows for each tenant.
func paged(t *testing.T, l *log, options *mcpgo.PageOptions, more ...server.ServerOption) *server.MCPServer {
	t.Helper()
	srv := server.NewMCPServer("test", "1", more...)
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	mcpgo.AddPagedTool(p, mcp.NewTool("search"), func(_ context.Context, _ mcp.CallToolRequest, in search, after *int) ([]row, *int, error) {
		first, size := 0, 2
		if after != nil {
			first = *after + 1
		}
		if in.Limit > 0 {
			size = in.Limit
		}
		var rows []row
		for n := first; n < 5 && len(rows) < size; n++ {
			rows = append(rows, row{n, in.Filter.Tenant, in.ID})
		}
		if last := first + len(rows) - 1; last < 4 {
			return rows, &last, nil
		}
		return rows, nil, nil
	}, options)
	return srv
}

type pageReply struct {
	Items      []row
	NextCursor string
}

func page(ctx context.Context, t *testing.T, srv *server.MCPServer, arguments string) (p pageReply, r reply) {
	t.Helper()
	r = send(ctx, t, srv, "tools/call", `"name":"search","arguments":`+arguments)
	if r.Error == nil && !r.Result.IsError {
		if err := json.Unmarshal([]byte(r.text()), &p); err != nil {
			t.Fatalf("%v in %s", err, r.raw)
		}
	}
	return p, r
}

func TestAPagedToolWalksItsRows(t *testing.T) {
	for name, more := range map[string][]server.ServerOption{
		"plain": nil, "validated": {server.WithInputSchemaValidation(), server.WithOutputSchemaValidation()},
	} {
		t.Run(name, func(t *testing.T) {
			srv, alice := paged(t, new(log), nil, more...), as(t.Context(), "alice")
			cursor, rows := "", 0
			for {
				p, r := page(alice, t, srv, `{"filter":{"tenant":"mine"},"cursor":`+quote(cursor)+`}`)
				if r.Error != nil || r.Result.IsError {
					t.Fatalf("got %s", r.raw)
				}
				for _, row := range p.Items {
					if row.N != rows || row.Tenant != "mine" {
						t.Errorf("row %d is %+v", rows, row)
					}
					rows++
				}
				if cursor = p.NextCursor; cursor == "" {
					break
				}
			}
			if rows != 5 {
				t.Errorf("%d rows", rows)
			}
		})
	}
}

func TestACursorOfAPagedToolWorksForItsUserAndItsArguments(t *testing.T) {
	l := new(log)
	srv, alice := paged(t, l, &mcpgo.PageOptions{Unbound: []string{"limit"}}), as(t.Context(), "alice")
	first, _ := page(alice, t, srv, `{"filter":{"tenant":"mine"}}`)
	cursor := `"cursor":` + quote(first.NextCursor)
	for name, r := range map[string]reply{
		"another user":    second(page(as(t.Context(), "bob"), t, srv, `{"filter":{"tenant":"mine"},`+cursor+`}`)),
		"nobody":          second(page(t.Context(), t, srv, `{"filter":{"tenant":"mine"},`+cursor+`}`)),
		"another tenant":  second(page(alice, t, srv, `{"filter":{"tenant":"other"},`+cursor+`}`)),
		"one more":        second(page(alice, t, srv, `{"filter":{"tenant":"mine"},"id":1,`+cursor+`}`)),
		"forged":          second(page(alice, t, srv, `{"filter":{"tenant":"mine"},"cursor":"mc1.AAAA"}`)),
		"another service": second(page(alice, t, paged(t, l, nil), `{"filter":{"tenant":"mine"},`+cursor+`}`)),
	} {
		if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Invalid cursor"}}`; r.raw != want {
			t.Errorf("%s: got %s", name, r.raw)
		}
	}
	if p, r := page(alice, t, srv, `{"limit":1,"filter":{ "tenant":"mine"},`+cursor+`}`); len(p.Items) != 1 || p.Items[0].N != 2 {
		t.Errorf("another limit: %s", r.raw)
	}
}

func second(_ pageReply, r reply) reply { return r }

func TestAPagedToolReadsItsArgumentsExactly(t *testing.T) {
	l := new(log)
	srv, alice := paged(t, l, nil), as(t.Context(), "alice")
	for _, arguments := range []string{
		`{"filter":{"tenant":"mine","Tenant":"other"}}`, `{"filter":{"TENANT":"other"}}`, `{"Filter":{"tenant":"mine"}}`, `{"CURSOR":"x"}`,
		`{"filter":{"tenant":"mine"},"filter":{"tenant":"other"}}`, `{"cursor":"","cursor":""}`, `{"cursor":1}`, `[]`, `"x"`, `{"id":9007199254740993}`,
		`{"id":18446744073709551616}`, `{"id":1.5}`, `{"id":"1"}`, `{"filter":{"tenant":1}}`,
		`{"filter":{"tenant":"` + strings.Repeat("x", 65<<10) + `"}}`, `{"cursor":"` + strings.Repeat("x", 300<<10) + `"}`,
	} {
		if _, r := page(alice, t, srv, arguments); r.Error == nil && !r.Result.IsError {
			t.Errorf("%.60s: %.300s", arguments, r.raw)
		}
	}
	for arguments, want := range map[string]int64{`{"id":9007199254740992}`: 9007199254740992, `{"id":1e3}`: 1000, `{"id":-0}`: 0} {
		if p, r := page(alice, t, srv, arguments); len(p.Items) == 0 || p.Items[0].ID != want {
			t.Errorf("%s: %s", arguments, r.raw)
		}
	}
	if p, r := page(alice, t, srv, `null`); len(p.Items) != 2 {
		t.Errorf("no arguments: %s", r.raw)
	}
}

func TestTheSchemaOfAPagedToolHasItsCursor(t *testing.T) {
	srv := paged(t, new(log), &mcpgo.PageOptions{Cursor: "after", NextCursor: "more", Items: "rows"})
	r := send(as(t.Context(), "alice"), t, srv, "tools/list", "")
	for _, want := range []string{`"after":{`, `"more":{`, `"rows":{"type":"array"}`, `"tenant":{`, `"limit":{`} {
		if !strings.Contains(r.raw, want) {
			t.Errorf("no %s in %s", want, r.raw)
		}
	}
}

func TestAPagedToolThatCannotBeRegisteredPanics(t *testing.T) {
	handler := func(context.Context, mcp.CallToolRequest, search, *int) ([]row, *int, error) { return nil, nil, nil }
	for name, c := range map[string]struct {
		tool    mcp.Tool
		options *mcpgo.PageOptions
	}{
		"clash":         {mcp.NewTool("t", mcp.WithString("cursor")), nil},
		"clash in case": {mcp.NewTool("t", mcp.WithString("Cursor")), nil},
		"twins":         {mcp.NewTool("t", mcp.WithString("a"), mcp.WithString("A")), nil},
		"unbound":       {mcp.NewTool("t"), &mcpgo.PageOptions{Unbound: []string{"nothing"}}},
		"one name":      {mcp.NewTool("t"), &mcpgo.PageOptions{Items: "x", NextCursor: "x"}},
		"limit":         {mcp.NewTool("t"), &mcpgo.PageOptions{MaxArguments: -1}},
		"output":        {mcp.NewTool("t", mcp.WithOutputSchema[row]()), nil},
		"schema":        {mcp.NewToolWithRawSchema("t", "", json.RawMessage(`[]`)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := mcpgo.Protect(server.NewMCPServer("test", "1"), boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true})
			defer func() {
				if text := fmt.Sprint(recover()); !strings.HasPrefix(text, `mcpgo: the paged tool "t": `) {
					t.Errorf("got %q", text)
				}
			}()
			mcpgo.AddPagedTool(p, c.tool, handler, c.options)
		})
	}
}

func TestAPanicOfAPageHandlerTellsNothing(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	mcpgo.AddPagedTool(p, mcp.NewTool("search"), func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]row, *int, error) { panic(secret) }, nil)
	isInternal(t, send(t.Context(), t, srv, "tools/call", `"name":"search"`))
}

func TestArgumentsBeyondTheLimitNeverReachTheSchema(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1", server.WithInputSchemaValidation())
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	mcpgo.AddPagedTool(p, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","properties":{"u":{"type":"array","items":{"type":"string"}}}}`)),
		func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]int, *int, error) {
			return nil, nil, nil
		}, &mcpgo.PageOptions{MaxArguments: 1024})
	for _, items := range []int{1000, 50000, 500000} {
		r := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"u":[`+strings.Repeat("0,", items)+`0]}`)
		if r.Error == nil || r.Error.Code != -32602 || len(r.raw) > 250 {
			t.Errorf("%d items: %.200s", items, r.raw)
		}
	}
	if r := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"u":[0]}`); !r.Result.IsError {
		t.Errorf("the schema is not applied: %s", r.raw)
	}
}

// The adapter refuses arguments that are too long for a paged tool. An ordinary tool of the same
// name must get its arguments, however long they are.
func TestAnOrdinaryToolWithTheNameOfAPagedOneGetsItsArguments(t *testing.T) {
	l := new(log)
	p := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	add := func(srv *server.MCPServer) {
		mcpgo.AddPagedTool(p.Install(srv), mcp.NewTool("delete"), func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]int, *int, error) {
			return nil, nil, nil
		}, nil)
	}
	ordinary := func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(len(req.Params.RawArguments) > 250<<10, len(req.GetArguments()))), nil
	}
	long := `"name":"delete","arguments":{"only":["` + strings.Repeat("x", 250<<10) + `"]}`
	one, other := server.NewMCPServer("one", "1"), server.NewMCPServer("other", "1")
	add(one)
	p.Install(other)
	other.AddTool(mcp.NewTool("delete"), ordinary)
	session := &ownTools{tools: map[string]server.ServerTool{"delete": {Tool: mcp.NewTool("delete"), Handler: ordinary}}}
	if r := send(one.WithContext(t.Context(), session), t, one, "tools/call", long); r.text() != "true 1" {
		t.Errorf("a tool of the session: %.200s", r.raw)
	}
	if r := send(t.Context(), t, other, "tools/call", long); r.text() != "true 1" {
		t.Errorf("another server: %.200s", r.raw)
	}
	if r := send(t.Context(), t, one, "tools/call", long); r.Error == nil {
		t.Errorf("the paged tool: %.200s", r.raw)
	}
	one.DeleteTools("delete")
	one.AddTool(mcp.NewTool("delete"), ordinary)
	if r := send(t.Context(), t, one, "tools/call", long); r.text() != "true 1" {
		t.Errorf("a tool in its place: %.200s", r.raw)
	}
}

// A filter may hide a paged tool from some users. For them, the tool must look like one that does not
// exist, however long the arguments are.
func TestAHiddenPagedToolLooksLikeAnUnknownOne(t *testing.T) {
	srv := paged(t, new(log), nil, server.WithToolFilter(func(context.Context, []mcp.Tool) []mcp.Tool { return nil }))
	for _, length := range []int{1, 70_000, 300_000} {
		call := func(tool string) string {
			return send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"`+tool+`","arguments":{"x":"`+strings.Repeat("x", length)+`"}`).raw
		}
		if hidden, unknown := call("search"), call("nothing"); hidden != strings.ReplaceAll(unknown, "nothing", "search") {
			t.Errorf("%d bytes: the hidden tool: %.200s, an unknown one: %.200s", length, hidden, unknown)
		}
	}
}

// mcp-go checks Params.Arguments against the schema. If Params.Arguments is too long, the call must
// be refused, even if a hook removes or replaces Params.RawArguments.
func TestLongArgumentsNeverReachTheSchemaWithoutTheirText(t *testing.T) {
	for _, text := range []string{``, `{}`} {
		l := new(log)
		srv := paged(t, l, nil, server.WithInputSchemaValidation(), asHook(func(_ context.Context, req *mcp.CallToolRequest) { req.Params.RawArguments = json.RawMessage(text) }))
		if _, r := page(as(t.Context(), "alice"), t, srv, `{"`+strings.Repeat("x", 70_000)+`":1}`); r.Error == nil || !strings.Contains(r.Error.Message, "not found") {
			t.Errorf("%s: %.300s", text, r.raw)
		}
		has(t, l, "more than PageOptions.MaxArguments")
	}
}

// If the arguments are too long, outer middleware must not run: it may make new arguments, without
// those that a hook enforced.
func TestArgumentsThatAreTooLongNeverReachOuterMiddleware(t *testing.T) {
	l, ran := new(log), false
	srv := pagedSearch(t, l, nil, asHook(enforced("filter", `{"tenant":"own"}`)["both"]), server.WithToolHandlerMiddleware(asMiddleware(func(context.Context, *mcp.CallToolRequest) { ran = true })))
	if _, r := page(as(t.Context(), "alice"), t, srv, `{"more":"`+strings.Repeat("x", 70_000)+`"}`); r.Error == nil || ran {
		t.Errorf("the middleware ran: %t, %s", ran, r.raw)
	}
	has(t, l, "more than PageOptions.MaxArguments")
	if p, r := page(as(t.Context(), "alice"), t, srv, `{"id":7}`); len(p.Items) != 1 || !ran {
		t.Errorf("short arguments: %s", r.raw)
	}
}

// A paged tool checks the length of its arguments before it decodes or compares them.
func TestLongArgumentsOfAPagedToolCostWhatMCPGoTakesToReadThem(t *testing.T) {
	for _, options := range [][]server.ServerOption{nil, {server.WithInputSchemaValidation()}} {
		srv, alice := paged(t, new(log), nil, options...), as(t.Context(), "alice")
		srv.AddTool(mcp.NewToolWithRawSchema("plain", "", json.RawMessage(`{"type":"object"}`)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(""), nil
		})
		long := `{"id":[` + strings.Repeat("0,", 1<<20) + `0]}`
		allocated := func(tool string) (n uint64, size int) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := send(alice, t, srv, "tools/call", `"name":"`+tool+`","arguments":`+long)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc, len(r.raw)
		}
		plain, _ := allocated("plain")
		got, size := allocated("search")
		if got > plain*3/2 || size > 1000 {
			t.Errorf("with %d options: %d bytes allocated, %d for a plain tool; %d bytes answered", len(options), got, plain, size)
		}
	}
}

func TestAPagedToolStaysExactIfAHookChangesItsArguments(t *testing.T) {
	hooks := new(server.Hooks)
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, req *mcp.CallToolRequest) {
		req.GetArguments()["filter"] = map[string]any{"tenant": "own"}
		enforceRaw(req, "filter", `{"tenant":"own"}`)
	})
	srv, alice := paged(t, new(log), nil, server.WithHooks(hooks)), as(t.Context(), "alice")
	for _, arguments := range []string{`{"id":9007199254740993}`, `{"id":9007199254740992.5}`, `{"id":1.0000000000000000001}`} {
		if _, r := page(alice, t, srv, arguments); r.Error == nil && !r.Result.IsError {
			t.Errorf("%s: %s", arguments, r.raw)
		}
	}
	if p, r := page(alice, t, srv, `{"id":7}`); len(p.Items) == 0 || p.Items[0].ID != 7 || p.Items[0].Tenant != "own" {
		t.Errorf("got %s", r.raw)
	}
}

// TestACursorIsForTheUserWhoCalls puts another user into the context of a handler, for example a
// service account. The cursor must still be bound to the user who called.
func TestACursorIsForTheUserWhoCalls(t *testing.T) {
	asService := func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return next(as(ctx, "service"), req)
		}
	}
	for name, change := range map[string]func(*server.MCPServer) (tool string){
		"inner middleware": func(srv *server.MCPServer) string { srv.Use(asService); return "search" },
		"another tool": func(srv *server.MCPServer) string {
			srv.AddTool(mcp.NewTool("report"), asService(srv.GetTool("search").Handler))
			return "report"
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := paged(t, new(log), nil)
			tool := change(srv)
			call := func(user, arguments string) reply {
				return send(as(t.Context(), user), t, srv, "tools/call", `"name":`+quote(tool)+`,"arguments":`+arguments)
			}
			var p pageReply
			r := call("alice", `{}`)
			if err := json.Unmarshal([]byte(r.text()), &p); err != nil {
				t.Fatal(err)
			}
			next := `{"cursor":` + quote(p.NextCursor) + `}`
			if r := call("bob", next); r.Error == nil || r.Error.Message != "Invalid cursor" {
				t.Errorf("bob got %s", r.raw)
			}
			if r := call("alice", next); r.Error != nil || r.Result.IsError {
				t.Errorf("alice got %s", r.raw)
			}
		})
	}
}

// TestACursorIsNotBoundToNobodyInSilence adds middleware after Protect. The middleware puts the
// user into the context, but too late: a cursor would be bound to no user. So the call must fail,
// and the log must say why.
func TestACursorIsNotBoundToNobodyInSilence(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, AllowAnonymous: true, Logger: l.logger()})
	mcpgo.AddPagedTool(p, mcp.NewTool("search"), func(_ context.Context, _ mcp.CallToolRequest, _ search, after *int) ([]row, *int, error) {
		return []row{{N: 1}}, new(int), nil
	}, nil)
	srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return next(as(ctx, "alice"), req)
		}
	})
	if _, r := page(t.Context(), t, srv, `{}`); r.Error == nil {
		t.Errorf("got %s", r.raw)
	}
	has(t, l, "middleware that was added after Protect put the user into the context")
}
