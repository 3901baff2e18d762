package mcpgo_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

var lists = []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list"}

// listed returns a server with five tools, prompts, resources, templates and tasks each. A page
// of a list has two of them.
func listed(t testing.TB, l *log, change func(*tripseal.Config)) *server.MCPServer {
	t.Helper()
	srv := server.NewMCPServer("test", "1", server.WithPaginationLimit(2), server.WithTaskCapabilities(true, true, true))
	mcpgo.Protect(srv, boundary(t, l, change), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	for i := range 5 {
		name := fmt.Sprintf("item%d", i)
		srv.AddTool(mcp.NewTool(name, mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(name), nil
		})
		srv.AddPrompt(mcp.NewPrompt(name), nil)
		srv.AddResource(mcp.NewResource("test://"+name, name), nil)
		srv.AddResourceTemplate(mcp.NewResourceTemplate("test://"+name+"/{x}", name), nil)
	}
	for range 5 {
		send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"item0","task":{}`)
	}
	return srv
}

func TestCursorsOfListsAreSealed(t *testing.T) {
	l := new(log)
	srv, alice := listed(t, l, nil), as(t.Context(), "alice")
	for _, method := range lists {
		t.Run(method, func(t *testing.T) {
			items, cursor := 0, ""
			for pages := 1; ; pages++ {
				params := ""
				if cursor != "" {
					params = `"cursor":` + quote(cursor)
				}
				r := send(alice, t, srv, method, params)
				if r.Error != nil {
					t.Fatalf("got %s", r.raw)
				}
				items += strings.Count(r.raw, `"name":"item`) + strings.Count(r.raw, `"taskId"`)
				if cursor = r.Result.NextCursor; cursor == "" {
					if pages != 3 || items != 5 {
						t.Errorf("%d items on %d pages", items, pages)
					}
					return
				}
				if !strings.HasPrefix(cursor, "mc1.") {
					t.Fatalf("not sealed: %s", cursor)
				}
			}
		})
	}
}

func TestEveryOtherCursorOfAListIsRefusedAlike(t *testing.T) {
	l := new(log)
	srv, alice := listed(t, l, nil), as(t.Context(), "alice")
	first := make(map[string]string)
	for _, method := range lists {
		first[method] = send(alice, t, srv, method, "").Result.NextCursor
	}
	elsewhere := send(alice, t, listed(t, l, nil), "tools/list", "").Result.NextCursor
	cursor := func(text string) string { return `"cursor":` + quote(text) }
	const want = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"illegal base64 data at input byte 0"}}`
	for i, method := range lists {
		other := lists[(i+1)%len(lists)]
		for name, r := range map[string]reply{
			"forged":          send(alice, t, srv, method, cursor("aXRlbTE=")),
			"not sealed":      send(alice, t, srv, method, cursor("!")),
			"cut":             send(alice, t, srv, method, cursor(first[method][:20])),
			"of another list": send(alice, t, srv, method, cursor(first[other])),
			"another service": send(alice, t, srv, method, cursor(elsewhere)),
			"lent":            send(as(t.Context(), "bob"), t, srv, method, cursor(first[method])),
			"unknown user":    send(as(t.Context(), "mallory"), t, srv, method, cursor(first[method])),
			"nobody":          send(t.Context(), t, srv, method, cursor(first[method])),
			"a state":         send(alice, t, srv, method, cursor(token(alice, t, protected(t, l)))),
		} {
			if r.raw != want {
				t.Errorf("%s, %s: got %s", method, name, r.raw)
			}
		}
	}
}

func TestAListWhoseCursorCannotBeSealedIsNotTakenForComplete(t *testing.T) {
	l := new(log)
	srv := listed(t, l, nil)
	r := send(t.Context(), t, srv, "tools/list", "") // the caller has no name, which the options do not allow
	if r.Result.NextCursor != "unavailable" {
		t.Fatalf("got %s", r.raw)
	}
	if r = send(t.Context(), t, srv, "tools/list", `"cursor":"unavailable"`); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("got %s", r.raw)
	}
}

func TestPlainListsStayPlainAndSaySo(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1", server.WithPaginationLimit(1))
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, PlainLists: true, Logger: l.logger()})
	addHandlers(srv)
	if r := send(t.Context(), t, srv, "tools/list", ""); r.Result.NextCursor != "YXNr" {
		t.Errorf("got %s", r.raw)
	}
	has(t, l, "Options.PlainLists")
}

// TestAListThatFailsIsForgotten uses a tool filter that panics after our hook has opened the cursor.
// The request, which may be long, must not stay in memory.
func TestAListThatFailsIsForgotten(t *testing.T) {
	fail := false
	srv := protected(t, new(log), server.WithPaginationLimit(1), server.WithToolFilter(func(_ context.Context, tools []mcp.Tool) []mcp.Tool {
		if fail {
			panic("over")
		}
		return tools
	}))
	var request weak.Pointer[mcp.ListToolsRequest]
	srv.GetHooks().AddBeforeListTools(func(_ context.Context, _ any, r *mcp.ListToolsRequest) { request = weak.Make(r) })
	alice := as(t.Context(), "alice")
	first := send(alice, t, srv, "tools/list", "")
	if fail = true; panicOf(func() { send(alice, t, srv, "tools/list", `"cursor":`+quote(first.Result.NextCursor)) }) != "over" {
		t.Fatal("the filter did not panic")
	}
	isForgotten(t, "the request", request)
	runtime.KeepAlive(srv)
}
