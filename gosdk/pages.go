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
	"github.com/tripseal/tripseal/cursor"
)

// PageHandler returns the items of one page, and the position where this page ends, or nil if it is the last page. For
// the first page, it is called with nil in place of a position.
type PageHandler[In, At, Item any] func(
	ctx context.Context, req *mcp.CallToolRequest, in In, after *At) (items []Item, next *At, err error)

// PageOptions sets the names of what [AddPagedTool] adds to arguments and results. Nil means the defaults.
type PageOptions = cursor.PageOptions

// AddPagedTool registers a tool that returns its items page by page. It is a typed tool of the SDK with one more
// argument, the cursor. Its result has the items and, unless the page is the last, the cursor of the next page.
//
// A cursor works only for the user and the arguments of the page that it came with (except those in
// PageOptions.Unbound), only for this tool of this service, and only for an hour. With any other cursor, a call fails
// with the error -32602. Arguments are the same if they have the same value; a default that is written out is another
// argument than one that is left out. A cursor that is missing, null or empty means the first page. A position is
// written as JSON, in at most 256 bytes: put a key into it, not a row.
//
// The cursor is taken out of the arguments before inner middleware, the schema and the handler see them. AddPagedTool
// panics where mcp.AddTool does, if an argument has the cursor's name in any case, and if PageOptions.Unbound has a
// name that is no argument. Without an OutputSchema it describes the items as [jsonschema.For] does. Do not register
// another tool under the name later.
func AddPagedTool[In, At, Item any](
	s *Server, tool *mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions,
) {
	if tool == nil || handler == nil {
		panic("gosdk: the paged tool: it needs a tool and a handler")
	}
	if err := addPagedTool(s, tool, handler, options); err != nil {
		panic(fmt.Sprintf("gosdk: the paged tool %q: %v", tool.Name, err))
	}
}

func addPagedTool[In, At, Item any](
	s *Server, tool *mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions,
) error {
	if s == nil || s.server == nil {
		return errors.New("it needs the value that Protect returned")
	}
	if s.protector.options.Cursors == nil {
		return errors.New("the boundary has no keys of its own; " +
			"set Options.Cursors, or add tripseal.NativeFormat to Config.AlsoOpen")
	}
	paged, err := options.WithDefaults(s.protector.policy.MaxArguments)
	if err != nil {
		return err
	}
	input, err := inputSchema[In](tool.InputSchema)
	if err != nil {
		return fmt.Errorf("the input schema: %w", err)
	}
	if input, err = paged.InputSchema(input); err != nil {
		return err
	}
	t := *tool
	t.InputSchema = json.RawMessage(input)
	if t.OutputSchema == nil {
		output, err := outputSchema[Item](&paged)
		if err != nil {
			return err
		}
		t.OutputSchema = json.RawMessage(output)
	}
	serve := func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		text, err := servePage(ctx, s, t.Name, &paged, req, func(after *At) ([]Item, *At, error) {
			return handler(ctx, req, in, after)
		})
		if err != nil {
			return nil, nil, err
		}
		// The SDK would decode a typed output, and round its integers.
		content := []mcp.Content{&mcp.TextContent{Text: string(text)}}
		return &mcp.CallToolResult{StructuredContent: text, Content: content}, nil, nil
	}
	s.paged.Store(t.Name, &paged) // first, so that no call arrives without its cursor taken out
	mcp.AddTool(s.server, &t, serve)
	return nil
}

// servePage returns the result of one page. Its error is one that the SDK's typed tools send as it should be sent.
func servePage[At, Item any](
	ctx context.Context, s *Server, name string, options *PageOptions, req *mcp.CallToolRequest,
	handler func(after *At) ([]Item, *At, error),
) (json.RawMessage, error) {
	arrived, ok := ctx.Value(pageKey{}).(*arrivedPage)
	if !ok || arrived.at != s {
		return nil, s.protector.refuse(ctx, methodTool, "a paged tool got a call that has not come through "+
			"its server's own middleware, or inner middleware replaced its context")
	}
	text, err := cursor.ServePage(ctx, s.protector.options.Cursors, tripseal.Request{
		Method: methodTool, Target: name, Arguments: req.Params.Arguments, Principal: s.protector.userOf(req),
	}, arrived.cursor, options, handler)
	if wire, refused := err.(tripseal.WireError); refused {
		return nil, sdkError(wire)
	}
	return text, err
}

// inputSchema returns the JSON of the schema that mcp.AddTool gives to a tool.
func inputSchema[In any](given any) ([]byte, error) {
	if given != nil {
		return json.Marshal(given)
	}
	in := reflect.TypeFor[In]()
	if in == reflect.TypeFor[any]() {
		return []byte(`{"type":"object"}`), nil
	}
	if in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	schema, err := jsonschema.ForType(in, &jsonschema.ForOptions{})
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}

// outputSchema returns the JSON of the output schema. The items are described if the SDK's schema library can describe
// their type.
func outputSchema[Item any](options *PageOptions) ([]byte, error) {
	var item json.RawMessage
	if schema, err := jsonschema.For[Item](nil); err == nil {
		if item, err = json.Marshal(schema); err != nil {
			return nil, err
		}
	}
	return options.OutputSchema(item)
}

// pageKey is the key in the context of a paged tool's call. Its value is an *arrivedPage.
type pageKey struct{}

type arrivedPage struct {
	at     *Server
	cursor string
}

// cutCursors is a receiving middleware that runs right after the one of the Protection. It takes the cursors out of the
// arguments of paged tools, and puts them into the context.
func (s *Server) cutCursors(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || method != methodTool {
			return next(ctx, method, req)
		}
		options, paged := s.paged.Load(call.Params.Name)
		if !paged {
			return next(ctx, method, req)
		}
		rest, cursor, err := options.(*PageOptions).Cut(call.Params.Arguments)
		if err != nil {
			s.protector.logger().WarnContext(ctx, "gosdk: the arguments of a paged tool were refused",
				"tool", call.Params.Name, "cause", err.Error())
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "Invalid params"}
		}
		inner := copyRequest(call)
		inner.Params.Arguments = rest
		return next(context.WithValue(ctx, pageKey{}, &arrivedPage{s, cursor}), method, inner)
	}
}
