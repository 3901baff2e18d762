package gosdk_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/gosdk"
)

const (
	invalidCursor = `{"code":-32602,"message":"Invalid cursor","data":{"reason":"invalid_cursor"}}`
	expiredCursor = `{"code":-32602,"message":"Expired cursor","data":{"reason":"expired_cursor"}}`
)

// listServer returns a server with n tools, prompts, resources and templates each, in pages of
// 100. The pages have the given cache scope and ttlMs.
func listServer(n int, scope string, ttl int) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 100})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			cacheable := mcp.Cacheable{CacheScope: scope, TTLMs: ttl}
			switch r := result.(type) {
			case *mcp.ListToolsResult:
				r.Cacheable = cacheable
			case *mcp.ListPromptsResult:
				r.Cacheable = cacheable
			case *mcp.ListResourcesResult:
				r.Cacheable = cacheable
			case *mcp.ListResourceTemplatesResult:
				r.Cacheable = cacheable
			}
			return result, err
		}
	})
	for i := range n {
		name := fmt.Sprintf("n%04d", i)
		server.AddTool(&mcp.Tool{Name: name, InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
		server.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { return nil, nil })
		read := func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) { return nil, nil }
		long := "file:///" + strings.Repeat("x", 1000) + name
		server.AddResource(&mcp.Resource{Name: name, URI: long}, read)
		server.AddResourceTemplate(&mcp.ResourceTemplate{Name: name, URITemplate: long + "/{id}"}, read)
	}
	return server
}

func TestAListIsBoundToItsUserUnlessACacheServesIt(t *testing.T) {
	for _, c := range []struct {
		scope  string
		ttl    int // milliseconds
		shared bool
	}{{"private", 0, false}, {"private", 60_000, false}, {"public", 0, false}, {"", 0, false}, {"public", 60_000, true}, {"", 60_000, true}, {"PRIVATE", 0, false}, {"public", -5, false}} {
		server := listServer(250, c.scope, c.ttl)
		gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		url := serve(t, server, byName)
		alice, bob := dial(t, url, "alice", nil, revision2026), dial(t, url, "bob", nil, revision2026)
		first, err := alice.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		params := &mcp.ListToolsParams{Cursor: first.NextCursor}
		second, err := bob.ListTools(t.Context(), params)
		if !c.shared {
			if wireText(err) != invalidCursor {
				t.Errorf("%+v: bob goes on with alice's list: %s", c, wireText(err))
			}
		} else if err != nil || second.Tools[0].Name != "n0100" {
			// If a cache serves the page to a second user, the cursor on the page must work for
			// that user too.
			t.Errorf("%+v: bob goes on from a public page: %v", c, err)
		}
		if second, err := alice.ListTools(t.Context(), params); err != nil || second.Tools[0].Name != "n0100" {
			t.Errorf("alice goes on: %v", err)
		}
	}
}

// A boundary can seal list cursors only if it has the native format, as its own format or in
// AlsoOpen. Otherwise the log says that list cursors are not sealed.
func TestABoundaryWithoutKeysOfItsOwnSaysThatListsStayPlain(t *testing.T) {
	format, err := compat.Ruby([]byte("0123456789abcdefghijklmnopqrstuv"))
	if err != nil {
		t.Fatal(err)
	}
	b := &book{}
	foreign := func(also ...tripseal.Accepted) *tripseal.Boundary {
		return boundary(t, b, func(c *tripseal.Config) {
			c.Keys, c.Format, c.AlsoOpen, c.Waive = nil, format, also, tripseal.ClaimQuestions|tripseal.ClaimFlow|tripseal.ClaimUser
		})
	}
	server := listServer(150, "public", 0)
	gosdk.Protect(server, foreign(), &gosdk.Options{Logger: b.logger()})
	if page, err := connect(t, server, nil, revision2026).ListTools(t.Context(), nil); err != nil || page.NextCursor == "" || strings.HasPrefix(page.NextCursor, "mc1.") {
		t.Errorf("%v, %v", page, err)
	}
	if !strings.Contains(b.String(), "list cursors are not sealed") {
		t.Errorf("the log: %s", b)
	}
	server = listServer(150, "public", 0)
	gosdk.Protect(server, foreign(tripseal.Accepted{Format: tripseal.NativeFormat(tripseal.Ephemeral())}), nil)
	if page, err := connect(t, server, nil, revision2026).ListTools(t.Context(), nil); err != nil || !strings.HasPrefix(page.NextCursor, "mc1.") {
		t.Errorf("%v, %v", page, err)
	}
}

// A page may be cached for its ttlMs, at most for a year, and then a cursor must still live for an hour.
func TestAListCursorOutlivesThePagesCacheOfAtMostAYear(t *testing.T) {
	const day = 24 * 60 * 60 * 1000 // in milliseconds
	for _, ttl := range []int64{day, 365*day + 1, 18446744073710} {
		server := listServer(150, "public", int(min(ttl, math.MaxInt)))
		keys := tripseal.Ephemeral()
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.Keys = keys }), nil)
		page, err := connect(t, server, nil, revision2026).ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		codec := tripseal.RingCodec(keys, tripseal.PurposeCursor)
		payload, err := codec.Open(t.Context(), nil, strings.TrimPrefix(page.NextCursor, "mc1."))
		if err != nil {
			t.Fatal(err)
		}
		lifetime := time.Duration(0)
		for _, b := range payload[9:14] { // the lifetime, as docs/token.md describes it
			lifetime = lifetime<<8 | time.Duration(b)
		}
		if cached := time.Duration(min(ttl, math.MaxInt, 365*day)); (lifetime-cached)*time.Millisecond != time.Hour {
			t.Errorf("with a ttlMs of %d the cursor lives for %v", ttl, lifetime*time.Millisecond)
		}
	}
}

func TestAListDemandsAUserWhereOneIsRequired(t *testing.T) {
	for scope, want := range map[string]bool{"private": false, "public": true} {
		server := listServer(150, scope, 1000)
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.RequireUser = true }), nil)
		_, err := connect(t, server, nil, revision2026).ListTools(t.Context(), nil)
		if (err == nil) != want {
			t.Errorf("%s: %v", scope, err)
		}
	}
}
