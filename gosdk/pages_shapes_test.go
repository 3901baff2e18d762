package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// shape is a schema as authors write them, and arguments that fit it.
type shape struct{ name, schema, arguments string }

const draft07 = `"$schema":"http://json-schema.org/draft-07/schema#",`

var shapes = []shape{
	{"none", `{"type":"object"}`, `{"any":1}`},
	{"closed", `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`, `{"a":1}`},
	{"defaults", `{"type":"object","properties":{"a":{"default":1},"o":{"type":"object","default":{"x":1},
		"properties":{"y":{"default":2}}}},"default":{"a":1}}`, `{}`},
	{"a default under a reference", `{"type":"object","$defs":{"d":{"type":"integer","default":7}},
		"properties":{"a":{"$ref":"#/$defs/d"},"l":{"items":{"$ref":"#/$defs/d"}}}}`, `{"a":1,"l":[2]}`},
	{"a default that does not fit", `{"type":"object","properties":{"a":{"type":"string","default":1}}}`, `{}`},
	{"nullable", `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"string",
		"nullable":true}}}`, `{"a":null,"b":"x"}`},
	{"pydantic", `{"$defs":{"Status":{"enum":["open","closed"],"title":"Status","type":"string"}},
		"properties":{"status":{"$ref":"#/$defs/Status","default":"open"},
		"prefix":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},"limit":{"default":20,
		"exclusiveMinimum":0,"maximum":100,"type":"integer"}},"title":"listArguments","type":"object"}`,
		`{"limit":3}`},
	{"pydantic 1", `{"definitions":{"Status":{"enum":["open","closed"],"type":"string"}},
		"properties":{"status":{"allOf":[{"$ref":"#/definitions/Status"}],"default":"open"}},"type":"object"}`,
		`{"status":"open"}`},
	{"zod", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
		"properties":{"q":{"type":"string","minLength":1},"n":{"type":"integer","default":10,
		"minimum":-9007199254740991,"maximum":9007199254740991}},"required":["q"],
		"additionalProperties":false}`, `{"q":"x"}`},
	{"zod, draft 7", `{` + draft07 + `"type":"object","properties":{"q":{"type":"string"},
		"n":{"type":"integer","default":10}},"required":["q"],"additionalProperties":false}`, `{"q":"x"}`},
	{"draft 7 with a title", `{` + draft07 + `"title":"T","description":"d","type":"object",
		"properties":{"a":{"title":"A","examples":[1],"readOnly":true}}}`, `{"a":1}`},
	{"draft 7, a rule beside a reference", `{` + draft07 + `"type":"object",
		"definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n","maximum":3}}}`,
		`{"a":1}`},
	{"an unknown draft", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, `{}`},
	{"tuple", `{"type":"object","properties":{"a":{"type":"array",
		"prefixItems":[{"type":"integer"},{"type":"string"}],"items":false}}}`, `{"a":[1,"x"]}`},
	{"tuple, draft 7", `{` + draft07 + `"type":"object","properties":{"a":{"items":[{"type":"integer"}],
		"additionalItems":false}}}`, `{"a":[1]}`},
	{"tuple of the wrong draft", `{"type":"object","properties":{"a":{"items":[{"type":"integer"}]}}}`,
		`{"a":[1]}`},
	{"draft 4, exclusiveMinimum", `{"type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`,
		`{"a":1}`},
	{"draft 4, id", `{"id":"http://x.example/s","type":"object","definitions":{"n":{"type":"integer"}},
		"properties":{"a":{"$ref":"#/definitions/n"}}}`, `{"a":1}`},
	{"draft 4, divisibleBy", `{"type":"object","properties":{"a":{"divisibleBy":2,"extends":{},
		"disallow":"string"}}}`, `{"a":2}`},
	{"cents", `{"type":"object","properties":{"a":{"type":"number","multipleOf":0.01}}}`, `{"a":0.5}`},
	{"huge bounds", `{"type":"object","properties":{"a":{"type":"integer","minimum":-9223372036854775808,
		"maximum":9223372036854775807}}}`, `{"a":9007199254740993}`},
	{"vast bounds", `{"type":"object","properties":{"a":{"type":"number","maximum":1e300}}}`, `{"a":1e200}`},
	{"vast constants", `{"type":"object","properties":{"a":{"enum":[18446744073709551616,null]},
		"b":{"const":9007199254740993}}}`, `{"a":null,"b":9007199254740993}`},
	{"one of", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],
		"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, `{"a":"1"}`},
	{"one of closed", `{"type":"object","oneOf":[{"properties":{"a":{}},"required":["a"],
		"additionalProperties":false},{"properties":{"b":{}},"required":["b"],"additionalProperties":false}]}`,
		`{"a":"1"}`},
	{"any of", `{"type":"object",
		"anyOf":[{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"type":"string"}}}]}`, `{"a":"1"}`},
	{"all of", `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}},
		"additionalProperties":false}]}`, `{"a":1}`},
	{"unevaluated", `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}}],
		"unevaluatedProperties":false}`, `{"a":1}`},
	{"typed members", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":1,"A":2,"Á":3,"á":4}`},
	{"names in any case", `{"type":"object","properties":{"id":{},"ID":{},"Id":{}}}`, `{"id":1,"ID":2,"Id":3}`},
	{"free-form", `{"type":"object","properties":{"labels":{"type":"object",
		"additionalProperties":{"type":"string"}}}}`, `{"labels":{"App":"a","app":"b","LABELS":"c"}}`},
	{"patterns", `{"type":"object","patternProperties":{"^[a-z]+$":{"type":"integer"}}}`, `{"a":1}`},
	{"property names", `{"type":"object","propertyNames":{"const":"a"}}`, `{"a":1}`},
	{"max properties", `{"type":"object","maxProperties":1}`, `{"a":1}`},
	{"min properties", `{"type":"object","minProperties":1,"properties":{"a":{}}}`, `{"a":1}`},
	{"format", `{"type":"object","properties":{"a":{"type":"string","format":"uuid"},"b":{"type":"string",
		"contentEncoding":"base64"}}}`, `{"a":"no uuid","b":"!"}`},
	{"unknown keywords", `{"type":"object","example":{"a":1},"properties":{"a":{"example":1,"minLenght":5,
		"x-order":1,"enumNames":["A"]}}}`, `{"a":1}`},
	{"if and then", `{"type":"object","if":{"required":["a"]},"then":{"required":["b"]},
		"else":{"maxProperties":0}}`, `{"a":1,"b":2}`},
	{"then without if", `{"type":"object","then":{"required":["b"]}}`, `{"a":1}`},
	{"const", `{"type":"object","properties":{"a":{"const":"x"},"o":{"const":{"A":1}}}}`, `{"a":"x","o":{"A":1}}`},
	{"enum with null", `{"type":"object","properties":{"a":{"enum":[null,"x"]}}}`, `{"a":null}`},
	{"recursive", `{"type":"object","$defs":{"f":{"type":"object","properties":{"and":{"type":"array",
		"items":{"$ref":"#/$defs/f"}},"eq":{"type":"string"}}}},"properties":{"filter":{"$ref":"#/$defs/f"}}}`,
		`{"filter":{"and":[{"eq":"a"},{"and":[]}]}}`},
	{"a reference to the root", `{"type":"object","properties":{"a":{"type":"integer"},"not":{"$ref":"#"}},
		"additionalProperties":false}`, `{"not":{"a":1}}`},
	{"an absolute id", `{"$id":"https://x.example/s","type":"object","$defs":{"s":{"type":"string"}},
		"properties":{"a":{"$ref":"#/$defs/s"}}}`, `{"a":"x"}`},
	{"a relative id", `{"$id":"/schemas/list","type":"object"}`, `{}`},
	{"dependencies", `{"type":"object","dependentRequired":{"a":["b"]}}`, `{"a":1,"b":2}`},
	{"a lost reference", `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, `{}`},
	{"null properties", `{"type":"object","properties":null}`, `{"a":1}`},
	{"properties that are none", `{"type":"object","properties":[]}`, `{}`},
	{"a property that is none", `{"type":"object","properties":{"a":null}}`, `{}`},
	{"a list of types", `{"type":["object"]}`, `{}`},
	{"no type", `{"properties":{"a":{}}}`, `{}`},
	{"an array", `{"type":"array"}`, `{}`},
	{"a boolean", `true`, `{}`},
	{"nothing", `null`, `{}`},
	{"no JSON", `{`, `{}`},
}

// Wherever the SDK registers a typed tool with a schema, it registers a paged one, and a client walks
// through its pages.
func TestEverySchemaThatTheSDKTakesPages(t *testing.T) {
	registered := 0
	for _, s := range shapes {
		for form, schema := range map[string]any{
			"text": json.RawMessage(s.schema), "value": decoded(s.schema), "schema": schemaOf(s.schema),
		} {
			if checkShape[map[string]any](t, s.name+" as a "+form, schema, s.arguments) {
				registered++
			}
		}
	}
	if registered < 2*len(shapes) {
		t.Errorf("only %d of %d were registered", registered, 3*len(shapes))
	}
}

// decoded returns the value of a JSON text, or nil if it is not JSON.
func decoded(text string) (value any) {
	json.Unmarshal([]byte(text), &value)
	return value
}

// schemaOf returns the schema of a JSON text, or a nil pointer.
func schemaOf(text string) (schema *jsonschema.Schema) {
	if json.Unmarshal([]byte(text), &schema) != nil {
		return nil
	}
	return schema
}

type sorted struct {
	Sort string `json:"sort,omitempty"`
}

type listing struct {
	Status string            `json:"status,omitempty" jsonschema:"only these"`
	Since  *time.Time        `json:"since,omitempty"`
	Tags   []string          `json:"tags,omitempty"`
	Raw    json.RawMessage   `json:"raw,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Number int64             `json:"number,string,omitempty"`
	sorted
}

// Without a schema, a paged tool has the one that the SDK makes from the Go type.
func TestEveryTypeThatTheSDKTakesPages(t *testing.T) {
	const all = `{"status":"open","since":"2026-01-01T00:00:00Z","tags":["a"],"labels":{"App":"x"},"sort":"x"}`
	for name, registered := range map[string]bool{
		"a struct":        checkShape[listing](t, "a struct", nil, all),
		"a pointer":       checkShape[*listing](t, "a pointer", nil, all),
		"an empty struct": checkShape[struct{}](t, "an empty struct", nil, `{}`),
		"an any":          checkShape[any](t, "an any", nil, `{"a":1}`),
		"a map":           checkShape[map[string]any](t, "a map", nil, `{"a":1,"A":2}`),
		"raw":             checkShape[json.RawMessage](t, "raw", object, `{"a":1}`),
		"raw in a struct": checkShape[listing](t, "raw in a struct", properties(`"raw":{}`), `{"raw":{"a":1}}`),
	} {
		if !registered {
			t.Errorf("%s: not registered", name)
		}
	}
	for name, registered := range map[string]bool{
		"two pointers": checkShape[**listing](t, "two pointers", nil, all),
		"a number":     checkShape[int](t, "a number", nil, `{}`),
		"a func":       checkShape[func()](t, "a func", nil, `{}`),
		"recursive":    checkShape[comment](t, "recursive", nil, `{}`),
	} {
		if registered {
			t.Errorf("%s: registered", name)
		}
	}
}

type comment struct {
	Replies []*comment `json:"replies,omitempty"`
}

// checkShape registers a typed tool and a paged tool with the schema, and compares what happens. It
// walks through two pages of the paged tool, and reports whether it was registered.
func checkShape[In any](t *testing.T, name string, schema any, arguments string) bool {
	t.Helper()
	tool := func() *mcp.Tool { return &mcp.Tool{Name: "t", InputSchema: schema} }
	var typed, got []In
	plain := newServer()
	typedPanic := panicOf(func() {
		handler := func(_ context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			typed = append(typed, in)
			return nil, nil, nil
		}
		mcp.AddTool(plain, tool(), handler)
	})
	server := newServer()
	pagedPanic := panicOf(func() {
		gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, &book{}, nil), nil), tool(),
			func(_ context.Context, _ *mcp.CallToolRequest, in In, after *key) ([]row, *key, error) {
				got = append(got, in)
				if after != nil {
					return nil, nil, nil
				}
				return nil, &key{1}, nil
			}, nil)
	})
	if (typedPanic == "") != (pagedPanic == "") {
		t.Errorf("%s: a typed tool: %q, a paged tool: %q", name, typedPanic, pagedPanic)
	}
	if pagedPanic != "" {
		return false
	}
	call := &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(arguments)}
	if result, err := callTool(t, connect(t, plain, nil, revision2026), call); err != nil || result.IsError {
		t.Errorf("%s: a typed tool refuses %s: %v, %s", name, arguments, err, text(result))
		return true
	}
	k := &taker[In]{session: connect(t, server, nil, revision2026)}
	next := k.mustCall(t, arguments)
	if last := k.mustCall(t, withCursor(next, arguments)); last != "" || len(got) != 2 {
		t.Errorf("%s: %d pages, and a cursor %q", name, len(got), last)
	}
	for _, in := range got {
		if !reflect.DeepEqual(in, typed[0]) {
			t.Errorf("%s: a paged tool got %+v, a typed tool %+v", name, in, typed[0])
		}
	}
	listed, err := k.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	input, _ := json.Marshal(listed.Tools[0].InputSchema)
	if !strings.Contains(string(input), `"cursor":{`) {
		t.Errorf("%s: %s is listed", name, input)
	}
	return true
}

