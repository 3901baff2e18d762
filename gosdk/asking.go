package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/gosdk/internal/through"
)

// AskingTool makes a typed tool of the SDK of a handler that asks its user questions. Its errors are tool errors.
func AskingTool[In, Out any](
	handler func(ctx context.Context, ask *elicit.Asker, in In) (Out, error),
) mcp.ToolHandlerFor[In, Out] {
	return WithAsker(func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, err := handler(ctx, elicit.From(ctx), in)
		return nil, out, err
	})
}

// WithAsker wraps the handler of a typed tool, so that every function that the handler calls can ask: [elicit.From]
// returns the asker of the call.
func WithAsker[In, Out any](handler mcp.ToolHandlerFor[In, Out]) mcp.ToolHandlerFor[In, Out] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (result *mcp.CallToolResult, out Out, err error) {
		asked, err := runTool(ctx, req, func(ctx context.Context, _ *elicit.Asker) (err error) {
			result, out, err = handler(ctx, req, in)
			return err
		})
		if err != nil || asked != nil {
			return asked, *new(Out), err
		}
		return result, out, nil
	}
}

// RawToolWithAsker is [WithAsker] for a tool that is added with mcp.Server.AddTool.
func RawToolWithAsker(handler mcp.ToolHandler) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		asked, err := runTool(ctx, req, into(&result, handler, req))
		if elicit.IsForClient(err) {
			asked = new(mcp.CallToolResult)
			asked.SetError(err)
		}
		if asked != nil {
			return asked, nil
		}
		return result, err
	}
}

// into returns a call of a handler that stores the handler's result.
func into[Q, R any](
	result *R, handler func(context.Context, Q) (R, error), req Q,
) func(context.Context, *elicit.Asker) error {
	return func(ctx context.Context, _ *elicit.Asker) (err error) {
		*result, err = handler(ctx, req)
		return err
	}
}

func runTool(
	ctx context.Context, req *mcp.CallToolRequest, handler func(context.Context, *elicit.Asker) error,
) (*mcp.CallToolResult, error) {
	questions, state, err := run(ctx, req, handler)
	if err != nil || questions == nil {
		return nil, err
	}
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
}

// PromptWithAsker is [WithAsker] for the handler of a prompt.
func PromptWithAsker(handler mcp.PromptHandler) mcp.PromptHandler {
	return func(ctx context.Context, req *mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
		questions, state, err := run(ctx, req, into(&result, handler, req))
		if questions != nil {
			return &mcp.GetPromptResult{InputRequests: questions, RequestState: state}, nil
		}
		return result, withCode(err)
	}
}

// ResourceWithAsker is [WithAsker] for the handler of a resource or of a template.
func ResourceWithAsker(handler mcp.ResourceHandler) mcp.ResourceHandler {
	return func(ctx context.Context, req *mcp.ReadResourceRequest) (result *mcp.ReadResourceResult, err error) {
		questions, state, err := run(ctx, req, into(&result, handler, req))
		if questions != nil { // for older clients, the SDK requires Contents even beside questions
			none := []*mcp.ResourceContents{}
			return &mcp.ReadResourceResult{InputRequests: questions, RequestState: state, Contents: none}, nil
		}
		return result, withCode(err)
	}
}

// run calls a handler. If the call asks, run returns the questions and the state.
func run(
	ctx context.Context, req mcp.Request, handler func(context.Context, *elicit.Asker) error,
) (questions mcp.InputRequestMap, state string, err error) {
	c, _ := readCall(req)
	call := elicit.Call{Method: c.method, Target: c.target, Request: req, Meta: c.meta, State: c.token}
	if through.From(ctx, req.GetSession()) != nil { // it came through the middleware, which makes no marks
		call.Meta = nil
	}
	call.Answers = func() map[string]json.RawMessage { return answersOf(c.answers) }
	call.Can = func() adapter.Capabilities { return declared(req.GetSession(), c.meta) }
	pending, err := elicit.Run(ctx, call, handler)
	if failed := (tripseal.WireError{}); errors.As(err, &failed) {
		return nil, "", &jsonrpc.Error{Code: failed.Code, Message: failed.Message, Data: failed.Data}
	}
	if pending == nil {
		return nil, "", err
	}
	text, err := json.Marshal(pending.Questions)
	if err == nil {
		err = json.Unmarshal(text, &questions)
	}
	if err != nil {
		return nil, "", fmt.Errorf("a question that the SDK cannot ask: %w", err)
	}
	for key, q := range pending.Questions {
		if form, ok := questions[key].(*mcp.ElicitParams); ok && q.Schema != nil {
			form.RequestedSchema = q.Schema // with its fields in their order
		}
	}
	return questions, pending.State, nil
}

// answersOf returns the answers that the SDK has decoded as JSON.
func answersOf(responses mcp.InputResponseMap) map[string]json.RawMessage {
	answers := make(map[string]json.RawMessage, len(responses))
	for key, response := range responses {
		answers[key], _ = json.Marshal(response) // what cannot be written is no answer
	}
	return answers
}

// withCode gives the code -32602 to an error that is for the client: prompts and resources have no tool errors.
func withCode(err error) error {
	var coded *jsonrpc.Error
	if elicit.IsForClient(err) && !errors.As(err, &coded) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return err
}
