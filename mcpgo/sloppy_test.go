package mcpgo_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic(secret) }

// mcp-go writes a result as JSON after our middleware has returned. If this fails, the
// client gets no answer. If this panics on a stdio server, the process ends.
func TestAQuestionThatCannotBeWrittenIsRefused(t *testing.T) {
	for name, change := range map[string]func(*mcp.CallToolResult){
		"not a number": func(r *mcp.CallToolResult) {
			r.InputRequests["ok"].Elicitation.RequestedSchema = map[string]any{"x": math.NaN()}
		},
		"channel": func(r *mcp.CallToolResult) { r.InputRequests["ok"].Elicitation.RequestedSchema = make(chan int) },
		"panic":   func(r *mcp.CallToolResult) { r.InputRequests["ok"].Elicitation.RequestedSchema = panics{} },
		"meta of a question": func(r *mcp.CallToolResult) {
			r.InputRequests["ok"].Elicitation.Meta = &mcp.Meta{AdditionalFields: map[string]any{"x": panics{}}}
		},
		"meta of the result":     func(r *mcp.CallToolResult) { r.Meta = &mcp.Meta{AdditionalFields: map[string]any{"x": panics{}}} },
		"raw structured content": func(r *mcp.CallToolResult) { r.RawStructuredContent = []byte("{") },
		"content": func(r *mcp.CallToolResult) {
			text := mcp.NewTextContent("x")
			text.Meta = &mcp.Meta{AdditionalFields: map[string]any{"n": math.NaN()}}
			r.Content = []mcp.Content{text}
		},
		"structured content": func(r *mcp.CallToolResult) { r.StructuredContent = panics{} },
		"sample with a form beside it": func(r *mcp.CallToolResult) {
			sample := mcp.NewSamplingInputRequest(mcp.CreateMessageParams{Temperature: math.NaN()})
			sample.Elicitation = &mcp.ElicitationParams{}
			r.InputRequests["s"] = sample
		},
		"sample": func(r *mcp.CallToolResult) {
			r.InputRequests["s"] = mcp.NewSamplingInputRequest(mcp.CreateMessageParams{Metadata: panics{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := new(log)
			srv := protected(t, l)
			srv.AddTool(mcp.NewTool("odd"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				r := question().ToolResult()
				change(r)
				return r, nil
			})
			isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"odd"`))
			has(t, l, "cannot be written as JSON")
		})
	}
}

func TestAQuestionThatMCPGoCallsInvalidIsRefused(t *testing.T) {
	for name, question := range map[string]mcp.ElicitationParams{
		"misspelt mode": {Mode: "URL", URL: "https://example.com/", ElicitationID: "1", Message: "m"},
		"no schema":     {Message: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			l := new(log)
			srv := protected(t, l)
			srv.AddTool(mcp.NewTool("odd"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return server.NewInputRequestBuilder(secret).Elicit("ok", question).ToolResult(), nil
			})
			isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"odd"`))
		})
	}
	l := new(log)
	srv := protected(t, l)
	srv.AddTool(mcp.NewTool("choice"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return server.NewInputRequestBuilder(secret).Sample("s", mcp.CreateMessageParams{MaxTokens: 1, ToolChoice: &mcp.ToolChoice{Mode: mcp.ToolChoiceModeAuto}}).ToolResult(), nil
	})
	if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"choice"`); r.Error == nil || !strings.HasSuffix(r.Error.Message, "sampling.tools") {
		t.Errorf("got %s", r.raw)
	}
}

func TestAnswersWithoutAQuestionMustBeOfOneKind(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1")
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Unsolicited: []string{"echo"}, Logger: l.logger()})
	addHandlers(srv)
	for answer, want := range map[string]string{
		`{"action":"decline","content":{"yes":true}}`:                                                          `state="" answers=1 action=decline content=<nil>`,
		`{"action":"accept","content":{"yes":true}}`:                                                           `state="" answers=1 action=accept content=map[yes:true]`,
		`{"action":"accept","content":{"a":null},"roots":[]}`:                                                  `state="" answers=0`,
		`{"action":"accept","content":{"a":null}}`:                                                             `state="" answers=0`,
		`{"roots":[{"uri":"file:///"}]}`:                                                                       `state="" answers=1`,
		`{"role":"user","model":"m","content":{"type":"text","text":"x"}}`:                                     `state="" answers=1`,
		`{"role":"user","model":"m","content":{"type":"text","text":null}}`:                                    `state="" answers=0`,
		`{"role":"user","model":"m","content":{"type":"tool_use","id":"1","name":"n","input":{"after":null}}}`: `state="" answers=1`,
		`{"role":"user","model":"m","content":[{"type":"tool_result","content":[{"type":"text","text":"x","_meta":null}],"structuredContent":{"a":[null]}}]}`: `state="" answers=1`,
		`{"role":"user","model":"m","content":[{"type":"tool_result","content":[{"type":"text","text":null}]}]}`:                                              `state="" answers=0`,
		`{"role":"user","model":"m","content":{"type":"tool_result","content":[null]}}`:                                                                       `state="" answers=0`,
		`{"role":"user","model":"m","content":[[{"type":"text","text":"x"}]]}`:                                                                                `state="" answers=0`,
		`{"role":"user","model":"m","content":{"type":""}}`:                                                                                                   `state="" answers=0`,
		`{}`: `state="" answers=0`, `null`: `state="" answers=0`, `7`: `state="" answers=0`,
	} {
		if r := send(t.Context(), t, srv, "tools/call", `"name":"echo","inputResponses":{"ok":`+answer+`}`); r.text() != want {
			t.Errorf("%s: got %s, want %s", answer, r.raw, want)
		}
	}
	p := mcpgo.Prepare(boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	if p.Answers(t.Context(), nil, mcp.CallToolRequest{}) != nil || p.Answers(t.Context(), new(tripseal.Round), "x") != nil {
		t.Error("answers without a round or a request")
	}
}

type tree struct {
	Tenant string `json:"tenant"`
	Kids   []tree `json:"kids"`
}

func TestAPagedToolKeepsTheSchemaOfItsAuthorOrIsRefused(t *testing.T) {
	add := func(p *mcpgo.Protected, tool mcp.Tool) {
		mcpgo.AddPagedTool(p, tool, func(_ context.Context, _ mcp.CallToolRequest, in map[string]any, _ *int) ([]string, *int, error) {
			return []string{jsonText(in)}, nil, nil
		}, nil)
	}
	closed := mcp.NewTool("t", mcp.WithSchemaAdditionalProperties(false))
	required := mcp.NewTool("t")
	required.InputSchema.Required = []string{"tenant"}
	exact := mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","properties":{"id":{"enum":[9007199254740993]}}}`))
	for name, c := range map[string]struct {
		tool      mcp.Tool
		arguments string
	}{"closed": {closed, `{"bogus":1}`}, "required": {required, `{}`}, "exact": {exact, `{"id":9007199254740990}`}} {
		t.Run(name, func(t *testing.T) {
			l := new(log)
			srv := server.NewMCPServer("test", "1", server.WithInputSchemaValidation())
			add(mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()}), c.tool)
			if r := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":`+c.arguments); !r.Result.IsError {
				t.Errorf("got %s", r.raw)
			}
			if r := send(t.Context(), t, srv, "tools/list", ""); name == "exact" && !strings.Contains(r.raw, "9007199254740993") {
				t.Errorf("the schema was rounded: %s", r.raw)
			}
		})
	}
	refused := map[string]mcp.Tool{"task": mcp.NewTool("t", mcp.WithTaskSupport(mcp.TaskSupportOptional))}
	for _, rule := range []string{`"minProperties":1`, `"maxProperties":1`, `"propertyNames":{}`, `"unevaluatedProperties":false`, `"$ref":"#/$defs/s"`,
		`"allOf":[{}]`, `"oneOf":[{}]`, `"anyOf":[{}]`, `"not":{}`, `"if":{}`, `"patternProperties":{}`, `"enum":[{}]`, `"const":{}`, `"$dynamicRef":"#"`} {
		refused[rule] = mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object",`+rule+`}`))
	}
	refused["another type"] = mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"string"}`))
	for name, tool := range refused {
		t.Run(name, func(t *testing.T) {
			p := mcpgo.Protect(server.NewMCPServer("test", "1"), boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true})
			if got := panicOf(func() { add(p, tool) }); !strings.HasPrefix(got, `mcpgo: the paged tool "t": `) {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("no schema for a type", func(t *testing.T) {
		p := mcpgo.Protect(server.NewMCPServer("test", "1"), boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true})
		if got := panicOf(func() {
			mcpgo.AddPagedTool(p, mcp.NewTool("t"), func(context.Context, mcp.CallToolRequest, tree, *int) ([]int, *int, error) { return nil, nil, nil }, nil)
		}); !strings.Contains(got, "set one") {
			t.Errorf("got %q", got)
		}
	})
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

// If mcp-go cannot compile a schema, it applies none of the schema's rules.
func TestAPagedToolWhoseSchemaMCPGoWouldIgnoreIsRefused(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"tenant":{"type":"string","pattern":"^(?!admin)"},"limit":{"maximum":10}}}`,
		`{"type":"object","properties":{"tenant":{"type":"str"},"limit":{"maximum":10}}}`,
		`{"type":"object","properties":{"tenant":{"$ref":"#/$defs/x"},"limit":{"maximum":10}}}`,
		`{"type":"object","properties":{"limit":{"maximum":10}},"required":"limit"}`,
		`{"$schema":"https://example.com/unknown","type":"object","properties":{"limit":{"maximum":10}}}`,
	} {
		p := mcpgo.Protect(server.NewMCPServer("test", "1"), boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true})
		got := panicOf(func() {
			mcpgo.AddPagedTool(p, mcp.NewToolWithRawSchema("t", "", json.RawMessage(schema)),
				func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]int, *int, error) {
					return nil, nil, nil
				}, nil)
		})
		if !strings.HasPrefix(got, `mcpgo: the paged tool "t": `) {
			t.Errorf("%s: got %q", schema, got)
		}
	}
}

