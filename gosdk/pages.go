package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/exactjson"
	"github.com/tripseal/tripseal/gosdk/internal/exactargs"
)

// PageHandler returns the items of one page, and the position where this page ends, or
// nil if it is the last page. To get the next page, the handler is called with that
// position. For the first page, it is called with nil in place of a position. Pass a
// PageHandler to [AddPagedTool].
type PageHandler[In, At, Item any] func(ctx context.Context, req *mcp.CallToolRequest, in In, after *At) (items []Item, next *At, err error)

// PageOptions sets the names of what [AddPagedTool] adds to arguments and results, and
// limits the arguments. Pass it to AddPagedTool; nil means the defaults.
type PageOptions = adapter.PageOptions

// AddPagedTool registers a tool that returns its items page by page. It adds an optional
// cursor to the tool's arguments. The tool's result has the items and, unless the page
// is the last, the cursor of the next page. Use AddPagedTool if a tool can have more
// items than fit into one result.
//
// A cursor works only for the user and the arguments of the page that it came with (except the
// arguments in PageOptions.Unbound), only for this tool of this service, and only for an hour. With
// any other cursor, a call fails with the error -32602 before the handler runs. The tool's own
// arguments are checked before the cursor, so a call may fail because of them instead. An empty
// cursor means the first page. A position is written as JSON, in at most 256 bytes: put a key into
// it, not a row. An issuer in Options.Cursors may have another lifetime and another limit.
//
// The arguments are read once. The value that the schema accepts, with the schema's
// defaults in it, is the value that the handler gets and that the cursor is bound to. So
// 1 and 1.0 are the same argument. It also makes no difference whether the client writes
// a default value or leaves it out.
//
//   - Names are case-sensitive. A name that differs from a field's name only in case is
//     refused, at any depth. A map key is refused if its Go type would write it in
//     another way. Base64 is refused if Go would write it in another way.
//   - A whole number has at most 64 bits, however it is written, and arrives exactly or
//     is refused; -0 arrives as 0. In a field of type any, a whole number is an int64,
//     or a uint64 if it is too large for an int64.
//   - Any other number is rounded to a float64, which the schema checks. For a float32 field, the
//     float64 is then rounded to the nearest float32, which the schema does not check. The number
//     is refused if rounding made it whole.
//   - A Go array accepts exactly as many items as its length.
//   - The schema's bounds must be less than 2^53 in magnitude, and a multipleOf must
//     also be whole: the schema library calculates with doubles. If the schema has a
//     multipleOf, every integer in the arguments must be less than 2^53 in magnitude.
//   - A type with its own UnmarshalJSON, such as json.RawMessage, gets the JSON of the
//     value. This JSON never has two names that differ only in case, nor a name that
//     differs only in case from any name in the schema. Names that match only a
//     patternProperties of the schema are an exception: the type must check those names
//     itself.
//
// Without an InputSchema, AddPagedTool makes the schema from the type In, as mcp.AddTool does. If
// In is a pointer, it makes the schema from the type that In points to. If a type has its own
// UnmarshalJSON, the schema describes the fields or the kind of the type, not what UnmarshalJSON
// reads. Set InputSchema if UnmarshalJSON reads something else. For json.RawMessage, the schema
// allows any value.
//
// The schema in tools/list must allow the cursor, because some clients check arguments
// themselves. So take care with rules at the root of the schema, such as maxProperties
// or propertyNames.
//
// The output schema describes the items only if jsonschema can describe the type Item
// and every type inside it. It cannot describe a type that contains itself, a type with
// its own methods for JSON (except time.Time and slog.Level), and some other types, such
// as map[int]string.
//
// AddPagedTool panics, as mcp.AddTool does, when the tool cannot be registered, for
// example for one of these reasons:
//
//   - The name of the cursor clashes with the name of an argument.
//   - PageOptions.Unbound has a name that is not an argument, or has the same name twice.
//   - A default does not fit its schema or its Go field.
//   - The json tag of a field has the option ",string".
//   - The schema is made from the type In, and has an argument that no Go field gets.
//   - The schema is made from the type In, and In contains a struct that embeds a type
//     with its own UnmarshalJSON, or a number type with its own UnmarshalJSON. For such
//     types, set InputSchema.
//   - A $ref points out of the schema.
//   - A $ref leads back to itself, and the check of a value would never end. A $ref may lead back
//     to itself inside a keyword for a part of the value, such as properties or items.
//
// AddPagedTool also panics when the schema has a default that would not be applied. The default of
// an argument is applied. If an argument is an object, the defaults of its properties are applied
// too, and so on. Defaults in a schema under $ref, items, allOf or another keyword are not applied.
// The default of a required argument has no effect: a call without the argument is refused.
//
// AddPagedTool also panics when the schema has a rule that would not be applied: a rule
// of another draft than the one that $schema names, a rule beside a $ref in draft-07, a
// rule that needs another rule which is missing ("then" without "if"), or an unknown
// keyword, which may be a misspelt rule. Begin the names of your own keywords with x-. A
// format, and a keyword that begins with "content", only describes a value, as the
// drafts say: check such values in the handler.
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
	if p.protection.options.Cursors == nil {
		return adapter.ErrNoKeys
	}
	names, err := options.WithDefaults(p.protection.policy.MaxArguments)
	if err != nil {
		return err
	}
	arguments, listed, err := exactargs.New[In](tool.InputSchema, names.Cursor, names.Unbound...)
	if err != nil {
		return err
	}
	output, err := pagedOutput[Item](tool, names)
	if err != nil {
		return err
	}
	t := *tool
	t.InputSchema, t.OutputSchema = listed, output
	paged := pagedTool[In, At, Item]{p.protection, t.Name, names, arguments, handler}
	p.server.AddTool(&t, paged.serve)
	return nil
}

