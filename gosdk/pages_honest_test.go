package gosdk_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// walkTool registers a paged tool, and gets its two pages. It checks each page against the
// output schema that is listed, and checks that the handler gets its position back. It returns
// the tool as listed.
func walkTool[In, At, Item any](t *testing.T, schema any, arguments string, at At, items ...Item) (tool *mcp.Tool, err error) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("registration: %v", v)
		}
	}()
	server := newServer()
	var after *At
	gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, &book{}, nil), nil), &mcp.Tool{Name: "t", InputSchema: schema},
		func(_ context.Context, _ *mcp.CallToolRequest, _ In, a *At) ([]Item, *At, error) {
			if after = a; a == nil {
				return items, &at, nil
			}
			return items, nil, nil
		}, nil)
	session := connect(t, server, nil, revision2026)
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		return nil, err
	}
	tool = listed.Tools[0]
	var output *jsonschema.Schema
	text, _ := json.Marshal(tool.OutputSchema)
	if err := json.Unmarshal(text, &output); err != nil {
		return tool, err
	}
	check, err := output.Resolve(nil)
	if err != nil {
		return tool, err
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(arguments), &all); err != nil {
		return tool, err
	}
	for page := range 2 {
		result, err := callTool(t, session, &mcp.CallToolParams{Name: "t", Arguments: all})
		if err == nil {
			err = result.GetError()
		}
		if err == nil {
			err = check.Validate(result.StructuredContent)
		}
		if err != nil {
			return tool, fmt.Errorf("page %d: %w", page+1, err)
		}
		all["cursor"] = result.StructuredContent.(map[string]any)["nextCursor"]
	}
	if all["cursor"] != nil || after == nil || !reflect.DeepEqual(*after, at) {
		return tool, fmt.Errorf("the position came back as %#v", after)
	}
	return tool, nil
}

type comment struct {
	ID      int        `json:"id"`
	Replies []*comment `json:"replies,omitempty"`
}

type customer struct {
	ID     int     `json:"id"`
	Orders []order `json:"orders,omitempty"`
}

type order struct {
	ID       int       `json:"id"`
	Customer *customer `json:"customer,omitempty"`
}

type Record struct {
	ID int `json:"id"`
}

type record Record

type based struct {
	*Record
	Name string `json:"name"`
}

// rowKey has its methods for JSON on the pointer type.
type rowKey struct{ id int }

func (k *rowKey) MarshalJSON() ([]byte, error)    { return json.Marshal(k.id) }
func (k *rowKey) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &k.id) }

type sorted struct {
	Sort string `json:"sort,omitempty"`
}

type listing struct {
	Status string     `json:"status,omitempty" jsonschema:"only these"`
	Since  *time.Time `json:"since,omitempty"`
	Limit  int        `json:"limit,omitempty"`
	Tags   []string   `json:"tags,omitempty"`
	sorted
}

