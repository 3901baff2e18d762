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

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/mcpgo"
)

type listing struct {
	Team  string `json:"team"`
	Limit int64  `json:"limit,omitempty"`
}

// list returns pages of one item. The item says what the handler got.
func list(_ context.Context, req mcp.CallToolRequest, in listing, after *int) ([]string, *int, error) {
	at := 1
	if after != nil {
		at = *after + 1
	}
	if in.Team == "broken" {
		return nil, nil, errors.New("out of order")
	}
	item := fmt.Sprintf("%s/%d/%d %s %v", in.Team, in.Limit, at, req.Params.RawArguments, req.Params.Arguments)
	if at == 3 {
		return []string{item}, nil, nil
	}
	return []string{item}, &at, nil
}

var unbound = &mcpgo.PageOptions{PageOptions: cursor.PageOptions{Unbound: []string{"limit"}}}

func withPages(r *rig) *rig {
	for _, name := range []string{"list", "list_too"} {
		mcpgo.AddPagedTool(r.srv, r.engine, mcp.NewTool(name, mcp.WithInputSchema[listing]()), list, unbound)
	}
	return r
}

func listCall(name, arguments string) string { return tool(name, `,"arguments":`+arguments) }

// page returns the items and the next cursor of an answer, and checks that both forms of it agree.
func page(t testing.TB, answer string) (items, next string) {
	t.Helper()
	r := result(t, answer)
	content, _ := r["content"].([]any)
	structured, err := json.Marshal(r["structuredContent"])
	if err != nil || len(content) != 1 || r["isError"] != nil {
		t.Fatalf("no page: %s", answer)
	}
	var text, other struct {
		Items      []string
		NextCursor string
	}
	json.Unmarshal([]byte(content[0].(map[string]any)["text"].(string)), &text)
	json.Unmarshal(structured, &other)
	if fmt.Sprint(text) != fmt.Sprint(other) || len(text.Items) == 0 {
		t.Fatalf("the forms of a page differ: %s", answer)
	}
	return strings.Join(text.Items, ","), text.NextCursor
}

func refusedCursor(t testing.TB, what, answer string) {
	t.Helper()
	if !strings.Contains(answer, `"error":{"code":-32602,"message":"Invalid cursor","data":{"reason":"invalid_cursor"}}`) {
		t.Errorf("%s: %s", what, answer)
	}
}

func TestAClientWalksThroughThePages(t *testing.T) {
	throughDoors(t, func(t *testing.T, r *rig, send caller) {
		withPages(r)
		_, first := page(t, send("alice", listCall("list", `{"team":"red"}`)))
		const others = `"team":"r\u0065d","limit":9007199254740993}`
		items, second := page(t, send("alice", listCall("list", `{"cursor":"`+first+`",`+others)))
		if want := `red/9007199254740993/2 {` + others + ` map[`; !strings.HasPrefix(items, want) {
			t.Errorf("the second page: %s", items)
		}
		items, third := page(t, send("alice", listCall("list", `{"team":"red","cursor":"`+second+`"}`)))
		if !strings.HasPrefix(items, "red/0/3 ") || third != "" || strings.Contains(items, "mc1.") ||
			!strings.HasPrefix(first, "mc1.") {
			t.Errorf("the last page: %s, %s", items, third)
		}
		for _, none := range []string{`{"team":"red"}`, `{"team":"red","cursor":null}`, `{"team":"red","cursor":""}`} {
			if items, _ := page(t, send("alice", listCall("list", none))); !strings.HasPrefix(items, "red/0/1 ") {
				t.Errorf("%s: %s", none, items)
			}
		}
	})
}

func TestACursorWorksForItsRequestAlone(t *testing.T) {
	keys := tripseal.Ephemeral()
	r := withPages(newRigWith(t, tripseal.Config{Keys: keys, Audience: "test"}))
	send := r.overHTTP()
	_, good := page(t, send("alice", listCall("list", `{"team":"red"}`)))
	with := func(team, cursor string) string { return `{"team":"` + team + `","cursor":"` + cursor + `"}` }
	refusedCursor(t, "other arguments", send("alice", listCall("list", with("blue", good))))
	refusedCursor(t, "more arguments", send("alice", listCall("list", `{"Team":"blue",`+with("red", good)[1:])))
	refusedCursor(t, "another user", send("bob", listCall("list", with("red", good))))
	refusedCursor(t, "another tool", send("alice", listCall("list_too", with("red", good))))
	refusedCursor(t, "a forgery", send("alice", listCall("list", with("red", "mc1.AAAA"))))
	refusedCursor(t, "the end changed", send("alice", listCall("list", with("red", good[:len(good)-4]+"AAAA"))))
	state, _ := result(t, send("alice", tool("ask", "")))["requestState"].(string)
	refusedCursor(t, "a state", send("alice", listCall("list", with("red", state))))
	other := withPages(newRigWith(t, tripseal.Config{Keys: keys, Audience: "another"})).overHTTP()
	refusedCursor(t, "another service", other("alice", listCall("list", with("red", good))))
	replica := withPages(newRigWith(t, tripseal.Config{Keys: keys, Audience: "test"})).overHTTP()
	for name, send := range map[string]caller{"the server": send, "a replica": replica} {
		if items, _ := page(t, send("alice", listCall("list", with("red", good)))); !strings.HasPrefix(items, "red/0/2 ") {
			t.Errorf("%s: %s", name, items)
		}
	}
	if text := r.log.String(); strings.Contains(text, good) || strings.Count(text, "cursor rejected") < 7 {
		t.Errorf("the log: %s", text)
	}
}

