package gosdk_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk"
)

func TestACursorThatIsTwiceOrNoTextIsInvalidParams(t *testing.T) {
	taken := newTaker[map[string]any](t, object, nil)
	next := taken.mustCall(t, `{"a":1}`)
	for _, arguments := range []string{
		`{"a":1,"cursor":7}`, `{"a":1,"cursor":["x"]}`, `{"a":1,"cursor":{"x":"y"}}`, `{"a":1,"cursor":false}`,
		`{"cursor":1e400}`,
		`{"a":1,"cursor":"","cursor":""}`, `{"cursor":null,"a":1,"\u0063ursor":null}`,
		`{"cursor":7,"cursor":"` + next + `","a":1}`, `{"cursor":"` + next + `","a":1,"curs\u006fr":"` + next + `"}`,
	} {
		if _, err := taken.call(t, arguments); wireText(err) != invalidParams {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	taken.mustCall(t, `{"a":1,"cursor":"`+next+`"}`)
}

func TestACursorThatIsMissingNullOrEmptyIsTheFirstPage(t *testing.T) {
	server := newServer()
	var after *key
	gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, &book{}, nil), nil), &mcp.Tool{Name: "t"},
		func(_ context.Context, _ *mcp.CallToolRequest, _ map[string]any, a *key) ([]row, *key, error) {
			after = a
			return nil, &key{7}, nil
		}, nil)
	k := &taker[any]{session: connect(t, server, nil, revision2026)}
	for _, arguments := range []string{
		"", "null", "{}", ` { "cursor" : null } `, `{"cursor":""}`, `{"\u0063ursor":""}`,
	} {
		after = &key{1}
		next := k.mustCall(t, arguments)
		if after != nil {
			t.Errorf("%q: the position is %v", arguments, after)
		}
		for _, name := range []string{`cursor`, `curs\u006fr`, `\u0063\u0075\u0072\u0073\u006F\u0072`} {
			if k.mustCall(t, `{"`+name+`":"`+next+`"}`); after == nil || after.ID != 7 {
				t.Errorf("%s: the position is %v", name, after)
			}
		}
	}
}

// A name that differs from the cursor's in case is an argument like any other.
func TestADecoyOfTheCursorIsDataAndIsBound(t *testing.T) {
	taken := newTaker[map[string]any](t, object, nil)
	for _, decoy := range []string{"Cursor", "CURSOR", "curſor", "cursor ", "cursor\u0000", "next_cursor"} {
		written, _ := json.Marshal(decoy)
		name := string(written)
		next := taken.mustCall(t, `{`+name+`:"x"}`)
		if taken.got[decoy] != "x" || len(taken.got) != 1 {
			t.Errorf("%q: the handler got %v", decoy, taken.got)
		}
		taken.mustCall(t, `{`+name+`:"x","cursor":"`+next+`"}`)
		taken.mustCall(t, `{`+name+`:"`+next+`"}`) // a first page
		for _, other := range []string{`{`, `{` + name + `:"y",`, `{` + name + `:"` + next + `",`, `{` + name + `:null,`} {
			other += `"cursor":"` + next + `"}`
			if _, err := taken.call(t, other); wireText(err) != invalidCursor {
				t.Errorf("%s: %v", other, err)
			}
		}
	}
	closed := newTaker[listArgs](t, nil, nil)
	_, err := closed.call(t, `{"prefix":"r","Cursor":"x"}`)
	if err == nil || wireText(err) == invalidParams || !strings.Contains(err.Error(), "Cursor") {
		t.Errorf("the SDK's own error: %v", err)
	}
}

// selfRead keeps the JSON that it is read from.
type selfRead struct{ Text string }

func (s *selfRead) UnmarshalJSON(text []byte) error {
	s.Text = string(text)
	return nil
}

