package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk"
)

type listArgs struct {
	Prefix string `json:"prefix"`
	Limit  int    `json:"limit,omitempty"`
}

type row struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

type key struct {
	ID int `json:"id"`
}

// listRows returns 25 rows in pages of ten.
func listRows(_ context.Context, _ *mcp.CallToolRequest, in listArgs, after *key) (rows []row, next *key, err error) {
	start := 0
	if after != nil {
		start = after.ID + 1
	}
	if in.Prefix == "none" {
		return nil, nil, nil
	}
	if in.Prefix == "fail" {
		return nil, nil, errors.New("the table is away")
	}
	for id := start; id < 25 && len(rows) < 10; id++ {
		rows = append(rows, row{id, fmt.Sprint(in.Prefix, id)})
	}
	if len(rows) == 10 && rows[9].ID < 24 {
		next = &key{rows[9].ID}
	}
	return rows, next, nil
}

func pagedServer(t *testing.T, b *book, options *gosdk.Options, pages *gosdk.PageOptions) *mcp.Server {
	t.Helper()
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, b, nil), options)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows", Description: "Lists rows."}, listRows, pages)
	return server
}

const invalidParams = `{"code":-32602,"message":"Invalid params"}`

// taker is a client of a paged tool. It keeps the arguments that the tool's handler got last, and
// counts the calls of the handler.
type taker[In any] struct {
	session *mcp.ClientSession
	calls   int
	got     In
}

// newTaker registers a paged tool without a last page, and returns a taker for it.
func newTaker[In any](t *testing.T, schema any, pages *gosdk.PageOptions) *taker[In] {
	t.Helper()
	return takerOf[In](t, gosdk.Protect(newServer(), boundary(t, &book{}, nil), nil), schema, pages)
}

func takerOf[In any](t *testing.T, p *gosdk.Server, schema any, pages *gosdk.PageOptions) *taker[In] {
	t.Helper()
	taken := new(taker[In])
	handler := func(_ context.Context, _ *mcp.CallToolRequest, in In, _ *key) ([]row, *key, error) {
		taken.got = in
		taken.calls++
		return nil, &key{1}, nil
	}
	gosdk.AddPagedTool(p, &mcp.Tool{Name: "t", InputSchema: schema}, handler, pages)
	taken.session = connect(t, p.Server(), nil, revision2026)
	return taken
}

// call calls the tool, and returns the cursor of the next page. It also returns an error if the
// result of the tool is an error. The handler must not have run then.
func (k *taker[In]) call(t *testing.T, arguments string) (string, error) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "t"}
	if arguments != "" {
		params.Arguments = json.RawMessage(arguments)
	}
	before := k.calls
	result, err := callTool(t, k.session, params)
	if err == nil && result.IsError {
		err = errors.New(text(result))
	}
	if err != nil {
		if k.calls != before {
			t.Errorf("%s: the handler ran, then: %v", arguments, err)
		}
		return "", err
	}
	var page rowsPage
	if err := json.Unmarshal([]byte(text(result)), &page); err != nil {
		t.Fatal(err)
	}
	return page.Next, nil
}

func (k *taker[In]) mustCall(t *testing.T, arguments string) string {
	t.Helper()
	next, err := k.call(t, arguments)
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	return next
}

// properties returns the schema of an object with the given properties. The schema allows other
// properties too.
func properties(text string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + text + `}}`)
}

// withCursor adds a cursor to a JSON object of arguments.
func withCursor(cursor, arguments string) string {
	return strings.Replace(fmt.Sprintf(`{"cursor":%q,%s`, cursor, strings.TrimPrefix(arguments, "{")), ",}", "}", 1)
}

type rowsPage struct {
	Items []row  `json:"items"`
	Next  string `json:"nextCursor"`
}

func listPage(t *testing.T, session *mcp.ClientSession, arguments map[string]any) (page rowsPage, err error) {
	t.Helper()
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "list_rows", Arguments: arguments})
	if err != nil {
		return page, err
	}
	if result.IsError {
		return page, errors.New(text(result))
	}
	structured, _ := json.Marshal(result.StructuredContent)
	if err := json.Unmarshal(structured, &page); err != nil {
		t.Fatalf("%s: %v", structured, err)
	}
	if text(result) != string(structured) && !strings.Contains(text(result), `"items"`) {
		t.Errorf("the text is %s", text(result))
	}
	return page, nil
}