func TestAPagedToolIsAsStrictAsItsServer(t *testing.T) {
	l := new(log)
	srv := server.NewMCPServer("test", "1", server.WithInputSchemaValidation(), server.WithStrictInputSchemaDefault())
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	mcpgo.AddPagedTool(p, mcp.NewTool("t", mcp.WithString("tenant", mcp.Required())), func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]int, *int, error) {
		next := 1
		return nil, &next, nil
	}, nil)
	first := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"tenant":"a"}`)
	var page struct{ NextCursor string }
	if err := json.Unmarshal([]byte(first.text()), &page); err != nil || page.NextCursor == "" {
		t.Fatalf("got %s", first.raw)
	}
	if r := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"tenant":"a","cursor":`+quote(page.NextCursor)+`}`); r.Error != nil || r.Result.IsError {
		t.Errorf("the second page: %s", r.raw)
	}
	if r := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"tenant":"a","tenat":"b"}`); !r.Result.IsError {
		t.Errorf("an unknown name: %s", r.raw)
	}
}

// A server may register its tools again and again for as long as it runs. So the adapter must not
// keep the tools that are gone.
func TestAPagedToolThatIsGoneIsForgotten(t *testing.T) {
	type property struct {
		Type string `json:"type"`
	}
	l := new(log)
	srv := server.NewMCPServer("test", "1", server.WithInputSchemaValidation())
	p := mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
	add := func(limit int) weak.Pointer[property] {
		x := &property{Type: "string"}
		tool := mcp.NewTool("t")
		tool.InputSchema.Properties = map[string]any{"x": x}
		mcpgo.AddPagedTool(p, tool, func(context.Context, mcp.CallToolRequest, map[string]any, *int) ([]int, *int, error) {
			return nil, nil, nil
		}, &mcpgo.PageOptions{MaxArguments: limit})
		return weak.Make(x)
	}
	refuses := func(length int) bool {
		r := send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"x":"`+strings.Repeat("x", length)+`"}`)
		return r.Error != nil
	}
	replaced, deleted := add(100), add(1000)
	isForgotten(t, "a tool that was replaced", replaced)
	if refuses(200) || !refuses(2000) {
		t.Error("the limit is not the one of the tool in its place")
	}
	srv.DeleteTools("t")
	isForgotten(t, "a tool that was deleted", deleted)
	if add(500); refuses(200) || !refuses(600) {
		t.Error("a tool that is registered again has no limit of its own")
	}
}