func TestNoHandlerOrInnerMiddlewareSeesTheCursor(t *testing.T) {
	seen := ""
	sees := func(what any) {
		text, _ := json.Marshal(what)
		seen += string(text)
	}
	server := newServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				sees(call.Params)
			}
			return next(ctx, method, req)
		}
	})
	p := gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	tool := func(name string) *mcp.Tool { return &mcp.Tool{Name: name, InputSchema: object} }
	gosdk.AddPagedTool(p, tool("map"), seeing[map[string]any](sees), nil)
	gosdk.AddPagedTool(p, tool("any"), seeing[any](sees), nil)
	gosdk.AddPagedTool(p, tool("raw"), seeing[json.RawMessage](sees), nil)
	gosdk.AddPagedTool(p, tool("pointer"), seeing[*map[string]json.RawMessage](sees), nil)
	gosdk.AddPagedTool(p, tool("own"), seeing[selfRead](sees), nil)
	for _, revision := range []string{revision2026, revision2025} {
		session := connect(t, server, answering(), revision)
		for _, name := range []string{"map", "any", "raw", "pointer", "own"} {
			arguments := map[string]any{"a": "here"}
			for range 3 {
				seen = ""
				result, err := callTool(t, session, &mcp.CallToolParams{Name: name, Arguments: arguments})
				if err != nil || result.IsError {
					t.Fatalf("%s: %v, %s", name, err, text(result))
				}
				if strings.Count(seen, "here") < 2 || strings.Contains(seen, "cursor") {
					t.Errorf("%s: %s", name, seen)
				}
				arguments["cursor"] = result.StructuredContent.(map[string]any)["nextCursor"]
			}
		}
	}
}

func seeing[In any](sees func(any)) gosdk.PageHandler[In, key, row] {
	return func(_ context.Context, req *mcp.CallToolRequest, in In, _ *key) ([]row, *key, error) {
		sees(in)
		sees(req.Params.Arguments)
		return nil, &key{1}, nil
	}
}

