package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
)

// PageHandler returns one page. After is where the page before ended, as its
// handler said; nil on the first page. Next is where this one ends; nil when
// there is no other behind it.
type PageHandler[In, At, Item any] func(ctx context.Context, req *mcp.CallToolRequest, in In, after *At) (items []Item, next *At, err error)

// PageOptions names what [AddPagedTool] adds to arguments and results.
type PageOptions struct {
	Cursor     string // the argument. "" means cursor
	NextCursor string // the member of the result. "" means nextCursor
	Items      string // the member of the result. "" means items
}

// AddPagedTool registers a tool that returns its items page by page. Its
// arguments gain an optional cursor, its result is the items and, unless the
// page is the last, the cursor of the next.
//
// A cursor works for the user and the arguments of the page that it came with,
// for this tool of this service, and for an hour. Any other is answered with
// -32602 before the handler runs. A position is written as JSON, in at most 256
// bytes: keep a key in it, not a row.
//
// It panics, as mcp.AddTool does, when the tool cannot be registered: because a
// name clashes with one of the arguments, for example.
func AddPagedTool[In, At, Item any](p *Protected, tool *mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions) {
	if tool == nil || handler == nil {
		panic("gosdk: the paged tool: it needs a tool and a handler")
	}
	if err := addPagedTool(p, tool, handler, options); err != nil {
		panic(fmt.Sprintf("gosdk: the paged tool %q: %v", tool.Name, err))
	}
}

func addPagedTool[In, At, Item any](p *Protected, tool *mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions) error {
	if p == nil || p.server == nil {
		return errors.New("it needs the value that Protect returned")
	}
	if p.options.Cursors == nil {
		return errors.New("the boundary has no keys of its own; set Options.Cursors, or add mcpseal.NativeFormat to Config.AlsoOpen")
	}
	names := PageOptions{"cursor", "nextCursor", "items"}
	if options != nil {
		names = options.orElse(names)
	}
	if names.NextCursor == names.Items {
		return fmt.Errorf("the result cannot have two members called %q", names.Items)
	}
	input, err := pagedInput[In](tool, names.Cursor)
	if err != nil {
		return err
	}
	output, err := pagedOutput[Item](tool, names)
	if err != nil {
		return err
	}
	t := *tool
	t.InputSchema, t.OutputSchema = input, output
	paged := pagedTool[In, At, Item]{p, t.Name, names, slices.Collect(maps.Keys(input.Properties)), cursor.For[At](p.options.Cursors), handler}
	mcp.AddTool(p.server, &t, paged.call)
	return nil
}

func (o PageOptions) orElse(other PageOptions) PageOptions {
	pick := func(name, otherwise string) string {
		if name == "" {
			return otherwise
		}
		return name
	}
	return PageOptions{pick(o.Cursor, other.Cursor), pick(o.NextCursor, other.NextCursor), pick(o.Items, other.Items)}
}

// pagedInput is the schema of the arguments with the cursor among them.
func pagedInput[In any](tool *mcp.Tool, name string) (*jsonschema.Schema, error) {
	schema, err := schemaOf[In](tool.InputSchema)
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("the arguments are of type %q, not object", schema.Type)
	}
	for property := range schema.Properties {
		if strings.EqualFold(property, name) {
			return nil, fmt.Errorf("the argument %q clashes with the cursor's name; set PageOptions.Cursor to another", property)
		}
	}
	if slices.Contains(schema.Required, name) {
		return nil, fmt.Errorf("the cursor %q is required, but the first page has none", name)
	}
	if schema.Properties == nil {
		schema.Properties = map[string]*jsonschema.Schema{}
	}
	schema.Properties[name] = &jsonschema.Schema{
		Types:       []string{"string", "null"},
		Description: "Where to go on: the cursor that came with the page before, with the other arguments unchanged. Leave it out for the first page.",
	}
	if schema.PropertyOrder != nil {
		schema.PropertyOrder = append(schema.PropertyOrder, name)
	}
	return schema, nil
}