func TestAPromptThatAsksMustBeWritable(t *testing.T) {
	l := new(log)
	srv := protected(t, l)
	srv.AddPrompt(mcp.NewPrompt("odd"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		r := question().PromptResult()
		r.Messages = []mcp.PromptMessage{{Role: "user", Content: mcp.EmbeddedResource{Type: "resource", Meta: &mcp.Meta{AdditionalFields: map[string]any{"x": math.NaN()}}}}}
		return r, nil
	})
	isInternal(t, send(as(t.Context(), "alice"), t, srv, "prompts/get", `"name":"odd"`))
}

type window struct {
	Days int `json:"days,omitempty"`
}

func (w *window) UnmarshalJSON(text []byte) error {
	type plain window
	p := plain{Days: 7}
	err := json.Unmarshal(text, &p)
	*w = window(p)
	return err
}

type baseA struct{ Tenant string }

type baseB struct{ Tenant string }

// register registers a paged tool whose arguments have the type In. It returns the text of the
// panic, or "<nil>" if there was none.
func register[In any](t *testing.T, tool mcp.Tool) string {
	p := mcpgo.Protect(server.NewMCPServer("test", "1"), boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true})
	return panicOf(func() {
		mcpgo.AddPagedTool(p, tool, func(context.Context, mcp.CallToolRequest, In, *int) ([]int, *int, error) { return nil, nil, nil }, nil)
	})
}