// TestArgumentsThatCouldBeReadTwoWaysAreRefused also shows which of the other wrong arguments the SDK answers.
func TestArgumentsThatCouldBeReadTwoWaysAreRefused(t *testing.T) {
	r := withPages(newRig(t))
	send := r.overHTTP()
	_, good := page(t, send("alice", listCall("list", `{"team":"red"}`)))
	for arguments, want := range map[string]string{
		`{"cursor":"` + good + `","cursor":""}`: `"code":-32602`, `{"cursor":7}`: `"code":-32602`,
		`{"cursor":{}}`:                `"code":-32602`,
		`{"team":"red","team":"blue"}`: `"code":-32602`, `["red"]`: `"code":-32602`,
		`{"team":"` + strings.Repeat("x", 64<<10) + `"}`: `"code":-32602`,
		`{"team":7}`:        `failed to bind arguments`,
		`{"team":"broken"}`: `out of order`,
	} {
		if got := send("alice", listCall("list", arguments)); !strings.Contains(got, want) || strings.Contains(got, "items") {
			t.Errorf("%.80s: %s", arguments, got)
		}
	}
}

// TestACursorIsBoundToWhatTheHandlerDecodes changes the arguments in middleware: a client must not use a cursor of what
// the middleware made of other arguments.
func TestACursorIsBoundToWhatTheHandlerDecodes(t *testing.T) {
	r := withPages(newRig(t))
	tenant := "a"
	r.srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			arguments := req.GetArguments()
			arguments["team"] = tenant
			req.Params.Arguments, req.Params.RawArguments = arguments, nil
			return next(ctx, req)
		}
	})
	send := r.overHTTP()
	items, good := page(t, send("alice", listCall("list", `{"team":"x"}`)))
	if !strings.HasPrefix(items, "a/0/1 ") {
		t.Error(items)
	}
	again := listCall("list", `{"team":"y","cursor":"`+good+`"}`)
	if items, _ := page(t, send("alice", again)); !strings.HasPrefix(items, "a/0/2 ") {
		t.Error(items)
	}
	tenant = "b"
	refusedCursor(t, "what became of another tenant's arguments", send("alice", again))
}

func TestAPagedToolNeedsADoor(t *testing.T) {
	r := withPages(newRig(t))
	_, good := page(t, r.overHTTP()("alice", listCall("list", `{"team":"red"}`)))
	for _, arguments := range []string{`{"team":"red"}`, `{"team":"red","cursor":"` + good + `"}`} {
		got := r.bare()("alice", listCall("list", arguments))
		if !strings.Contains(got, "-32603") || strings.Contains(got, "mc1.") {
			t.Error(got)
		}
	}
	if text := r.log.String(); strings.Count(text, "came through no door") != 2 {
		t.Errorf("the log: %s", text)
	}
}

// TestAToolMayServeThePagesOfAnother calls a paged tool in the process: what it refuses is the caller's to answer.
func TestAToolMayServeThePagesOfAnother(t *testing.T) {
	r := withPages(newRig(t))
	r.srv.AddTool(mcp.NewTool("outer"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		inner := func(arguments map[string]any) (*mcp.CallToolResult, error) {
			return r.srv.GetTool("list").Handler(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Arguments: arguments}})
		}
		if _, err := inner(map[string]any{"cursor": "old"}); err == nil {
			t.Error("a forged cursor was taken")
		}
		return inner(map[string]any{"team": "red"})
	})
	if items, _ := page(t, r.overHTTP()("alice", tool("outer", ""))); !strings.HasPrefix(items, "red/0/1 ") {
		t.Error(items)
	}
}

// schemas are schemas as authors write and generators make them.
var schemas = []string{
	`{"type":"object"}`, `{"type":"object","properties":{}}`, `{"type":"object","properties":null}`,
	`{"properties":{"team":{}}}`,
	`{"type":"object","properties":{"team":{"type":"string"}},"additionalProperties":false}`,
	`{"type":"object","properties":{"team":{"type":"string","default":"red"}},"required":["team"]}`,
	`{"type":"object","properties":{"team":{"type":["string","null"]},"limit":{"type":"integer","minimum":-9e18}}}`,
	`{"$defs":{"T":{"enum":["red","blue"],"title":"Team"}},"properties":{"team":{"$ref":"#/$defs/T"}},"type":"object"}`,
	`{"definitions":{"T":{"type":"string"}},"properties":{"team":{"allOf":[{"$ref":"#/definitions/T"}]}},"type":"object"}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"team":{"minLength":1}}}`,
	`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"team":{}},"required":["team"]}`,
	`{"type":"object","oneOf":[{"required":["team"]},{"required":["limit"]}],"properties":{"team":{},"limit":{}}}`,
	`{"type":"object","anyOf":[{"properties":{"team":{"type":"string"}}}]}`,
	`{"type":"object","allOf":[{"required":["team"]}]}`,
	`{"type":"object","properties":{"team":{"type":"string"}},"unevaluatedProperties":false}`,
	`{"type":"object","patternProperties":{"^t":{"type":"string"}}}`, `{"type":"object","propertyNames":{"maxLength":9}}`,
	`{"type":"object","properties":{"id":{},"ID":{},"team":{"const":"red"}}}`,
	`{"type":"object","additionalProperties":{"type":"string"}}`,
	`{"type":"object","if":{"required":["team"]},"then":{"properties":{"team":{"enum":["red"]}}}}`,
	`{"type":"object","dependentRequired":{"limit":["team"]},"properties":{"team":{"format":"uuid","x-order":1}}}`,
}

