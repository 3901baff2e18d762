// Package atd_test pages through the results of a tool with the cursors of the ATD runtime.
package atd_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat/atd"
	"github.com/tripseal/tripseal/gosdk"
)

type arguments struct {
	Prefix string `json:"prefix"`
}

// listRows returns one row per page.
func listRows(_ context.Context, _ *mcp.CallToolRequest, in arguments, after *int) ([]string, *int, error) {
	next := 1
	if after != nil {
		next = *after + 1
	}
	return []string{in.Prefix + strings.Repeat("i", next)}, &next, nil
}

func TestPagedToolsWorkWithATDCursors(t *testing.T) {
	issuer, err := atd.NewIssuer([]byte("0123456789abcdefghijklmnopqrstuv"), atd.Options{})
	if err != nil {
		t.Fatal(err)
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "rows.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "rows", Version: "1"}, nil)
	protected := gosdk.Protect(server, boundary, &gosdk.Options{Cursors: issuer.Cursors()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, listRows, nil)

	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), serverSide, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).Connect(t.Context(), clientSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	type page struct {
		Items      []string
		NextCursor string
	}
	list := func(arguments map[string]any) (p page, err error) {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_rows", Arguments: arguments})
		if err != nil {
			return p, err
		}
		return p, json.Unmarshal([]byte(result.Content[0].(*mcp.TextContent).Text), &p)
	}

	first, err := list(map[string]any{"prefix": "r"})
	if err != nil || strings.HasPrefix(first.NextCursor, "mc1.") {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := list(map[string]any{"prefix": "r", "cursor": first.NextCursor})
	if err != nil || len(second.Items) != 1 || second.Items[0] != "rii" {
		t.Errorf("%+v, %v", second, err)
	}
	if _, err := issuer.Open(atd.Request{Tool: "list_rows", Arguments: []byte(`{"prefix":"r"}`)}, first.NextCursor); err != nil {
		t.Errorf("the issuer itself: %v", err)
	}
	if _, err := list(map[string]any{"prefix": "s", "cursor": first.NextCursor}); err == nil || !strings.Contains(err.Error(), "Invalid cursor") {
		t.Errorf("other arguments: %v", err)
	}
}