type hex [2]byte

func (h hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", h[:]), nil }

func TestTheOutputSchemaDescribesTheItemsOrIsTheAuthors(t *testing.T) {
	type plain struct {
		ID   int       `json:"id"`
		At   time.Time `json:"at"`
		List []*row    `json:"list"`
	}
	authors := json.RawMessage(`{"type":"object","properties":{"items":{"items":{"type":"string"}}}}`)
	checkOutput(t, nil, `"at":{"type":"string"}`, plain{ID: 1}, plain{List: []*row{nil, {ID: 1}}})
	checkOutput(t, nil, `"items":{"type":"array"}`, comment{[]*comment{{}}})
	checkOutput(t, nil, `"items":{"type":"array"}`, struct{ M map[int]string }{map[int]string{1: "a"}})
	checkOutput(t, authors, `"items":{"items":{"type":"string"}}`, hex{1, 2})
}

// checkOutput compares the items of a paged tool with the listed output schema.
func checkOutput[Item any](t *testing.T, output any, want string, items ...Item) {
	t.Helper()
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t", OutputSchema: output},
		func(context.Context, *mcp.CallToolRequest, struct{}, *key) ([]Item, *key, error) {
			return items, &key{1}, nil
		}, nil)
	session := connect(t, server, nil, revision2026)
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	schema, _ := json.Marshal(listed.Tools[0].OutputSchema)
	if !strings.Contains(string(schema), want) {
		t.Errorf("%s is not in %s", want, schema)
	}
	check, err := schemaOf(string(schema)).Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Validate(result.StructuredContent); err != nil {
		t.Errorf("%s: %v", text(result), err)
	}
}
