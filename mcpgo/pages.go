package mcpgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
	"github.com/tripseal/tripseal/wire"
)

// PageHandler returns the items of one page, and the position where this page ends, or nil if it is the last page. To
// get the next page, the handler is called with that position; for the first page, with nil. Pass it to [AddPagedTool].
type PageHandler[In, At, Item any] func(
	ctx context.Context, req mcp.CallToolRequest, in In, after *At) (items []Item, next *At, err error)

// PageOptions changes what [AddPagedTool] does. Nil means the defaults.
type PageOptions struct {
	cursor.PageOptions
	// Cursors issues the tool's cursors. Nil means native cursors, sealed with the boundary's keys; such a cursor lives
	// for an hour. Set it to change the lifetime, or to share cursors with another runtime: see package compat/atd.
	Cursors cursor.Issuer
}

// AddPagedTool registers a tool that returns its items page by page. It is a typed tool of the SDK, as
// mcp.NewTypedToolHandler makes it, with one more argument: the cursor. The tool's result has the items and, unless the
// page is the last, the cursor of the next page. The server must be behind a door of the engine: any other call fails.
//
// A cursor works only for the user and the arguments of the page that it came with (except the arguments in Unbound),
// only for this tool of this service, and only for an hour. With any other cursor, a call fails with the error -32602
// before the handler runs. Arguments are the same if they have the same value: their order and their spelling may
// differ. A cursor that is missing, null or empty means the first page. A position is written as JSON, in at most 256
// bytes: put a key into it, not a row.
//
// The cursor is taken out of the arguments when the call has passed all middleware, and is bound to what the typed
// handler decodes. A call is refused with the error -32602 if its arguments are longer than MaxArguments or are not one
// JSON object, or if the cursor is there twice or is not a string. If the other arguments are wrong, or if the handler
// returns an error, the SDK answers as for any typed tool.
//
// Describe the other arguments with the tool's schema, for example with mcp.WithInputSchema. AddPagedTool panics if one
// of them has the cursor's name in any case, and if Unbound has a name that is no argument.
func AddPagedTool[In, At, Item any](
	srv *server.MCPServer, engine *wire.Engine, tool mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions,
) {
	if srv == nil || engine == nil || handler == nil {
		panic("mcpgo: a paged tool needs a server, an engine and a handler")
	}
	if options == nil {
		options = new(PageOptions)
	}
	if err := addPagedTool(srv, engine, tool, handler, options); err != nil {
		panic(fmt.Sprintf("mcpgo: the paged tool %q: %v", tool.Name, err))
	}
}

func addPagedTool[In, At, Item any](
	srv *server.MCPServer, engine *wire.Engine, tool mcp.Tool, handler PageHandler[In, At, Item], options *PageOptions,
) error {
	paged, err := options.PageOptions.WithDefaults(engine.Boundary().Config().MaxArguments)
	if err != nil {
		return err
	}
	if err := describe(&tool, &paged); err != nil {
		return err
	}
	g, cursors := &guard{srv, engine}, adapter.ToolCursors(engine.Boundary(), options.Cursors)
	srv.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		passed := passage.From(ctx)
		if passed == nil || passed.Exchange == nil {
			return nil, g.refuse(ctx, "tools/call", "a cursor")
		}
		x := passed.Exchange
		refuse := func(e tripseal.WireError) error {
			if x.Target == tool.Name { // otherwise another tool calls this one in the process
				x.AnswerWith(e) // because mcp-go sends each error as an internal one
			}
			return errors.New(e.Message)
		}
		position, err := cut(&req.Params, &paged)
		if err != nil {
			g.log(ctx, "mcpgo: the arguments of a paged tool were refused", "tool", tool.Name, "cause", err.Error())
			return nil, refuse(tripseal.WireError{Code: mcp.INVALID_PARAMS, Message: "Invalid params"})
		}
		return mcp.NewTypedToolHandler(func(
			ctx context.Context, req mcp.CallToolRequest, in In,
		) (*mcp.CallToolResult, error) {
			text, err := cursor.ServePage(ctx, cursors, tripseal.Request{
				Method: "tools/call", Target: tool.Name, Arguments: req.Params.RawArguments, Principal: x.User(),
			}, position, &paged, func(after *At) ([]Item, *At, error) { return handler(ctx, req, in, after) })
			if e, refused := err.(tripseal.WireError); refused {
				err = refuse(e)
			}
			if err != nil {
				return nil, err
			}
			return mcp.NewToolResultStructured(json.RawMessage(text), string(text)), nil
		})(ctx, req)
	})
	return nil
}

// describe adds the cursor to the schema of the tool's arguments, and describes the tool's result.
func describe(tool *mcp.Tool, paged *cursor.PageOptions) (err error) {
	if tool.RawInputSchema != nil {
		tool.RawInputSchema, err = paged.InputSchema(tool.RawInputSchema)
	} else {
		var schema []byte
		if schema, err = json.Marshal(tool.InputSchema); err != nil {
			return err
		}
		if schema, err = paged.InputSchema(schema); err == nil {
			err = json.Unmarshal(schema, &tool.InputSchema)
		}
	}
	if err == nil && tool.OutputSchema.Type == "" && tool.RawOutputSchema == nil {
		tool.RawOutputSchema, err = paged.OutputSchema(nil)
	}
	return err
}

// cut takes the cursor out of the arguments that the SDK would decode, and returns it.
func cut(p *mcp.CallToolParams, paged *cursor.PageOptions) (position string, err error) {
	arguments := p.RawArguments
	if len(arguments) == 0 && p.Arguments != nil {
		if arguments, err = json.Marshal(p.Arguments); err != nil {
			return "", err
		}
	}
	rest, position, err := paged.Cut(arguments)
	if err != nil {
		return "", err
	}
	p.RawArguments, p.Arguments = rest, nil
	return position, json.Unmarshal(rest, &p.Arguments)
}
