package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/mcpgo"
)

// naive is a handler that trusts the types of its answers, and panics if one is wrong.
func naive(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return question().Sample("sample", mcp.CreateMessageParams{MaxTokens: 1}).Roots("roots").ToolResult(), nil
	}
	var got []string
	if a := server.ElicitationResponse(req.Params.InputResponses, "ok"); a != nil && a.Action == mcp.ElicitationResponseActionAccept && a.Content != nil {
		for name, value := range a.Content.(map[string]any) {
			if value == nil {
				panic("a null")
			}
			got = append(got, name)
		}
	}
	if a := server.SamplingResponse(req.Params.InputResponses, "sample"); a != nil {
		contents, many := a.Content.([]any)
		if !many {
			contents = []any{a.Content}
		}
		for _, content := range contents {
			got = append(got, content.(map[string]any)["type"].(string))
		}
	}
	if a := server.RootsResponse(req.Params.InputResponses, "roots"); a != nil {
		for _, root := range a.Roots {
			got = append(got, root.URI[:1])
		}
	}
	return mcp.NewToolResultText(strings.Join(got, " ")), nil
}

// FuzzAnswers uses the function naive as a handler, and sends fuzzed answers to it. The middleware
// must stop every answer that would make the handler panic.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"ok":{"action":"accept","content":{"a":1}}}`, `{"ok":{"action":"accept","content":null}}`, `{"sample":{"role":"user","model":"m","content":{"type":"text","text":"x"}}}`,
		`{"sample":{"content":[{"type":"text"}]}}`, `{"roots":{"roots":[{"uri":"file:///"}]}}`, `{"roots":{"roots":[null]}}`, `{"ok":{"Action":"accept","content":[1]}}`, `null`, `[]`,
		`{"ok":{"action":"decline","action":"accept"}}`, `{"roots":{"roots":[{"uri":"file:///","URI":"x"}]}}`, `{"ok":{"action":"accept","content":{"\ud800":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	mcpgo.Protect(srv, boundary(f, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger(), Unsolicited: []string{"unasked"}})
	srv.AddTool(mcp.NewTool("naive"), naive)
	srv.AddTool(mcp.NewTool("unasked"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		req.Params.RequestState = "none"
		return naive(ctx, req)
	})
	state := send(f.Context(), f, srv, "tools/call", `"name":"naive"`).Result.RequestState
	f.Fuzz(func(t *testing.T, answers []byte) {
		if !json.Valid(answers) {
			t.Skip("not JSON: mcp-go refuses it")
		}
		for _, params := range []string{`"name":"naive","requestState":` + quote(state), `"name":"unasked"`} {
			message(t.Context(), t, srv, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,%s,"inputResponses":%s}}`, meta, params, answers))
		}
		if strings.Contains(l.String(), "a handler panicked") {
			t.Fatalf("an answer reached the handler that made it panic: %s", answers)
		}
	})
}

// FuzzPagedArguments sends fuzzed arguments to a paged tool. The cursor and the same arguments
// must open the next page, and the handler must get the same values as for the first page.
func FuzzPagedArguments(f *testing.F) {
	for _, seed := range []string{`{}`, `{"filter":{"tenant":"a"},"id":7}`, `{"id":1e3,"limit":1}`, `{"Filter":{}}`, `{"id":9007199254740993}`, `null`, `{"cursor":""}`} {
		f.Add([]byte(seed))
	}
	srv := server.NewMCPServer("test", "1")
	p := mcpgo.Protect(srv, boundary(f, new(log), nil), &mcpgo.Options{AllowAnonymous: true, Logger: new(log).logger()})
	var got []string
	mcpgo.AddPagedTool(p, mcp.NewTool("search"), func(_ context.Context, _ mcp.CallToolRequest, in search, after *int) ([]int, *int, error) {
		got = append(got, jsonText(in))
		next := 1
		return nil, &next, nil
	}, nil)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		var members map[string]json.RawMessage
		if json.Unmarshal(arguments, &members) != nil {
			t.Skip("not an object")
		}
		got = nil
		first := message(t.Context(), t, srv, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{%s,"name":"search","arguments":%s}}`, meta, arguments))
		var page struct{ NextCursor string }
		if first.Error != nil || first.Result.IsError || json.Unmarshal([]byte(first.text()), &page) != nil {
			return
		}
		if members == nil {
			members = make(map[string]json.RawMessage)
		}
		members["cursor"] = json.RawMessage(quote(page.NextCursor))
		second := send(t.Context(), t, srv, "tools/call", `"name":"search","arguments":`+jsonText(members))
		if second.Error != nil || second.Result.IsError || len(got) != 2 || got[0] != got[1] {
			t.Fatalf("%s: the second page: %s, the handler got %q", arguments, second.raw, got)
		}
	})
}