// pagedTool is a tool that AddPagedTool registered.
type pagedTool[In, At, Item any] struct {
	p         *Protection
	name      string
	names     PageOptions
	arguments *exactargs.Reader[In]
	handler   PageHandler[In, At, Item]
}

// refuse logs why the arguments were refused. It returns an error that tells the client
// that they were refused, but not why.
func (t *pagedTool[In, At, Item]) refuse(ctx context.Context, why string) error {
	t.p.logger().WarnContext(ctx, "gosdk: the arguments of a paged tool were refused", "tool", t.name, "cause", why)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params"}
}

// serve handles a call, and sends errors as the SDK's typed tools do.
func (t *pagedTool[In, At, Item]) serve(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result, err := t.call(ctx, req)
	if err == nil {
		return result, nil
	}
	if wire, ok := err.(*jsonrpc.Error); ok {
		return nil, wire
	}
	failed := new(mcp.CallToolResult)
	failed.SetError(err)
	return failed, nil
}

func (t *pagedTool[In, At, Item]) call(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	in, boundText, token, err := t.arguments.Read(req.Params.Arguments, t.names.MaxArguments)
	if errors.Is(err, exactjson.ErrMalformed) {
		return nil, t.refuse(ctx, err.Error())
	} else if err != nil {
		return nil, err
	}
	if len(boundText) > t.p.policy.MaxArguments { // this text may be longer than the arguments, because of defaults and escapes
		return nil, t.refuse(ctx, "the arguments with their defaults are longer than tripseal.Config.MaxArguments")
	}
	text, err := adapter.ServePage(ctx, t.p.options.Cursors, tripseal.Request{
		Method: methodTool, Target: t.name, Arguments: boundText,
		Principal: t.p.callerIn(ctx, req),
	}, token, t.names, func(after *At) ([]Item, *At, error) { return t.handler(ctx, req, in, after) })
	if refused, ok := err.(*adapter.CursorError); ok {
		wire := refused.Wire()
		return nil, &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
	} else if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: json.RawMessage(text), Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil
}

// pagedOutput returns the output schema of a paged tool.
func pagedOutput[Item any](tool *mcp.Tool, names PageOptions) (*jsonschema.Schema, error) {
	if tool.OutputSchema != nil {
		return nil, errors.New("the output schema is made from the items; leave it out")
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			names.Items:      {Type: "array", Items: exactargs.ItemSchema(reflect.TypeFor[Item]())},
			names.NextCursor: {Type: "string", Description: "Where the next page begins. There is none on the last page."},
		},
		PropertyOrder: []string{names.Items, names.NextCursor},
		Required:      []string{names.Items},
	}, nil
}
