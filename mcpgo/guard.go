package mcpgo

import (
	"context"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
	"github.com/tripseal/tripseal/wire"
)

// Guard puts a middleware on the server's tools, prompts and resources, so that no transport is open in silence.
// [Handler] and [ServeStdio] call it; call it if you build the transport yourself. A call that did not come through a
// door of the engine is refused, with a record in the log, if it carries a state or answers, or if its result asks.
// Other calls are answered as ever. Guard also keeps the text of a handler's panic from the client.
//
// Middleware that asks itself must be added after Guard, because Guard does not see the results of middleware that was
// added before. Guard does not see the handlers of task tools either (server.AddTaskTool), nor hooks: mcp-go may send
// the text of their panics to the client.
func Guard(srv *server.MCPServer, engine *wire.Engine) {
	if srv == nil || engine == nil {
		panic("mcpgo: a server and an engine are needed; check the error of wire.New")
	}
	g := &guard{srv, engine}
	srv.Use(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return watch(ctx, g, call{"tools/call", req.Params.Meta, &req.Params.MultiRoundTripParams}, req, next)
		}
	})
	server.WithPromptHandlerMiddleware(func(next server.PromptHandlerFunc) server.PromptHandlerFunc {
		return func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return watch(ctx, g, call{"prompts/get", req.Params.Meta, &req.Params.MultiRoundTripParams}, req, next)
		}
	})(srv)
	server.WithResourceHandlerMiddleware(func(next server.ResourceHandlerFunc) server.ResourceHandlerFunc {
		return func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			return watch(ctx, g, call{"resources/read", req.Params.Meta, &req.Params.MultiRoundTripParams}, req, next)
		}
	})(srv)
}

type guard struct {
	srv    *server.MCPServer
	engine *wire.Engine
}

// call is what the requests of all three methods have.
type call struct {
	method string
	meta   *mcp.Meta
	in     *mcp.MultiRoundTripParams
}

// errInternal is what a client learns of a refused call or of a panic.
const errInternal = tripseal.PlainError("Internal error")

// watch serves one call. For an older client, mcp-go calls it again in each round, with the state in plaintext.
func watch[Q, R any](
	ctx context.Context, g *guard, c call, req Q, handler func(context.Context, Q) (R, error),
) (result R, err error) {
	var none R
	mark := ""
	if c.meta != nil {
		mark, _ = c.meta.AdditionalFields[wire.MarkName].(string)
	}
	var passed *passage.Call
	if x := g.engine.Through(ctx, mark); x != nil {
		passed = &passage.Call{Exchange: x, Server: g.srv}
	} else if c.in.RequestState != "" || len(c.in.InputResponses) > 0 {
		return none, g.refuse(ctx, c.method, "a state or answers")
	}
	ctx = passage.With(ctx, passed)
	panicked := tripseal.Guard(func() error {
		result, err = handler(ctx, req)
		return nil
	})
	if panicked != nil {
		part := new(tripseal.PartError)
		errors.As(panicked, &part)
		g.log(ctx, "mcpgo: a handler panicked", "method", c.method, "cause", panicked.Error(), "stack", part.Stack())
		return none, errInternal
	}
	if passed == nil && asks(result) {
		return none, g.refuse(ctx, c.method, "a question or a state")
	}
	return result, err
}

// asks reports whether a result has anything for a further round.
func asks(result any) bool {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r != nil && (r.NeedsInput() || r.InputRequests != nil || r.RequestState != "")
	case *mcp.GetPromptResult:
		return r != nil && (r.NeedsInput() || r.InputRequests != nil || r.RequestState != "")
	}
	return false
}

// refuse logs that a call which came through no door has something that must be sealed or checked.
func (g *guard) refuse(ctx context.Context, method, what string) error {
	g.log(ctx, "mcpgo: a call was refused, because it came through no door: serve its transport with mcpgo.Handler or "+
		"mcpgo.ServeStdio, or put Handler or Stdio of the server's engine around it", "method", method, "has", what)
	return errInternal
}

func (g *guard) log(ctx context.Context, what string, attributes ...any) {
	tripseal.Logger(g.engine.Boundary().Config().Logger).ErrorContext(ctx, what, attributes...)
}
