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

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/exactjson"
	"github.com/mcpseal/mcpseal/gosdk/internal/exactargs"
)

// PageHandler returns one page. After is where the previous page ended, as the
// handler returned it then; nil on the first page. Next is where this page ends; nil
// on the last page.
type PageHandler[In, At, Item any] func(ctx context.Context, req *mcp.CallToolRequest, in In, after *At) (items []Item, next *At, err error)

// PageOptions names what [AddPagedTool] adds to arguments and results, and limits the
// arguments.
type PageOptions = adapter.PageOptions

// AddPagedTool registers a tool that returns its items page by page. Its
// arguments gain an optional cursor. Its result is the items and, unless the
// page is the last, the cursor of the next.
//
// A cursor works for the user and the arguments of the page that it came with (except
// those in PageOptions.Unbound), for this tool of this service, and for an hour. Any
// other cursor is answered with -32602 before the handler runs, unless the other
// arguments are refused first. An empty cursor asks for the first page. A position is
// written as JSON, in at most 256 bytes: keep a key in it, not a row. An issuer in
// Options.Cursors may have another lifetime and another limit.
//
// The arguments are read once. The value that the schema accepts, with the
// schema's defaults in it, is the one that the handler gets and that the cursor
// is bound to. So 1 and 1.0 are the same argument, and so are a default that is
// left out and one that is written.
//
//   - Names are case-sensitive. One that differs from a field's only in case is
//     refused, at any depth. So is a map key that its type would write in another
//     way, and base64 that Go would write in another way.
//   - A whole number has at most 64 bits, however it is written, and arrives
//     exactly or is refused; -0 arrives as 0. In a field of type any it is an int64,
//     or a uint64 if it is too large for that.
//   - Any other number is a float64, and is refused if rounding made it whole. A
//     float32 field gets the nearest float32: the schema checked the float64.
//   - A Go array takes exactly as many items as its length.
//   - The schema's bounds must be less than 2^53 in magnitude, and a multipleOf must
//     also be whole: the schema library calculates with doubles. If the schema has a
//     multipleOf, every integer in the arguments must be less than 2^53 in magnitude.
//   - A type with its own UnmarshalJSON, such as json.RawMessage, gets the JSON
//     of the value. It never gets two names that differ only in case, nor a name
//     that differs only in case from any name in the schema. Names that only a
//     patternProperties of the schema matches are not known: check those.
//
// Without an InputSchema the schema is made from In, or from what In points to, as
// mcp.AddTool does. It describes a type with its own UnmarshalJSON by its fields or
// its kind, and json.RawMessage as anything: set InputSchema if the type reads
// something else.
//
// The listed schema must allow the cursor, for clients that check arguments
// themselves: mind rules at its root, such as maxProperties or propertyNames. The
// output schema describes an item, unless a type in Item has its own JSON, contains
// itself, or is another that jsonschema cannot describe, such as a map[int]string.
//
// It panics, as mcp.AddTool does, when the tool cannot be registered: because a name
// clashes with one of the arguments, a name in Unbound is no argument or is there
// twice, a default does not fit its schema or its field, a schema made from In has an
// argument that no field gets, or a field has the option string. In a schema made from
// In, a struct that embeds a type with its own UnmarshalJSON is refused, and so is a
// number type with its own UnmarshalJSON: set InputSchema. A $ref must point into the
// same schema. It may lead back to itself only through a keyword that steps into the
// value, such as properties or items.
//
// It also panics when the schema has a default that would not be applied. Defaults are
// applied in the properties of the arguments, and in the properties of an object there,
// but not where $ref, items, allOf or another keyword leads. A required argument needs no
// default.
//
// It also panics when the schema has a rule that would not be applied: a rule of
// another draft than its $schema names, a rule beside a $ref in draft-07, a rule
// without the one that it needs (then without if), or an unknown keyword, which may be
// a misspelt rule. Begin your own keywords with x-. A format, and a keyword that begins
// with content, only describes, as the drafts say: check those in the handler.
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

// refuse logs why the arguments were refused, and returns an error that tells the
// client only that they were.
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
	in, bound, token, err := t.arguments.Read(req.Params.Arguments, t.names.MaxArguments)
	if errors.Is(err, exactjson.ErrMalformed) {
		return nil, t.refuse(ctx, err.Error())
	} else if err != nil {
		return nil, err
	}
	if len(bound) > t.p.policy.MaxArguments { // bound may be longer than the arguments, because of defaults and escapes
		return nil, t.refuse(ctx, "with defaults, more than mcpseal.Config.MaxArguments")
	}
	text, err := adapter.ServePage(ctx, t.p.options.Cursors, mcpseal.Request{
		Method: methodTool, Target: t.name, Arguments: bound,
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
