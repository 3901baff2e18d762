package gosdk

import (
	"bytes"
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/parts"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// The functions below are for handlers that seal their own states, on a server without [Protect].
// The advantage is that such a handler cannot use a state that was not checked: it gets only the
// token, and must open it. The price is that each handler that asks questions must call three more
// functions. On such a server, tripseal does not send questions to older clients. The SDK sends
// them, but it asks only one round of questions in a client's call.
//
// Another replica may serve the same tool with package elicit. The state that package
// elicit wrote, and the answers to its questions, reach no handler: see
// [tripseal.Round.Elicit].

// Request returns what [tripseal.Boundary.Open] needs to know about the request that a
// handler got: method, target, arguments and user. It fails on a protected server,
// because there the middleware seals. If it fails, the handler must return the error
// unchanged. Use Request in a handler that calls Open and Seal itself, on a server
// without the middleware.
func (p *Protection) Request(ctx context.Context, req mcp.Request) (tripseal.Request, error) {
	c, ok := anyCall(req)
	if !ok {
		return tripseal.Request{}, p.refuse(ctx, "", "a request of an unknown type cannot be sealed")
	}
	if outer := passage.From(ctx); outer != nil && outer.Session == req.GetSession() {
		return tripseal.Request{}, p.refuse(ctx, c.method, "a handler seals its state although its server is protected, which would seal it twice: "+
			"write plaintext, or take out Protect")
	}
	by := p.callerOf(req)
	p.warnUsers(ctx, &by)
	request := tripseal.Request{Method: c.method, Target: c.target, Principal: p.principalOf(&by), Arguments: bytes.Clone(c.arguments)}
	if c.method == methodPrompt {
		request.Arguments = parts.AppendStrings(nil, c.promptArgs)
	}
	return request, nil
}

// Answers returns the request's answers to the questions that the previous round asked. It drops
// all other answers. The log and the observer learn how many were dropped. If Answers drops no
// answer and changes none, it returns the request's own map, not a copy. If package elicit
// asked (see [tripseal.Round.Elicit]), Answers drops all answers. Use Answers in a
// handler that calls Open itself: such a handler must not read the request's InputResponses.
func (p *Protection) Answers(ctx context.Context, round *tripseal.Round, req mcp.Request) mcp.InputResponseMap {
	c, _ := anyCall(req)
	if _, elicited := round.Elicit(); elicited {
		round.Dropped(ctx, len(c.answers))
		return nil
	}
	_, answers := p.input(ctx, round, c)
	return answers
}

// Questions converts the SDK's questions to the form that [tripseal.Boundary.Seal]
// needs. It fails if the client has not declared that it can answer such questions. If
// it fails, the handler must return the error unchanged. Use Questions in a handler
// that calls Seal itself.
func (p *Protection) Questions(ctx context.Context, req mcp.Request, questions mcp.InputRequestMap) ([]tripseal.Question, error) {
	c, ok := anyCall(req)
	if !ok {
		return nil, p.refuse(ctx, "", "a request of an unknown type cannot ask")
	}
	pinned, err := p.pinQuestions(&passage.Call{Context: ctx}, c, asking{questions: questions}, nil)
	if err != nil {
		return nil, err
	}
	return pinned, checkCapabilities(req, c, questions)
}

// WireError takes an error of [tripseal.Boundary.Open] or [tripseal.Boundary.Seal], and
// returns the error to send to the client. The handler must return that error: it is a
// *jsonrpc.Error, so the SDK sends it unchanged. Use WireError in a handler that calls
// Open and Seal itself.
func WireError(err error) error { return bareError(wireError(err)) }