func TestAPagedToolIsWalked(t *testing.T) {
	server := pagedServer(t, &book{}, nil, nil)
	for _, revision := range []string{revision2026, revision2025} {
		session := connect(t, server, answering(), revision)
		arguments, ids := map[string]any{"prefix": "r", "cursor": nil}, []int{}
		for range 3 {
			page, err := listPage(t, session, arguments)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Items {
				ids = append(ids, r.ID)
			}
			arguments = map[string]any{"cursor": page.Next, "prefix": "r"}
		}
		if len(ids) != 25 || ids[24] != 24 || arguments["cursor"] != "" {
			t.Errorf("walked %v, then %q", ids, arguments["cursor"])
		}
	}
}

func TestACursorOfAPagedToolIsHeldToItsArgumentsAndUser(t *testing.T) {
	b := &book{}
	url := serve(t, pagedServer(t, b, nil, nil), byName)
	as := func(user string) *mcp.ClientSession { // a new session each time, because the SDK's client closes when a request is refused
		return dial(t, url, user, nil, revision2026)
	}
	first, err := listPage(t, as("alice"), map[string]any{"prefix": "r", "limit": 5})
	if err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]map[string]any{
		"other arguments": {"prefix": "s", "limit": 5, "cursor": first.Next},
		"fewer arguments": {"prefix": "r", "cursor": first.Next},
		"changed":         {"prefix": "r", "limit": 5, "cursor": first.Next + "A"},
		"made up":         {"prefix": "r", "limit": 5, "cursor": "eyJpZCI6MTB9"},
	} {
		if _, err := listPage(t, as("alice"), arguments); wireText(err) != invalidCursor {
			t.Errorf("%s: %s", name, wireText(err))
		}
	}
	good := map[string]any{"limit": 5, "prefix": "r", "cursor": first.Next}
	if _, err := listPage(t, as("bob"), good); wireText(err) != invalidCursor {
		t.Errorf("bob: %s", wireText(err))
	}
	if page, err := listPage(t, as("alice"), good); err != nil || page.Items[0].ID != 10 {
		t.Errorf("alice: %+v, %v", page, err)
	}
	if log := b.String(); strings.Contains(log, "alice") || strings.Contains(log, first.Next) {
		t.Errorf("the log: %s", log)
	}
}

func TestItemsAreNeverNullAndErrorsAreTheHandlers(t *testing.T) {
	session := connect(t, pagedServer(t, &book{}, nil, nil), nil, revision2026)
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "list_rows", Arguments: map[string]any{"prefix": "none"}})
	if err != nil || text(result) != `{"items":[]}` {
		t.Errorf("%s, %v", text(result), err)
	}
	if _, err := listPage(t, session, map[string]any{"prefix": "fail"}); err == nil || err.Error() != "the table is away" {
		t.Errorf("%v", err)
	}
	for name, arguments := range map[string]any{
		"no prefix":      map[string]any{},
		"a number":       map[string]any{"prefix": "r", "cursor": 7},
		"another case":   json.RawMessage(`{"prefix":"r","Prefix":"s"}`),
		"unknown":        map[string]any{"prefix": "r", "table": "x"},
		"one name twice": json.RawMessage(`{"prefix":"r","prefix":"s"}`),
	} {
		result, err := callTool(t, session, &mcp.CallToolParams{Name: "list_rows", Arguments: arguments})
		if err == nil && !result.IsError {
			t.Errorf("%s: %s", name, text(result))
		}
	}
}

func TestTheSchemasSayWhatAPagedToolTakesAndReturns(t *testing.T) {
	server := pagedServer(t, &book{}, nil, &gosdk.PageOptions{Cursor: "__cursor", NextCursor: "next_cursor", Items: "rows"})
	session := connect(t, server, nil, revision2026)
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	input, _ := json.Marshal(listed.Tools[0].InputSchema)
	output, _ := json.Marshal(listed.Tools[0].OutputSchema)
	for _, want := range []string{`"__cursor":{`, `"null"`, `"prefix"`, `"required":["prefix"]`} {
		if !strings.Contains(string(input), want) {
			t.Errorf("%s is not in %s", want, input)
		}
	}
	for _, want := range []string{`"rows":{`, `"next_cursor":{`, `"required":["rows"]`} {
		if !strings.Contains(string(output), want) {
			t.Errorf("%s is not in %s", want, output)
		}
	}
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "list_rows", Arguments: map[string]any{"prefix": "r"}})
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Rows []row
		Next string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(text(result)), &page); err != nil || len(page.Rows) != 10 || page.Next == "" {
		t.Fatalf("%s, %v", text(result), err)
	}
	result, err = callTool(t, session, &mcp.CallToolParams{Name: "list_rows", Arguments: map[string]any{"prefix": "r", "__cursor": page.Next}})
	if err != nil || !strings.Contains(text(result), `"id":10`) {
		t.Errorf("%s, %v", text(result), err)
	}
}

