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
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// AskingTool makes a tool of a handler that asks its user questions. Its result is structured content, and its errors
// are tool errors. The server must be behind a door of package wire: otherwise a call that would ask fails.
//
//	srv.AddTool(mcp.NewTool("remove", mcp.WithInputSchema[Files]()), mcpgo.AskingTool(remove))
func AskingTool[In, Out any](
	handler func(ctx context.Context, ask *elicit.Asker, in In) (Out, error),
) server.ToolHandlerFunc {
	return WithAsker(func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := req.BindArguments(&in); err != nil {
			return mcp.NewToolResultError(fmt.Sprintf("failed to bind arguments: %v", err)), nil
		}
		out, err := handler(ctx, elicit.From(ctx), in)
		if errors.Is(err, elicit.ErrPending) || elicit.IsForClient(err) {
			return nil, err
		}
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultStructuredOnly(out), nil
	})
}

// WithAsker wraps a tool's handler, so that every function that the handler calls can ask: [elicit.From] returns the
// asker of the call.
func WithAsker(handler server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
		c := call{"tools/call", req.Params.Meta, &req.Params.MultiRoundTripParams}
		asked, err := run(ctx, c, req.Params.Name, req, func(ctx context.Context) (err error) {
			result, err = handler(ctx, req)
			return err
		})
		switch {
		case asked.RequestState != "":
			return &mcp.CallToolResult{Result: inputRequired, MultiRoundTripResult: asked}, nil
		case elicit.IsForClient(err):
			return mcp.NewToolResultError(err.Error()), nil
		case err != nil:
			return nil, err
		}
		return result, nil
	}
}

// PromptWithAsker is [WithAsker] for the handler of a prompt. The handlers of resources cannot ask in mcp-go.
func PromptWithAsker(handler server.PromptHandlerFunc) server.PromptHandlerFunc {
	return func(ctx context.Context, req mcp.GetPromptRequest) (result *mcp.GetPromptResult, err error) {
		c := call{"prompts/get", req.Params.Meta, &req.Params.MultiRoundTripParams}
		asked, err := run(ctx, c, req.Params.Name, req, func(ctx context.Context) (err error) {
			result, err = handler(ctx, req)
			return err
		})
		switch {
		case asked.RequestState != "":
			return &mcp.GetPromptResult{Result: inputRequired, MultiRoundTripResult: asked}, nil
		case elicit.IsForClient(err): // mcp-go would send it as an internal error
			if passed := passage.From(ctx); passed != nil && passed.Exchange != nil {
				passed.Exchange.AnswerWith(tripseal.WireError{Code: mcp.INVALID_PARAMS, Message: err.Error()})
			}
			return nil, err
		case err != nil:
			return nil, err
		}
		return result, nil
	}
}

var inputRequired = mcp.Result{ResultType: mcp.ResultTypeInputRequired}

// run calls a handler. If the call asks, run returns the questions and the state.
func run(
	ctx context.Context, c call, target string, req any, handler func(context.Context) error,
) (asked mcp.MultiRoundTripResult, err error) {
	called := elicit.Call{Method: c.method, Target: target, Request: req, State: c.in.RequestState}
	called.Answers = func() map[string]json.RawMessage { return answersOf(c.in.InputResponses) }
	called.Can = func() adapter.Capabilities { return declaredBy(ctx, c.meta) }
	if c.meta != nil {
		called.Meta = c.meta.AdditionalFields
	}
	if passed := passage.From(ctx); passed == nil || passed.Exchange == nil { // another server of the process got the call
		ctx, called.Meta = elicit.Arrive(ctx, nil), nil
	}
	pending, err := elicit.Run(ctx, called, func(ctx context.Context, _ *elicit.Asker) error { return handler(ctx) })
	if pending == nil {
		return asked, err
	}
	text, err := json.Marshal(pending.Questions)
	if err == nil {
		err = json.Unmarshal(text, &asked.InputRequests)
	}
	if err != nil {
		return asked, fmt.Errorf("mcpgo: a question that mcp-go cannot ask: %w", err)
	}
	for key, q := range asked.InputRequests {
		if schema := pending.Questions[key].Schema; schema != nil {
			q.Elicitation.RequestedSchema = schema // with its fields in their order
		}
	}
	asked.RequestState = pending.State
	return asked, nil
}

// answersOf returns the answers that mcp-go has got from an older client, as JSON.
func answersOf(responses mcp.InputResponses) map[string]json.RawMessage {
	answers := make(map[string]json.RawMessage, len(responses))
	for key, response := range responses {
		answers[key], _ = json.Marshal(response) // what cannot be written is no answer
	}
	return answers
}

// declaredBy returns what the client has declared, in the call or in its handshake.
func declaredBy(ctx context.Context, meta *mcp.Meta) adapter.Capabilities {
	declared := meta.ClientCapabilities()
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok && declared == nil {
		handshake := session.GetClientCapabilities()
		declared = &handshake
	}
	var members map[string]any
	if text, err := json.Marshal(declared); err == nil {
		json.Unmarshal(text, &members) // what cannot be read was not declared
	}
	return adapter.CapabilitiesIn(members)
}