func TestAPagedToolWhoseArgumentsWouldBeLostIsRefused(t *testing.T) {
	type Embedding struct {
		window
		Tenant string `json:"tenant"`
	}
	for name, got := range map[string]string{
		"embeds a reader":        register[Embedding](t, mcp.NewTool("t")),
		"embeds one deeper down": register[struct{ Filter Embedding }](t, mcp.NewTool("t")),
		"in a list":              register[struct{ Filters []Embedding }](t, mcp.NewTool("t")),
		"two of one name": register[struct {
			baseA
			baseB
		}](t, mcp.NewTool("t")),
		"another case": register[struct{ Tenant string }](t, mcp.NewTool("t", mcp.WithString("tenant", mcp.Required()))),
		"option string": register[struct {
			N int `json:"n,string"`
		}](t, mcp.NewTool("t")),
	} {
		if !strings.HasPrefix(got, `mcpgo: the paged tool "t": `) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	type List []List
	type Filter struct {
		Tenant string `json:"tenant"`
	}
	twice := json.RawMessage(`{"type":"object","properties":{"a":{"type":"object","properties":{"tenant":{}}},"b":{"type":"object","properties":{"TENANT":{}}}}}`)
	if got := register[struct {
		A Filter `json:"a"`
		B Filter `json:"b"`
	}](t, mcp.NewToolWithRawSchema("t", "", twice)); !strings.Contains(got, "only in upper and lower case") {
		t.Errorf("one type with two schemas: %q", got)
	}
	type Untagged struct{ Tenant string } // the author forgot the tag, and the schema says tenant
	const mine = `{"type":"object","properties":{"tenant":{"enum":["mine"]}}}`
	for _, filter := range []string{
		mine, `{"$ref":"#/$defs/f"}`, `{"allOf":[` + mine + `]}`, `{"anyOf":[{"$ref":"#/$defs/f"}]}`, `{"if":true,"then":` + mine + `}`,
		`{"$ref":"#/$defs/f","properties":{"Tenant":{}}}`,
		`{"dependentRequired":{"tenant":["reason"]}}`, `{"required":["tenant"]}`, `{"if":{"required":["tenant"]},"then":{"required":["reason"]}}`,
		`{"not":{"required":["tenant"]}}`, `{"dependentSchemas":{"tenant":false}}`, `{"dependencies":{"tenant":["reason"]}}`,
	} {
		schema := `{"type":"object","$defs":{"f":` + mine + `},"properties":{"filter":` + filter + `}}`
		if got := register[struct {
			Filter Untagged `json:"filter"`
		}](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(schema))); !strings.Contains(got, "only in upper and lower case") {
			t.Errorf("%s: %q", filter, got)
		}
	}
	type structs struct {
		A struct{ ID string }
		B struct {
			ID string `json:"id"`
		}
	}
	for where, filters := range map[string]string{
		"additionalProperties": `{"additionalProperties":` + mine + `}`, "properties": `{"properties":{"a":` + mine + `}}`,
	} {
		if got := register[struct{ Filters map[string]Untagged }](t, mcp.NewToolWithRawSchema("t", "",
			json.RawMessage(`{"type":"object","properties":{"Filters":`+filters+`}}`))); !strings.Contains(got, "only in upper and lower case") {
			t.Errorf("a map with %s: %q", where, got)
		}
	}
	for where, filters := range map[string]string{"items": `{"items":` + mine + `}`, "a list of items": `{"items":[` + mine + `]}`} {
		if got := register[struct{ Filters []Untagged }](t, mcp.NewToolWithRawSchema("t", "",
			json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"Filters":`+filters+`}}`))); !strings.Contains(got, "only in upper and lower case") {
			t.Errorf("a slice with %s: %q", where, got)
		}
	}
	type tenant struct {
		Tenant string `json:"tenant"`
	}
	for text, schema := range map[string]string{
		"beside a $ref": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"tenant":{"$ref":"#/definitions/name","enum":["mine"]}},` +
			`"definitions":{"name":{"type":"string"}}}`,
		"refers to the root":            `{"type":"object","properties":{"tenant":{"properties":{"v":{"$ref":"#"}}}}}`,
		"$recursiveRef refers to ":      `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"tenant":{"$recursiveRef":"#"}}}`,
		"cannot compile":                `{"type":"object","properties":{"tenant":{"enum":["mine"]}},"required":null}`,
		"cannot compile the input":      `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"tenant":{"enum":["mine"]}},"required":[]}`,
		"$schema inside":                `{"type":"object","properties":{"tenant":{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/a.json"}}}`,
		`refers to "#/x-defs/name"`:     `{"type":"object","x-defs":{"name":{"type":"string"}},"properties":{"tenant":{"$ref":"#/x-defs/name"}}}`,
		`refers to "common.json"`:       `{"$id":"https://example.com/a.json","type":"object","properties":{"tenant":{"$ref":"common.json"}}}`,
		`refers to "#/$defs/a/default"`: `{"type":"object","$defs":{"a":{"default":{"type":"string"}}},"properties":{"tenant":{"$ref":"#/$defs/a/default"}}}`,
		`refers to "#/$defs/missing"`:   `{"type":"object","properties":{"tenant":{"$ref":"#/$defs/missing"}}}`,
		`refers to "http://json-schema`: `{"type":"object","properties":{"tenant":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`,
	} {
		if got := register[tenant](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(schema))); !strings.Contains(got, text) {
			t.Errorf("%s: %q", schema, got)
		}
	}
	for _, name := range []string{"c#search", "50%", "a\tb"} {
		if got := register[search](t, mcp.NewTool(name)); !strings.Contains(got, "the name of the tool") {
			t.Errorf("the name %q: %q", name, got)
		}
	}
	for name, got := range map[string]string{
		"contains itself": register[struct {
			List List `json:"list"`
		}](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","properties":{"list":{"type":"array"}}}`))),
		"a struct":                       register[search](t, mcp.NewTool("t")),
		"a field reads":                  register[struct{ Window window }](t, mcp.NewTool("t")),
		"an any":                         register[any](t, mcp.NewTool("t", mcp.WithString("tenant"))),
		"two structs":                    register[structs](t, mcp.NewTool("t")),
		"two structs, with their schema": register[structs](t, mcp.NewTool("t", mcp.WithInputSchema[structs]())),
		"a map with its own names": register[struct {
			ID   string         `json:"id"`
			Meta map[string]any `json:"meta"`
		}](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","properties":{"id":{},"meta":{"properties":{"ID":{}}}}}`))),
		"annotations and dependencies": register[struct {
			ID     string         `json:"id"`
			Reason string         `json:"reason"`
			Meta   map[string]any `json:"meta"`
		}](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","properties":{"id":{"type":"string","x-mcp-header":"Id"},"reason":{},`+
			`"meta":{"properties":{"ID":{}}}},"dependentRequired":{"id":["reason"]}}`))),
		"a reference in draft-07": register[tenant](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object",`+
			`"properties":{"tenant":{"$ref":"#/definitions/name","description":"whose rows","x-order":1}},"definitions":{"name":{"type":"string"}}}`))),
		"references": register[tenant](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"$id":"https://example.com/a.json","type":"object",`+
			`"$defs":{"x-name":{"type":"string"},"all":true,"T0":{"$id":"T0","items":{"$ref":"T0"}},"own":{"$id":"own.json","items":{"$ref":"#"}},"a/b":{"$anchor":"here"}},`+
			`"properties":{"tenant":{"anyOf":[{"$ref":"#/$defs/x-name"},{"$ref":"#/$defs/all"},{"$ref":"T0"},{"$ref":"#here"},{"$ref":"#/$defs/a~1b"},{"$ref":"#/%24defs/all"},`+
			`{"$ref":"https://example.com/a.json#/$defs/own"},{"$ref":"#/properties/tenant/anyOf/0"}],"example":{"$ref":"#"}}}}`))),
		"an enum that is no list of names": register[tenant](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","deprecated":true,`+
			`"$defs":{"colour":{"enum":["red"]}},"properties":{"tenant":{"type":"string"},"sort":{"enum":["Tenant"]},"w":{"propertyNames":{"$ref":"#/$defs/colour"}}}}`))),
		"rules beside a reference": register[tenant](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object",`+
			`"properties":{"tenant":{"$ref":"#/$defs/name","enum":["mine"]}},"$defs":{"name":{"type":"string"}}}`))),
		"annotations with members": register[structs](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","x-ui":{"widget":{"id":1}},`+
			`"properties":{"A":{"properties":{"ID":{}}},"B":{"properties":{"id":{}}}}}`))),
		"a name with spaces": register[search](t, mcp.NewTool("a b/c?d:e.é")),
		"an argument called properties": register[struct {
			Type       string
			Properties map[string]any `json:"properties"`
		}](t, mcp.NewToolWithRawSchema("t", "", json.RawMessage(`{"type":"object","properties":{"Type":{},"properties":{"type":"object"}}}`))),
		"a cursor inside": register[struct{ Filter struct{ Cursor string } }](t, mcp.NewTool("t")),
		"a map":           register[map[string]any](t, mcp.NewTool("t")),
	} {
		if got != "<nil>" && got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// For example, a name may occur twice in an answer. Then a proxy in front of the server may read one
// value, and the handler the other.
func TestAnAnswerThatTwoParsersReadDifferentlyIsDropped(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l), as(t.Context(), "alice")
	ask := map[string]mcp.InputRequest{
		"form":   mcp.NewElicitationInputRequest(mcp.ElicitationParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}}),
		"sample": mcp.NewSamplingInputRequest(mcp.CreateMessageParams{MaxTokens: 1}),
		"roots":  mcp.NewRootsInputRequest(),
	}
	var got mcp.InputResponses
	srv.AddTool(mcp.NewTool("all"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if got = req.Params.InputResponses; req.Params.RequestState != "" {
			return mcp.NewToolResultText(""), nil
		}
		r := question().ToolResult()
		r.InputRequests = ask
		return r, nil
	})
	state := quote(send(alice, t, srv, "tools/call", `"name":"all"`).Result.RequestState)
	kept := func(key, answer string) bool {
		send(alice, t, srv, "tools/call", `"name":"all","requestState":`+state+`,"inputResponses":{`+quote(key)+`:`+answer+`}`)
		_, ok := got[key]
		return ok
	}
	for _, c := range []struct{ key, whole, twofold string }{
		{"form", `{"action":"accept","content":{"v":1}}`, `{"action":"decline","action":"accept","content":{"v":1}}`},
		{"form", `{"\u0061ction":"accept"}`, `{"action":"decline","\u0061ction":"accept"}`},
		{"form", `{"action":"accept","content":{"v":1,"V":2}}`, `{"action":"accept","content":{"v":1,"v":2}}`},
		{"form", `{"action":"accept","content":{"a":{"v":1},"b":{"v":1}}}`, `{"action":"accept","content":{"a":[{"v":1,"v":1}]}}`},
		{"form", `{"action":"accept","more":1,"More":2}`, `{"action":"decline","ACTION":"accept"}`},
		{"form", `{"action":"accept","content":{"Action":"x"}}`, `{"Action":"accept"}`},
		{"form", `{"action":"accept","_meta":{"a":1}}`, `{"action":"accept","content":{"v":1},"Content":{"v":2}}`},
		{"form", `{"action":"decline"}`, `{"action":"accept","content":{"v":1,"\ud800":1}}`},
		{"form", `{"action":"cancel","content":{"v":1e300}}`, "{\"action\":\"cancel\",\"content\":{\"v\":\"\xff\"}}"},
		{"sample", `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"x","text":"y"}}`},
		{"sample", `{"role":"assistant","model":"m","content":[{"type":"text","text":"x"}],"stopReason":"x"}`, `{"role":"assistant","model":"m","Model":"n","content":{"type":"text","text":"x"}}`},
		{"roots", `{"roots":[{"uri":"file:///a","name":"a"},{"uri":"file:///b","more":1}]}`, `{"roots":[{"uri":"file:///a"},{"uri":"file:///a","URI":"file:///b"}]}`},
		{"roots", `{"roots":[]}`, `{"roots":[],"Roots":[{"uri":"file:///b"}]}`},
	} {
		if !kept(c.key, c.whole) {
			t.Errorf("%s is dropped", c.whole)
		}
		if kept(c.key, c.twofold) {
			t.Errorf("%s reaches the handler", c.twofold)
		}
	}
}