// schemaOf is the schema that was given, or the one of T, in memory of its own.
func schemaOf[T any](given any) (*jsonschema.Schema, error) {
	if given == nil {
		return jsonschema.For[T](nil)
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	schema := new(jsonschema.Schema)
	return schema, json.Unmarshal(text, schema)
}

// pagedOutput is the schema of the result.
func pagedOutput[Item any](tool *mcp.Tool, names PageOptions) (*jsonschema.Schema, error) {
	if tool.OutputSchema != nil {
		return nil, errors.New("the output schema is made from the items; leave it out")
	}
	item, err := jsonschema.For[Item](nil)
	if err != nil {
		return nil, fmt.Errorf("the items: %w", err)
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			names.Items:      {Type: "array", Items: item},
			names.NextCursor: {Type: "string", Description: "Where the next page begins. There is none on the last page."},
		},
		PropertyOrder: []string{names.Items, names.NextCursor},
		Required:      []string{names.Items},
	}, nil
}

// pagedTool is a tool that was registered.
type pagedTool[In, At, Item any] struct {
	p          *Protected
	name       string
	names      PageOptions
	properties []string // of the arguments
	pages      cursor.Pages[At]
	handler    PageHandler[In, At, Item]
}

func (t *pagedTool[In, At, Item]) call(ctx context.Context, req *mcp.CallToolRequest, given json.RawMessage) (*mcp.CallToolResult, any, error) {
	// The cursor is bound to the arguments as they came. The handler gets them
	// with the schema's defaults, but not as the SDK wrote them anew: it puts
	// numbers through a float.
	arguments, token, err := t.cut(req.Params.Arguments)
	if err != nil {
		return nil, nil, err
	}
	complete, _, err := t.cut(given)
	if err != nil {
		return nil, nil, err
	}
	var in In
	for _, text := range [][]byte{complete, arguments} {
		if err := json.Unmarshal(text, &in); err != nil {
			return nil, nil, fmt.Errorf("the arguments do not fit: %w", err)
		}
	}
	t.p.warnAnonymous(ctx, req)
	place, err := t.pages.Open(ctx, mcpseal.Request{
		Method: methodTool, Target: t.name, Arguments: arguments,
		Principal: func(ctx context.Context) (string, error) { return t.p.principal(ctx, req) },
	}, token)
	if err != nil {
		return nil, nil, cursorError(err)
	}
	var after *At
	if !place.First() {
		after = &place.After
	}
	items, next, err := t.handler(ctx, req, in, after)
	if err != nil {
		return nil, nil, err
	}
	if items == nil {
		items = []Item{}
	}
	result := map[string]any{t.names.Items: items}
	if next != nil {
		token, err := place.Next(ctx, *next)
		if err != nil {
			return nil, nil, cursorError(err)
		}
		result[t.names.NextCursor] = token
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, nil, fmt.Errorf("the items cannot be written as JSON: %w", err)
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
}

// cut takes the cursor out of the arguments.
func (t *pagedTool[In, At, Item]) cut(text []byte) (rest []byte, token string, err error) {
	if len(text) == 0 {
		return []byte("{}"), "", nil
	}
	// Two members of one name must not become one by being cut.
	binding := mcpseal.Binding{Arguments: text}
	if _, err := binding.ArgumentsDigest(); err != nil {
		return nil, "", invalidParams()
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, "", invalidParams()
	}
	for name := range members {
		if strings.ContainsRune(name, utf8.RuneError) {
			return nil, "", invalidParams() // half a surrogate pair, which becomes one like any other
		}
		// encoding/json does not mind case; the schema does, if it is closed.
		if !slices.Contains(t.properties, name) && slices.ContainsFunc(t.properties, func(p string) bool { return strings.EqualFold(p, name) }) {
			return nil, "", invalidParams()
		}
	}
	if value, ok := members[t.names.Cursor]; ok {
		var cursor *string
		if err := json.Unmarshal(value, &cursor); err != nil {
			return nil, "", invalidParams()
		}
		if cursor != nil {
			token = *cursor
		}
		delete(members, t.names.Cursor)
	}
	rest, err = json.Marshal(members)
	return rest, token, err
}

func invalidParams() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params"}
}