func TestACursorIsBoundToTheValueNotToItsSpelling(t *testing.T) {
	taken := newTaker[map[string]any](t, properties(`"limit":{"type":"integer","default":10},"id":{}`), nil)
	next := taken.mustCall(t, `{"id":{"a":9007199254740993,"b":[1.5]}}`)
	with := func(rest string) string { return `{"cursor":"` + next + `",` + rest + `}` }
	for _, same := range []string{
		`"id":{"a":9007199254740993,"b":[1.5]}`, `"id":{"b":[1.5],"a":9007199254740993}`,
		` "id" : {"b":[15e-1],"\u0061":9007199254740993.0}`, `"\u0069d":{"a":9007199254740993,"b":[1.50]}`,
	} {
		if _, err := taken.call(t, with(same)); err != nil {
			t.Errorf("%s: %v", same, err)
		}
	}
	for _, other := range []string{
		`"id":{"a":9007199254740992,"b":[1.5]}`, `"id":{"a":9007199254740993,"b":[1.5]},"limit":11`,
		`"id":{"a":"9007199254740993","b":[1.5]}`,
		`"id":{"a":9007199254740993,"b":[1.5]},"limit":10`, `"id":{"a":9007199254740993,"b":[1.5],"c":null}`,
		`"id":{"A":9007199254740993,"b":[1.5]}`, `"id":null`, `"limit":10`, `"ID":{"a":9007199254740993,"b":[1.5]}`,
		`"id":{"a":9007199254740993,"b":[1.5]},"id":{"a":9007199254740993,"b":[1.5]}`,
	} {
		if _, err := taken.call(t, with(other)); wireText(err) != invalidCursor {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// The SDK checks an argument against the schema and decodes it with the same case-sensitive names.
func TestANameInAnotherCaseNeverReachesAField(t *testing.T) {
	type filter struct {
		Tenant string `json:"tenant"`
	}
	taken := newTaker[struct {
		filter
		Filter filter `json:"filter"`
	}](t, properties(`"tenant":{"enum":["mine"]},"filter":{"properties":{"tenant":{"enum":["mine"]}}}`), nil)
	for _, arguments := range []string{
		`{"Tenant":"theirs"}`, `{"filter":{"TENANT":"theirs"}}`, `{"Filter":{"tenant":"theirs"}}`,
	} {
		if taken.mustCall(t, arguments); taken.got.Tenant != "" || taken.got.Filter.Tenant != "" {
			t.Errorf("%s: the handler got %+v", arguments, taken.got)
		}
	}
}

func TestArgumentsThatAreNoObjectAreInvalidParams(t *testing.T) {
	taken := newTaker[map[string]any](t, object, nil)
	for _, arguments := range []string{
		`[]`, `"x"`, `1`, `true`, `[{"a":"x"}]`,
		`{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`,
	} {
		if _, err := taken.call(t, arguments); wireText(err) != invalidParams {
			t.Errorf("%.60s: %v", arguments, err)
		}
	}
	taken.mustCall(t, `{"a":`+strings.Repeat("[", 127)+strings.Repeat("]", 127)+`}`)
}

// Arguments that two parsers could read differently cannot be bound, so they get no cursor.
func TestArgumentsWithANameTwiceGetNoCursor(t *testing.T) {
	taken := newTaker[map[string]any](t, object, nil)
	for _, arguments := range []string{`{"a":1,"a":2}`, `{"a":[{"b":1,"\u0062":2}]}`, `{"a\ud800":1,"a\udc00":2}`} {
		_, err := callTool(t, taken.session, &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(arguments)})
		if wireText(err) != invalidParams {
			t.Errorf("%s: %v", arguments, err)
		}
	}
}

func TestASchemaViolationReadsAsTheSDKs(t *testing.T) {
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged"}, listRows, nil)
	typed := func(context.Context, *mcp.CallToolRequest, listArgs) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "typed"}, typed)
	session := connect(t, server, nil, revision2026)
	for _, arguments := range []string{
		`{}`, `{"prefix":1}`, `{"prefix":"r","limit":"x"}`, `{"prefix":"r","table":"x"}`, `{"prefix":null}`,
		`{"prefix":"r","limit":1.5}`,
	} {
		var said []string
		for name, sent := range map[string]string{"paged": withCursor("", arguments), "typed": arguments} {
			result, err := callTool(t, session, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(sent)})
			if err != nil || !result.IsError {
				t.Fatalf("%s: %s: %v", name, arguments, err)
			}
			said = append(said, text(result))
		}
		if said[0] != said[1] || said[0] == "" {
			t.Errorf("%s: %q, not %q", arguments, said[0], said[1])
		}
	}
}

func TestInvalidParamsOfAPagedToolAreLogged(t *testing.T) {
	b := &book{}
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), AllowAnonymous: true})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, listRows, nil)
	for arguments, cause := range map[string]string{
		`{"prefix":"hush","cursor":7}`:                "the cursor is not a text",
		`{"prefix":"hush","cursor":"a","cursor":"b"}`: "the cursor is there twice",
		`["hush"]`: "not one JSON object",
		`{"prefix":"` + strings.Repeat("hush", 20<<10) + `"}`: "PageOptions.MaxArguments",
	} {
		before := b.String()
		call := &mcp.CallToolParams{Name: "list_rows", Arguments: json.RawMessage(arguments)}
		_, err := callTool(t, connect(t, server, nil, revision2026), call)
		log := strings.TrimPrefix(b.String(), before)
		said := strings.Count(log, "level=WARN") == 1 && strings.Contains(log, "tool=list_rows") && strings.Contains(log, cause)
		if wireText(err) != invalidParams || !said || strings.Contains(log, "hush") {
			t.Errorf("%.40s: %v; the log: %s", arguments, err, log)
		}
	}
}