func TestAPagedToolThatCannotBeIsRefusedAtRegistration(t *testing.T) {
	protected := gosdk.Protect(newServer(), boundary(t, &book{}, nil), nil)
	type clash struct {
		Cursor string `json:"Cursor"`
	}
	handler := func(context.Context, *mcp.CallToolRequest, clash, *key) ([]row, *key, error) { return nil, nil, nil }
	for name, register := range map[string]func(){
		"clash":      func() { gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t"}, handler, nil) },
		"nil":        func() { gosdk.AddPagedTool(nil, &mcp.Tool{Name: "t"}, listRows, nil) },
		"no tool":    func() { gosdk.AddPagedTool(protected, nil, listRows, nil) },
		"no handler": func() { gosdk.AddPagedTool[listArgs, key, row](protected, &mcp.Tool{Name: "t"}, nil, nil) },
		"no keys": func() {
			format, err := compat.Ruby([]byte("0123456789abcdefghijklmnopqrstuv"))
			if err != nil {
				t.Fatal(err)
			}
			keyless := boundary(t, &book{}, func(c *tripseal.Config) {
				c.Keys, c.Format, c.Waive = nil, format, tripseal.ClaimQuestions|tripseal.ClaimFlow|tripseal.ClaimUser
			})
			gosdk.AddPagedTool(gosdk.Protect(newServer(), keyless, nil), &mcp.Tool{Name: "t"}, listRows, nil)
		},
	} {
		if said := panicOf(register); !strings.HasPrefix(said, "gosdk: the paged tool") {
			t.Errorf("%s: %q", name, said)
		}
	}
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t"}, handler, &gosdk.PageOptions{Cursor: "page"})
}

// RequireUser also applies to an issuer in Options.Cursors, although the issuer does not know
// the boundary's policy.
func TestOtherIssuersKeepToRequireUser(t *testing.T) {
	for user, want := range map[string]bool{"alice": true, "": false} {
		issuer, err := cursor.New(boundary(t, &book{}, nil), cursor.Options{})
		if err != nil {
			t.Fatal(err)
		}
		server := newServer()
		protected := gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.RequireUser = true }), &gosdk.Options{
			Cursors: issuer, AllowAnonymous: true,
			User: func(context.Context, *mcp.RequestExtra) (string, error) { return user, nil },
		})
		gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, listRows, nil)
		if _, err := listPage(t, connect(t, server, nil, revision2026), map[string]any{"prefix": ""}); (err == nil) != want {
			t.Errorf("%q: %v", user, err)
		}
	}
}

func TestAPositionThatIsTooLongIsTheAuthorsBug(t *testing.T) {
	b := &book{}
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, struct{}, *string) ([]row, *string, error) {
		long := strings.Repeat("hush", 100)
		return nil, &long, nil
	}, nil)
	_, err := callTool(t, connect(t, server, nil, revision2026), &mcp.CallToolParams{Name: "t"})
	if wireText(err) != internal || !strings.Contains(b.String(), "more than 256") || strings.Contains(b.String(), "hush") {
		t.Errorf("%s; the log: %s", wireText(err), b)
	}
}

func TestIntegersLeaveWithAllTheirDigits(t *testing.T) {
	const want = `{"items":[{"id":9007199254740993,"name":""}]}`
	protected := gosdk.Protect(newServer(), boundary(t, &book{}, nil), nil)
	type long struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	}
	handler := func(context.Context, *mcp.CallToolRequest, struct{}, *key) ([]long, *key, error) {
		return []long{{ID: 9007199254740993}}, nil, nil
	}
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t"}, handler, nil)
	var structured []byte
	protected.Server().AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if r, ok := result.(*mcp.CallToolResult); ok {
				structured, _ = json.Marshal(r.StructuredContent) // a client would round what it decodes
			}
			return result, err
		}
	})
	result, err := callTool(t, connect(t, protected.Server(), nil, revision2026), &mcp.CallToolParams{Name: "t"})
	if err != nil || text(result) != want || string(structured) != want {
		t.Errorf("returned %s and %s, %v", text(result), structured, err)
	}
}

func TestAnExpiredCursorSaysStartOver(t *testing.T) {
	cursors, err := cursor.New(boundary(t, &book{}, nil), cursor.Options{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	session := connect(t, pagedServer(t, &book{}, &gosdk.Options{Cursors: cursors}, nil), nil, revision2026)
	first, err := listPage(t, session, map[string]any{"prefix": "r"})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	if _, err := listPage(t, session, map[string]any{"prefix": "r", "cursor": first.Next}); wireText(err) != expiredCursor {
		t.Errorf("%s", wireText(err))
	}
	if _, err := listPage(t, session, map[string]any{"prefix": "s", "cursor": first.Next}); wireText(err) != invalidCursor {
		t.Errorf("with other arguments: %s", wireText(err))
	}
}
