package gosdk_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/gob"
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

// walkTools lists all tools page by page, and returns their names and the cursors.
func walkTools(t *testing.T, session *mcp.ClientSession) (names, cursors []string) {
	t.Helper()
	params := &mcp.ListToolsParams{}
	for {
		page, err := session.ListTools(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if page.NextCursor == "" {
			return names, cursors
		}
		cursors = append(cursors, page.NextCursor)
		params = &mcp.ListToolsParams{Cursor: page.NextCursor}
	}
}

// sdkCursor returns a cursor as the SDK makes it.
func sdkCursor(t *testing.T, uid string) string {
	t.Helper()
	type pageToken struct{ LastUID string }
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(pageToken{uid}); err != nil {
		t.Fatal(err)
	}
	return base64.URLEncoding.EncodeToString(buf.Bytes())
}

func TestAClientListsEverythingThroughSealedCursors(t *testing.T) {
	server := listServer(2500, "public", 0)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	for _, revision := range []string{revision2026, revision2025} {
		t.Run(revision, func(t *testing.T) {
			session := connect(t, server, nil, revision)
			names, cursors := walkTools(t, session)
			if len(names) != 2500 || len(cursors) != 24 || names[0] != "n0000" || names[2499] != "n2499" {
				t.Fatalf("%d tools with %d cursors", len(names), len(cursors))
			}
			seen := map[string]bool{}
			for _, c := range cursors {
				if !strings.HasPrefix(c, "mc1.") || seen[c] {
					t.Fatalf("a cursor: %s", c)
				}
				seen[c] = true
			}
			ctx, counts := t.Context(), map[string]int{}
			for _, err := range session.Prompts(ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				counts["prompts"]++
			}
			for _, err := range session.Resources(ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				counts["resources"]++
			}
			for _, err := range session.ResourceTemplates(ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				counts["templates"]++
			}
			if counts["prompts"] != 2500 || counts["resources"] != 2500 || counts["templates"] != 2500 {
				t.Errorf("listed %v", counts)
			}

			for name, c := range map[string]string{
				"changed":   cursors[0][:len(cursors[0])-1] + "A",
				"SDK's own": sdkCursor(t, "n0099"),
				"gob bomb":  base64.URLEncoding.EncodeToString([]byte("\xff\xff\xff\xff\xff")),
				"offset":    "100",
			} {
				if c == cursors[0] {
					c = cursors[0][:len(cursors[0])-1] + "B"
				}
				if _, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: c}); wire(err) != invalidCursor {
					t.Errorf("a cursor that was %s: %s", name, wire(err))
				}
			}
			// A cursor of one list does not work for another list.
			if _, err := session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursors[0]}); wire(err) != invalidCursor {
				t.Errorf("a tools cursor for prompts: %s", wire(err))
			}
		})
	}
}

func TestAListIsBoundToItsUserUnlessACacheServesIt(t *testing.T) {
	for _, c := range []struct {
		scope  string
		ttl    int // milliseconds
		shared bool
	}{{"private", 0, false}, {"private", 60_000, false}, {"public", 0, false}, {"", 0, false}, {"public", 60_000, true}, {"", 60_000, true}} {
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
			if wire(err) != invalidCursor {
				t.Errorf("%+v: bob goes on with alice's list: %s", c, wire(err))
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

func TestListsAreForOneServiceAndCanStayPlain(t *testing.T) {
	keys := tripseal.Ephemeral()
	lists := func(audience string, options *gosdk.Options) *mcp.ClientSession {
		server := listServer(150, "public", 0)
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.Keys, c.Audience = keys, audience }), options)
		return connect(t, server, nil, revision2026)
	}
	first, err := lists("a", nil).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.ListToolsParams{Cursor: first.NextCursor}
	if _, err := lists("a", nil).ListTools(t.Context(), params); err != nil {
		t.Errorf("a replica: %v", err)
	}
	if _, err := lists("b", nil).ListTools(t.Context(), params); wire(err) != invalidCursor {
		t.Errorf("another service: %s", wire(err))
	}
	plain := lists("a", &gosdk.Options{PlainLists: true})
	if first, err = plain.ListTools(t.Context(), nil); err != nil || strings.HasPrefix(first.NextCursor, "mc1.") {
		t.Errorf("a plain list has the cursor %q, %v", first.NextCursor, err)
	}
	if _, err := plain.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: first.NextCursor}); err != nil {
		t.Errorf("a plain list does not go on: %v", err)
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

func TestAListCursorOutlivesThePagesCache(t *testing.T) {
	// The page may be cached for a day, and a cursor lives for an hour. So this cursor must live
	// for 25 hours.
	server := listServer(150, "public", int((24 * time.Hour).Milliseconds()))
	keys := tripseal.Ephemeral()
	gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.Keys = keys }), nil)
	page, err := connect(t, server, nil, revision2026).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := tripseal.RingCodec(keys, tripseal.PurposeCursor).Open(t.Context(), nil, strings.TrimPrefix(page.NextCursor, "mc1."))
	if err != nil {
		t.Fatal(err)
	}
	lifetime := time.Duration(0)
	for _, b := range payload[9:14] { // the lifetime, as docs/token.md describes it
		lifetime = lifetime<<8 | time.Duration(b)
	}
	if lifetime*time.Millisecond != 25*time.Hour {
		t.Errorf("the cursor lives for %v", lifetime*time.Millisecond)
	}
}

func TestTTLsAndScopesThatNobodyExpects(t *testing.T) {
	for name, c := range map[string]struct {
		scope string
		ttl   int64
		bob   bool // true if bob can use alice's cursor
	}{
		"a year and more": {"public", 366 * 24 * 60 * 60 * 1000, true},
		"overflow":        {"public", 18446744073710, true},
		"negative":        {"public", -5, false},
		"unknown scope":   {"PRIVATE", 0, false},
	} {
		server := listServer(150, c.scope, int(min(c.ttl, math.MaxInt)))
		gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		url := serve(t, server, byName)
		first, err := dial(t, url, "alice", nil, revision2026).ListTools(t.Context(), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err = dial(t, url, "bob", nil, revision2026).ListTools(t.Context(), &mcp.ListToolsParams{Cursor: first.NextCursor})
		if (err == nil) != c.bob {
			t.Errorf("%s: bob goes on: %v", name, err)
		}
	}
}

// A list that is nil or of an unknown type is refused, because its cursor cannot be sealed.
func TestAListThatNobodyCanLookIntoDoesNotLeave(t *testing.T) {
	server := listServer(150, "public", 0)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			switch r := result.(type) {
			case *mcp.ListToolsResult:
				return struct{ *mcp.ListToolsResult }{r}, err
			case *mcp.ListPromptsResult:
				return (*mcp.ListPromptsResult)(nil), err
			}
			return result, err
		}
	})
	b := &book{}
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	session := connect(t, server, nil, revision2026)
	if _, err := session.ListTools(t.Context(), nil); wire(err) != internal {
		t.Errorf("a wrapped list: %s", wire(err))
	}
	if _, err := session.ListPrompts(t.Context(), nil); wire(err) != internal {
		t.Errorf("no list: %s", wire(err))
	}
	if !strings.Contains(b.String(), "unknown type") {
		t.Errorf("the log: %s", b)
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