// With this schema, each level of the arguments doubles the work, so that the check would take more
// than a day.
func TestArgumentsBeyondTheLimitNeverReachTheSchema(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"f":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[
		{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["a"]},
		{"type":"object","properties":{"n":{"$ref":"#/$defs/n"}},"required":["b"]}]}}}`)
	taken := newTaker[map[string]any](t, schema, &gosdk.PageOptions{MaxArguments: 32})
	next := taken.mustCall(t, `{}`)
	const levels = 50
	deep := `"f":` + strings.Repeat(`{"n":`, levels) + "1" + strings.Repeat("}", levels)
	for _, arguments := range []string{
		`{` + deep + `}`, `{` + deep + `,"cursor":"` + next + `"}`, `{"cursor":"` + next + `",` + deep + `}`,
		`{"cursor":"x",` + deep + `}`, `{"cursor":7,` + deep + `}`, `{` + deep + `,"` + strings.Repeat("x", 200<<10) + `":1}`,
	} {
		if _, err := taken.call(t, arguments); wireText(err) != invalidParams {
			t.Errorf("%.40s: %v", arguments, err)
		}
	}
}

func TestTheLimitIsOfTheArgumentsWithoutTheCursorWhereverItIs(t *testing.T) {
	const most = 64
	taken := newTaker[map[string]any](t, object, &gosdk.PageOptions{MaxArguments: most})
	for length, refused := range map[int]bool{most: false, most + 1: true} {
		a := `"a":"` + strings.Repeat("x", length-len(`{"a":"","b":1}`)) + `"`
		next, err := taken.call(t, `{`+a+`,"b":1}`)
		if (wireText(err) == invalidParams) != refused {
			t.Errorf("%d bytes: %v", length, err)
		}
		for _, arguments := range []string{
			`{"cursor":"` + next + `",` + a + `,"b":1}`, `{` + a + `,"cursor":"` + next + `","b":1}`,
			`{` + a + `,"b":1,"cursor":"` + next + `"}`, `{` + a + `,"b":1,"\u0063ursor":"` + next + `"}`,
			`{"cursor":null,` + a + `,"b":1}`,
		} {
			if _, err := taken.call(t, arguments); (wireText(err) == invalidParams) != refused || (err != nil) != refused {
				t.Errorf("%s: %v", arguments, err)
			}
		}
	}
}

func TestAnUnboundArgumentCountsOnEveryPage(t *testing.T) {
	options := &gosdk.PageOptions{MaxArguments: 64, Unbound: []string{"note"}}
	taken := newTaker[map[string]any](t, properties(`"note":{"type":"string"}`), options)
	next := taken.mustCall(t, `{}`)
	note := func(length int) string { return withCursor(next, `{"note":"`+strings.Repeat("x", length)+`"}`) }
	if _, err := taken.call(t, note(100)); wireText(err) != invalidParams {
		t.Errorf("the handler got %v; %v", taken.got, err)
	}
	taken.mustCall(t, note(64-len(`{"note":""}`)))
}

func TestArgumentsOfAPagedToolAreLimitedByDefault(t *testing.T) {
	limit := func(policy int, options *gosdk.PageOptions, length int) error {
		config := func(c *tripseal.Config) { c.MaxArguments = policy }
		taken := takerOf[map[string]any](t, gosdk.Protect(newServer(), boundary(t, &book{}, config), nil), object, options)
		_, err := taken.call(t, `{"a":"`+strings.Repeat("x", length-len(`{"a":""}`))+`"}`)
		return err
	}
	const most = 64 << 10
	for _, c := range []struct {
		policy, option, length int
		refused                bool
	}{
		{0, 0, most, false}, {0, 0, most + 1, true}, {0, 100, 100, false}, {0, 100, 101, true},
		{0, 1 << 20, 1 << 20, false}, {0, 1 << 20, 1<<20 + 1, true}, {1000, 0, 1000, false}, {1000, 0, 1001, true},
	} {
		err := limit(c.policy, &gosdk.PageOptions{MaxArguments: c.option}, c.length)
		if (wireText(err) == invalidParams) != c.refused || (err == nil) == c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, option := range []int{-1, 4<<20 + 1} {
		said := panicOf(func() { limit(0, &gosdk.PageOptions{MaxArguments: option}, 10) })
		if !strings.Contains(said, "PageOptions.MaxArguments") {
			t.Errorf("%d: %s", option, said)
		}
	}
}

// The cursor does not count towards the limit of the arguments, however long it is.
func TestAWalkWithLongCursorsGoesOn(t *testing.T) {
	cursors, err := cursor.New(boundary(t, &book{}, nil), cursor.Options{MaxPosition: 32 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for most, length := range map[int]int{0: 65_000, 1024: 1000} {
		config := func(c *tripseal.Config) { c.MaxArguments = most }
		protected := gosdk.Protect(newServer(), boundary(t, &book{}, config), &gosdk.Options{Cursors: cursors})
		handler := func(_ context.Context, _ *mcp.CallToolRequest, _ listArgs, after *string) ([]row, *string, error) {
			next := strings.Repeat("k", 32<<10-2) // the longest position: two more bytes are for the quotes in JSON
			if after != nil && *after != next {
				t.Errorf("the position is %.20q", *after)
			}
			return nil, &next, nil
		}
		gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, handler, &gosdk.PageOptions{MaxArguments: most})
		session := connect(t, protected.Server(), nil, revision2026)
		arguments := map[string]any{"prefix": strings.Repeat("x", length)}
		for page := range 3 {
			got, err := listPage(t, session, arguments)
			if err != nil {
				t.Fatalf("page %d with %d bytes of at most %d: %v", page, length, most, err)
			}
			arguments["cursor"] = got.Next
		}
	}
}

// The SDK decodes what inner middleware made of the arguments, so this is what a cursor is bound to.
func TestACursorIsBoundToWhatInnerMiddlewareMadeOfTheArguments(t *testing.T) {
	server := newServer()
	tenant := "red"
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				arguments := map[string]any{"tenant": tenant}
				if err := json.Unmarshal(call.Params.Arguments, &arguments); err != nil {
					return nil, err
				}
				call.Params.Arguments, _ = json.Marshal(arguments)
			}
			return next(ctx, method, req)
		}
	})
	taken := takerOf[map[string]any](t, gosdk.Protect(server, boundary(t, &book{}, nil), nil), object, nil)
	next := taken.mustCall(t, `{}`)
	tenant = "blue"
	if _, err := taken.call(t, `{"cursor":"`+next+`"}`); wireText(err) != invalidCursor {
		t.Errorf("another tenant: %v", err)
	}
	taken.mustCall(t, `{"cursor":"`+next+`","tenant":"red"}`)
	tenant = "red"
	taken.mustCall(t, `{"cursor":"`+next+`"}`)
	if !maps.Equal(taken.got, map[string]any{"tenant": "red"}) {
		t.Errorf("the handler got %v", taken.got)
	}
}

func TestAPagedToolFailsLoudlyIfInnerMiddlewareReplacesTheContext(t *testing.T) {
	b, server := &book{}, newServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(_ context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(context.Background(), method, req)
		}
	})
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	_, err := takerOf[map[string]any](t, protected, object, nil).call(t, `{}`)
	if wireText(err) != internal || !strings.Contains(b.String(), "inner middleware replaced its context") {
		t.Errorf("%v; the log: %s", err, b)
	}
}

// Servers that share a Protection do not share their paged tools.
func TestAToolOfAnotherServerKeepsItsOwnCursor(t *testing.T) {
	protection := gosdk.NewProtector(boundary(t, &book{}, nil), nil)
	paged, plain := protection.Protect(newServer()), protection.Protect(newServer())
	gosdk.AddPagedTool(paged, &mcp.Tool{Name: "t"}, listRows, nil)
	got := ""
	handler := func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		got = string(req.Params.Arguments)
		return &mcp.CallToolResult{}, nil
	}
	plain.Server().AddTool(&mcp.Tool{Name: "t", InputSchema: object}, handler)
	call := &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(`{"cursor":7}`)}
	_, err := callTool(t, connect(t, plain.Server(), nil, revision2026), call)
	if err != nil || got != `{"cursor":7}` {
		t.Errorf("it got %s, %v", got, err)
	}
}