// mcp-go reads these names in an answer, in upper or lower case. The adapter must know all of
// them.
func TestTheNamesOfAnswersAreKnown(t *testing.T) {
	for want, types := range map[string][]any{
		"_meta action content model resultType role roots stopReason": {mcp.ElicitationResult{}, mcp.CreateMessageResult{}, mcp.ListRootsResult{}},
		"_meta name uri": {mcp.Root{}},
	} {
		names := make(map[string]bool)
		for _, of := range types {
			for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
				if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); !field.Anonymous {
					names[cmp.Or(name, field.Name)] = true
				}
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(names)), " "); got != want {
			t.Errorf("mcp-go reads %s, not %s: tell isExact", got, want)
		}
	}
}

// TestAPagedToolServesOnlyItsOwnServer adds the handler of a paged tool to another protected
// server. There the handler must refuse every call, because it does not know the users and the
// tool names of that server.
func TestAPagedToolServesOnlyItsOwnServer(t *testing.T) {
	mounts := map[string]func(main, sub *server.MCPServer){
		"its handler": func(main, sub *server.MCPServer) {
			for _, tool := range sub.ListTools() {
				main.AddTool(tool.Tool, tool.Handler)
			}
		},
		"its handler under another name": func(main, sub *server.MCPServer) {
			tool := *sub.GetTool("rows")
			tool.Tool.Name = "a_rows"
			main.AddTools(tool)
		},
		"a handler that calls it": func(main, sub *server.MCPServer) {
			main.AddTool(mcp.NewTool("rows"), sub.GetTool("rows").Handler)
		},
	}
	for name, mount := range mounts {
		l := new(log)
		sub := server.NewMCPServer("sub", "1")
		p := mcpgo.Protect(sub, boundary(t, l, nil), &mcpgo.Options{AllowAnonymous: true, Logger: l.logger()})
		mcpgo.AddPagedTool(p, mcp.NewTool("rows"), func(context.Context, mcp.CallToolRequest, map[string]any, *string) ([]string, *string, error) {
			next := "position"
			return []string{}, &next, nil
		}, nil)
		main := server.NewMCPServer("main", "1")
		mcpgo.Protect(main, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
		mount(main, sub)
		alice := as(t.Context(), "alice")
		if r := send(alice, t, sub, "tools/call", `"name":"rows"`); r.Error != nil {
			t.Errorf("%s: its own server: %s", name, r.raw)
		}
		for tool := range main.ListTools() {
			if r := send(alice, t, main, "tools/call", `"name":`+quote(tool)); r.Error == nil {
				t.Errorf("%s: %s", name, r.raw)
			}
		}
		has(t, l, "a paged tool got a context that comes from no call of its server")
	}
}

// TestAResultMayBeSentTwice uses middleware that answers two equal calls with copies of one
// result. Both copies must reach the client.
func TestAResultMayBeSentTwice(t *testing.T) {
	var first *mcp.CallToolResult
	srv := protected(t, new(log), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if first == nil {
				result, err := next(ctx, req)
				if err != nil {
					return nil, err
				}
				first = result
			}
			copied := *first
			return &copied, nil
		}
	}))
	alice := as(t.Context(), "alice")
	one, two := send(alice, t, srv, "tools/call", `"name":"ask"`), send(alice, t, srv, "tools/call", `"name":"ask"`)
	if one.Result.RequestState == "" || two.Result.RequestState != one.Result.RequestState {
		t.Errorf("the first: %s\nthe second: %s", one.raw, two.raw)
	}
}