// TestToolsPageWhateverTheirSchema registers a tool with each schema, on a server that checks arguments against it.
func TestToolsPageWhateverTheirSchema(t *testing.T) {
	r := newRig(t, server.WithInputSchemaValidation(), server.WithOutputSchemaValidation())
	for i, schema := range schemas {
		add(r, mcp.NewToolWithRawSchema(fmt.Sprint("list", i), "", json.RawMessage(schema)), nil)
	}
	add(r, mcp.NewTool("described", mcp.WithString("team", mcp.Required()), mcp.WithNumber("limit")), unbound)
	add(r, mcp.NewTool("typed", mcp.WithInputSchema[listing](), mcp.WithOutputSchema[struct {
		Items []string `json:"items"`
		Next  string   `json:"nextCursor,omitempty"`
	}]()), unbound)
	send := r.overHTTP()
	listed := send("alice", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{`+meta+`}}`)
	tools, _ := result(t, listed)["tools"].([]any)
	paged := 0
	for _, l := range tools {
		tool := l.(map[string]any)
		properties, _ := tool["inputSchema"].(map[string]any)["properties"].(map[string]any)
		if properties["cursor"] == nil {
			continue
		}
		paged++
		call := func(arguments string) string { return listCall(tool["name"].(string), arguments) }
		_, next := page(t, send("alice", call(`{"team":"red"}`)))
		items, _ := page(t, send("alice", call(`{"team":"red","cursor":"`+next+`"}`)))
		if !strings.HasPrefix(items, "red/0/2 ") {
			t.Errorf("%v: %s", tool, items)
		}
	}
	if paged != len(schemas)+2 {
		t.Errorf("%d tools of %d are listed with a cursor: %s\n%s", paged, len(schemas)+2, listed, &r.log)
	}
}

func add(r *rig, tool mcp.Tool, options *mcpgo.PageOptions) {
	mcpgo.AddPagedTool(r.srv, r.engine, tool, list, options)
}

func TestAPagedToolThatCannotWorkIsNotRegistered(t *testing.T) {
	r := newRig(t)
	team := mcp.WithString("team")
	with := func(o cursor.PageOptions) func() {
		return func() { add(r, mcp.NewTool("t", team), &mcpgo.PageOptions{PageOptions: o}) }
	}
	for name, line := range map[string]func(){
		"the cursor's name":              func() { add(r, mcp.NewTool("t", mcp.WithString("cursor")), nil) },
		"the cursor's name in any case":  func() { add(r, mcp.NewTool("t", mcp.WithString("CurSor")), nil) },
		"a name of the author's":         with(cursor.PageOptions{Cursor: "Team"}),
		"unbound is no argument":         with(cursor.PageOptions{Unbound: []string{"Team"}}),
		"a schema that is no JSON":       func() { add(r, mcp.NewToolWithRawSchema("t", "", []byte(`{`)), nil) },
		"longer than the boundary takes": with(cursor.PageOptions{MaxArguments: 1 << 30}),
		"no engine":                      func() { mcpgo.AddPagedTool(r.srv, nil, mcp.NewTool("t"), list, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil || r.srv.GetTool("t") != nil {
					t.Errorf("%s: the tool was registered", name)
				}
			}()
			line()
		}()
	}
}

func TestAnIssuerOfTheAuthorsIsUsed(t *testing.T) {
	r := newRigWith(t, tripseal.Config{RequireUser: true})
	config := r.engine.Boundary().Config()
	config.RequireUser, config.Audience = false, "own"
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	own, err := cursor.New(boundary, cursor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	add(r, mcp.NewTool("own"), &mcpgo.PageOptions{Cursors: own})
	add(r, mcp.NewTool("native"), nil)
	send := r.overHTTP()
	_, next := page(t, send("alice", listCall("own", `{}`)))
	if items, _ := page(t, send("alice", listCall("own", `{"cursor":"`+next+`"}`))); !strings.HasPrefix(items, "/0/2 ") {
		t.Error(items)
	}
	request := tripseal.Request{
		Method: "tools/call", Target: "own", Principal: tripseal.User("alice"), Arguments: []byte("{}"),
	}
	if _, err := own.Open(t.Context(), request, next); err != nil {
		t.Errorf("the issuer itself: %v", err)
	}
}