func TestHonestArgumentsAreTaken(t *testing.T) {
	type query struct {
		Q string `json:"q"`
		N int    `json:"n"`
	}
	type filter struct {
		Status string  `json:"status"`
		Prefix *string `json:"prefix"`
		Limit  int     `json:"limit"`
	}
	walk := func(name string, schema any, arguments string, walk func(*testing.T, any, string, key, ...row) (*mcp.Tool, error)) {
		t.Helper()
		if _, err := walk(t, schema, arguments, key{7}, row{1, "a"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	const all = `{"status":"open","since":"2026-01-01T00:00:00Z","tags":["a"],"sort":"x"}`
	walk("a struct", nil, all, walkTool[listing])
	walk("a pointer", nil, all, walkTool[*listing])
	walk("two pointers", nil, all, walkTool[**listing])
	walk("an empty struct", nil, `{}`, walkTool[struct{}])
	walk("an any", nil, `{"a":1}`, walkTool[any])
	walk("a map", nil, `{"a":1}`, walkTool[map[string]any])
	walk("raw", object, `{"a":1}`, walkTool[json.RawMessage])
	for name, schema := range map[string]string{
		"pydantic":   `{"$defs":{"Status":{"enum":["open","closed"],"title":"Status","type":"string"}},"properties":{"status":{"$ref":"#/$defs/Status","default":"open"},"prefix":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null,"title":"Prefix"},"limit":{"default":20,"exclusiveMinimum":0,"maximum":100,"title":"Limit","type":"integer"}},"title":"listArguments","type":"object"}`,
		"pydantic 1": `{"definitions":{"Status":{"enum":["open","closed"],"type":"string"}},"properties":{"status":{"allOf":[{"$ref":"#/definitions/Status"}],"default":"open"}},"type":"object"}`,
	} {
		walk(name, json.RawMessage(schema), `{}`, walkTool[filter])
	}
	for name, schema := range map[string]string{
		"zod":    `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"q":{"type":"string","minLength":1},"n":{"type":"integer","default":10,"minimum":-9007199254740991,"maximum":9007199254740991}},"required":["q"],"additionalProperties":false}`,
		"zod, 7": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"q":{"type":"string","minLength":1},"n":{"type":"integer","default":10}},"required":["q"],"additionalProperties":false}`,
	} {
		walk(name, json.RawMessage(schema), `{"q":"x"}`, walkTool[query])
	}
	for arguments, schema := range map[string]string{
		`{"a":null}`:          `{"type":"object","properties":{"a":{"enum":[null,"x"]}}}`,
		`{"note":"$id"}`:      `{"$id":"https://x.example/s","type":"object","$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s","default":"q"},"a b%/~é":{"$ref":"#/$defs/s","default":"r"}}}`,
		`{"note":"urn"}`:      `{"$id":"urn:example:list","type":"object","$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s","default":"q"}}}`,
		`{"note":"$id, 7"}`:   `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://x.example/s.json#","type":"object","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s"},"b":{"type":"string","default":"q"}}}`,
		`{"note":"one type"}`: `{"type":["object"]}`,
		`{"filter":{"and":[{"eq":"a"},{"and":[]}]}}`: `{"type":"object","$defs":{"f":{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/$defs/f"}},"eq":{"type":"string"}}}},"properties":{"filter":{"$ref":"#/$defs/f"}}}`,
		`{"a":"1"}`: `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
	} {
		walk(schema, json.RawMessage(schema), arguments, walkTool[map[string]any])
	}
}

// An author may well write these schemas, but AddPagedTool could not apply them exactly. It refuses
// them, and the message says what to change.
func TestArgumentsThatCannotBeTakenAreRefusedWithAdvice(t *testing.T) {
	for schema, advice := range map[string]string{
		`{"type":["object","null"]}`: `"type": "object"`,
		`{}`:                         `"type": "object"`,
		`{"$id":"/schemas/list","type":"object"}`:                                                "absolute URI",
		`{"type":"object","properties":{"id":{"type":"integer","maximum":9223372036854775807}}}`: "leave it out",
		`{"type":"object","properties":{"p":{"type":"number","multipleOf":0.01}}}`:               "must be whole",
	} {
		if said := refusal[map[string]any](t, json.RawMessage(schema)); !strings.Contains(said, advice) {
			t.Errorf("%s: %q", schema, said)
		}
	}
}

func TestHonestItemsFitTheSchemaThatIsListed(t *testing.T) {
	type filed struct {
		A string
		F func() `json:"-"`
	}
	type nested struct {
		A map[string]map[string]int
		B *map[string]int
		C []map[string]any
		D [2]*int
		E [][]string
		F *[]int
	}
	type tagged struct {
		A string `jsonschema:"description=x"`
	}
	walk := func(name string, described bool, walk func() (*mcp.Tool, error)) {
		t.Helper()
		tool, err := walk()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		output, _ := json.Marshal(tool.OutputSchema)
		if got := strings.Contains(string(output), `"items":{"items":`); got != described {
			t.Errorf("%s: %s", name, output)
		}
	}
	walk("recursive", false, itemsOf(t, comment{1, []*comment{{2, nil}}}))
	walk("a reference back", false, itemsOf(t, customer{1, nil}))
	walk("a map of numbers", false, itemsOf(t, struct{ M map[int]string }{map[int]string{1: "a"}}))
	walk("a tag of another library", false, itemsOf(t, tagged{"x"}))
	walk("an embedded pointer", true, itemsOf(t, based{nil, "a"}, based{&Record{1}, "a"}))
	walk("an embedded pointer, deep", true, itemsOf(t, map[string][]*struct{ B based }{"a": {{based{nil, "a"}}}}))
	walk("an embedded pointer in an embedded struct", true, itemsOf(t, struct{ based }{based{nil, "a"}}))
	walk("any", true, itemsOf(t, any(map[string]any{"a": 1})))
	walk("a text", true, itemsOf(t, "x"))
	walk("nil", true, itemsOf(t, (*row)(nil)))
	walk("nullable", true, itemsOf(t, struct {
		S sql.NullString
		T sql.Null[time.Time]
	}{}))
	walk("a URL", true, itemsOf(t, struct{ U *url.URL }{&url.URL{Host: "x", User: url.User("a")}}))
	walk("an error", true, itemsOf(t, struct{ E error }{errors.New("x")}))
	walk("a tool", false, itemsOf(t, mcp.Tool{Name: "x"}))
	walk("content", false, itemsOf(t, mcp.TextContent{Text: "x"}))
	walk("a schema", false, itemsOf(t, &jsonschema.Schema{Type: "string"}))
	walk("a func that is skipped", true, itemsOf(t, filed{A: "x"}))
	walk("nil maps", true, itemsOf(t, nested{A: map[string]map[string]int{"a": nil}, C: []map[string]any{nil}}))
	walk("embedded", true, itemsOf(t, struct{ record }{record{1}}))
	walk("what reads itself", false, itemsOf(t, struct{ M selfReader }{}))
	walk("times", true, itemsOf(t, struct {
		D time.Duration
		T *time.Time
		W time.Weekday
	}{}))
}

// selfReader has its own UnmarshalJSON, but no MarshalJSON. Its map is nil here, and is written
// as null.
type selfReader struct{ M map[string]int }

func (s *selfReader) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &s.M) }

func itemsOf[Item any](t *testing.T, items ...Item) func() (*mcp.Tool, error) {
	return func() (*mcp.Tool, error) { return walkTool[struct{}](t, nil, `{}`, key{7}, items...) }
}

func TestHonestPositionsComeBack(t *testing.T) {
	now := time.Now().UTC().Round(0)
	for name, err := range map[string]error{
		"text":   positionOf(t, "abc<>&"),
		"int64":  positionOf(t, int64(1<<62+1)),
		"uint64": positionOf(t, uint64(1<<63+1)),
		"time":   positionOf(t, now),
		"tuple": positionOf(t, struct {
			T  time.Time
			ID int64
		}{now, 1 << 60}),
		"bytes":            positionOf(t, []byte{0, 255}),
		"address":          positionOf(t, netip.MustParseAddr("::1")),
		"big":              positionOf(t, *big.NewInt(7)),
		"a pointer to big": positionOf(t, big.NewInt(7)),
		"on the pointer":   positionOf(t, rowKey{7}),
		"in a struct":      positionOf(t, struct{ K rowKey }{rowKey{7}}),
		"nullable":         positionOf(t, sql.NullInt64{Int64: 1, Valid: true}),
		"a list of any":    positionOf(t, []any{float64(1), "x", nil}),
		"number":           positionOf(t, json.Number("12345678901234567890")),
		"URL":              positionOf(t, url.URL{Scheme: "https", Host: "x", RawQuery: "a=b&c=d"}),
		"raw":              positionOf(t, json.RawMessage(`{"a":"<&>"}`)),
		"raw and vast":     positionOf(t, json.RawMessage(`1e999`)),
		"any":              positionOf(t, any("x")),
		"nothing":          positionOf(t, struct{}{}),
		"nil":              positionOf(t, (*int)(nil)),
		"false":            positionOf(t, false),
		"embedded": positionOf(t, struct {
			record
			Name string
		}{record{1}, "x"}),
		"U+FFFD": positionOf(t, "a\ufffdb"),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := positionOf(t, "a\xffb"); wire(errors.Unwrap(err)) != internal {
		t.Errorf("text that is not UTF-8: %v", err)
	}
}

func positionOf[At any](t *testing.T, at At) error {
	_, err := walkTool[struct{}](t, nil, `{}`, at, row{1, "a"})
	return err
}

func TestTheOrderOfPropertiesIsListed(t *testing.T) {
	type in struct {
		Z string `json:"z,omitempty"`
		A string `json:"a,omitempty"`
	}
	given, err := jsonschema.For[struct {
		Z string `json:"z"`
		B in     `json:"b"`
		A string `json:"a"`
	}](nil)
	if err != nil {
		t.Fatal(err)
	}
	order := func(schema any) string {
		server := newServer()
		gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, &book{}, nil), nil), &mcp.Tool{Name: "t", InputSchema: schema},
			func(context.Context, *mcp.CallToolRequest, in, *key) ([]row, *key, error) { return nil, nil, nil }, nil)
		var text string
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if list, ok := result.(*mcp.ListToolsResult); ok {
					written, _ := json.Marshal(list.Tools[0].InputSchema)
					text = string(written)
				}
				return result, err
			}
		})
		if _, err := connect(t, server, nil, revision2026).ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return text
	}
	inOrder := func(text string, names ...string) {
		t.Helper()
		for _, name := range names {
			i := strings.Index(text, `"`+name+`":{`)
			if i < 0 {
				t.Fatalf("%s is not next in %s", name, text)
			}
			text = text[i+1:]
		}
	}
	inOrder(order(nil), "z", "a", "cursor")
	inOrder(order(given), "z", "b", "z", "a", "a", "cursor")
	given.PropertyOrder = append(given.PropertyOrder, "cursor")
	inOrder(order(given), "z", "b", "z", "a", "a", "cursor")
}