// TestAResultOfAnOlderClientMayBeSentToAnother uses middleware that keeps the first result for all
// clients of a user. mcp-go calls the middleware for an older client, too.
func TestAResultOfAnOlderClientMayBeSentToAnother(t *testing.T) {
	var first *mcp.CallToolResult
	srv := protected(t, new(log), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if req.Params.RequestState != "" || first == nil {
				result, err := next(ctx, req)
				if first == nil {
					first = result
				}
				return result, err
			}
			copied := *first
			return &copied, nil
		}
	}))
	older(t, srv, `"name":"ask"`)
	if r := send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"ask"`); !strings.HasPrefix(r.Result.RequestState, "ms1.") {
		t.Errorf("got %s", r.raw)
	}
}

// TestAPagedToolReadsARequestWithDecodedArgumentsAlone uses middleware that calls a paged tool with a
// new request. The new request has Arguments, and no RawArguments.
func TestAPagedToolReadsARequestWithDecodedArgumentsAlone(t *testing.T) {
	for name, params := range map[string]mcp.CallToolParams{
		"a map":      {Name: "search", Arguments: map[string]any{"limit": 1}},
		"JSON alone": {Name: "search", Arguments: json.RawMessage(`{"limit":1}`)},
	} {
		anew := func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return next(ctx, mcp.CallToolRequest{Params: params})
			}
		}
		outer, inner := paged(t, new(log), nil, server.WithToolHandlerMiddleware(anew)), paged(t, new(log), nil)
		inner.Use(anew)
		for where, srv := range map[string]*server.MCPServer{"outer": outer, "inner": inner} {
			if p, r := page(as(t.Context(), "alice"), t, srv, `{"limit":2}`); len(p.Items) != 1 {
				t.Errorf("%s, %s middleware: %s", name, where, r.raw)
			}
		}
	}
}

// TestAHandlerThatCallsAPagedToolMustChangeBothForms uses a handler that changes only RawArguments.
// This handler then calls the handler of a paged tool.
func TestAHandlerThatCallsAPagedToolMustChangeBothForms(t *testing.T) {
	l := new(log)
	srv := paged(t, l, nil)
	srv.AddTool(mcp.NewTool("report"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		req.Params.RawArguments = json.RawMessage(`{"limit":1}`)
		return srv.GetTool("search").Handler(ctx, req)
	})
	isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"report","arguments":{"limit":2}`))
	has(t, l, "a paged tool got a call whose Params.Arguments and Params.RawArguments disagree")
}

