package mcpgo

import (
	"bytes"
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
)

// The functions below are for handlers that seal their own states, on a server without
// [Protect]. The advantage: such a handler gets only the token, so if it forgets to open the
// token, it has no state at all, and cannot trust an unchecked one. The price: three calls in
// each handler that asks questions. Such a handler must not change its arguments before it
// asks an older client: mcp-go calls the handler again with the same arguments. With
// Config.AskAgain, an older client that answers late is asked again. If a replica
// serves the same tool with gosdk/elicit, call [adapter.PinsWording] after Open: if it returns
// true, elicit wrote the state, so the handler must not read it, and must ask anew.

// Request returns what [tripseal.Boundary.Open] needs to know about the request that a
// handler got: method, target, arguments and user. It fails on a protected server,
// because there the middleware seals the state. If it fails, the handler must return the
// error unchanged. Use Request in a handler that calls Open and Seal itself, on a server
// without Protect. On such a server nothing records what the client sent, so hooks and
// middleware must not take out an argument that matters.
func (p *Protection) Request(ctx context.Context, req any) (tripseal.Request, error) {
	c, ok := anyCall(req)
	if p.boundary == nil {
		return tripseal.Request{}, p.refuse(ctx, c.method, "a Protection that Prepare did not return cannot tell who is calling")
	}
	if !ok {
		return tripseal.Request{}, p.refuse(ctx, "", "a request of an unknown type cannot be sealed")
	}
	if Sealed(ctx) {
		return tripseal.Request{}, p.refuse(ctx, c.method, "a handler seals its state although its server is protected, which would seal it twice: "+
			"write plaintext, or take out Protect")
	}
	if tool, isTool := req.(mcp.CallToolRequest); isTool {
		c.arguments = boundText(tool.Params.RawArguments, &tool.Params, p.policy.MaxArguments)
	} else if len(c.promptArgs) > 0 {
		c.arguments = adapter.AppendStrings(nil, c.promptArgs)
	}
	c.arguments = bytes.Clone(c.arguments)
	return tripseal.Request{Method: c.method, Target: c.target, Principal: p.caller, Arguments: c.arguments}, nil
}

// Answers returns the request's answers to the questions that the previous round asked.
// It drops all other answers. The log and the observer learn how many were dropped. If the
// token pins the wording of its questions (see [adapter.PinsWording]), Answers drops all
// answers. Use Answers in place of the InputResponses of the request in a handler that
// calls Open itself.
func (p *Protection) Answers(ctx context.Context, round *tripseal.Round, req any) mcp.InputResponses {
	c, ok := anyCall(req)
	if !ok || round == nil {
		return nil
	}
	return p.keepAnswers(ctx, round, &c)
}

// WireError returns the error to send to the client when [tripseal.Boundary.Open] or
// [tripseal.Boundary.Seal] returned err. The handler must return it: mcp-go sends its text
// to the client. Use WireError in a handler that calls Open and Seal itself.
func WireError(err error) error { return wireError(err) }