// TestMiddlewareThatDropsItsContextIsNamed uses outer middleware that passes on the wrong context:
// one without a server, or one from a call of another server.
func TestMiddlewareThatDropsItsContextIsNamed(t *testing.T) {
	var others context.Context
	other := protected(t, new(log))
	other.AddTool(mcp.NewTool("keep"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		others = ctx
		return mcp.NewToolResultText(""), nil
	})
	send(as(t.Context(), "alice"), t, other, "tools/call", `"name":"keep"`)
	for where, passed := range map[string]context.Context{"no server": context.Background(), "another server": others} {
		l := new(log)
		srv := protected(t, l, server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
			return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				user, _ := userFromContext(ctx)
				return next(as(passed, user), req)
			}
		}))
		isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"ask"`))
		has(t, l, "must pass on the context that it got")
		if strings.Contains(l.String(), "WithHooks") {
			t.Errorf("%s: the log blames the hooks: %s", where, l)
		}
	}
}

// TestARawArgumentHasNoNameThatTheSchemaDenies uses an argument that the handler decodes by itself, with
// encoding/json, which ignores the case of names. The schema denies the name admin.
func TestARawArgumentHasNoNameThatTheSchemaDenies(t *testing.T) {
	for _, filter := range []string{
		`{"properties":{"admin":false}}`, `{"not":{"required":["admin"]}}`, `{"propertyNames":{"not":{"enum":["admin"]}}}`,
		`{"propertyNames":{"not":{"const":"admin"}}}`, `{"propertyNames":{"not":{"$ref":"#/$defs/reserved"}}}`, `{"propertyNames":{"$ref":"#/$defs/open"}}`,
		`{"$id":"https://example.com/filter","propertyNames":{"not":{"$ref":"https://example.com/root#/$defs/closed"}}}`, `{"not":{"enum":[{"admin":true}]}}`, `{"not":{"const":{"admin":true}}}`,
	} {
		srv := server.NewMCPServer("test", "1", server.WithInputSchemaValidation())
		p := mcpgo.Protect(srv, boundary(t, new(log), nil), &mcpgo.Options{AllowAnonymous: true, Logger: new(log).logger()})
		ran := false
		schema := json.RawMessage(`{"$id":"https://example.com/root","type":"object",` +
			`"$defs":{"reserved":{"enum":["admin","owner"]},"closed":{"$ref":"#/$defs/reserved"},"open":{"not":{"$ref":"#/$defs/reserved"}}},"properties":{"filter":` + filter + `}}`)
		mcpgo.AddPagedTool(p, mcp.NewToolWithRawSchema("t", "", schema), func(context.Context, mcp.CallToolRequest, struct {
			Filter json.RawMessage `json:"filter"`
		}, *int) ([]string, *int, error) {
			ran = true
			return []string{}, nil, nil
		}, nil)
		for _, name := range []string{"admin", "Admin"} {
			if send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"filter":{`+quote(name)+`:true}}`); ran {
				t.Errorf("%s: the handler got %s", filter, name)
			}
		}
		if send(t.Context(), t, srv, "tools/call", `"name":"t","arguments":{"filter":{"other":true}}`); !ran {
			t.Errorf("%s: the handler did not run", filter)
		}
	}
}

// TestInnerMiddlewareThatDropsItsContextIsNamed uses middleware that was added after Protect and passes on
// a context of its own to a paged tool.
func TestInnerMiddlewareThatDropsItsContextIsNamed(t *testing.T) {
	l := new(log)
	srv := paged(t, l, nil)
	srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return next(context.Background(), req)
		}
	})
	isInternal(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"search","arguments":{"limit":2}`))
	has(t, l, "a context that comes from no call of its server")
}
