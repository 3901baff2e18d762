package gosdk

import (
	"bytes"
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/through"
)

// The functions below are for handlers that seal their own states, on a server without [Protect]. The SDK sends the
// questions of such a handler to older clients itself, but only one round of them in a call.

// Request returns what [tripseal.Boundary.Open] needs to know about the request that a handler got: method, target,
// arguments and user.
func (p *Protector) Request(req mcp.Request) tripseal.Request {
	c, _ := readCall(req)
	c.arguments = bytes.Clone(c.arguments)
	return c.request(p.userOf(req))
}

// Answers returns the request's answers to the questions that the previous round asked, and drops all others. A handler
// that opens its own tokens must not read the request's InputResponses.
func (p *Protector) Answers(ctx context.Context, round *tripseal.Round, req mcp.Request) mcp.InputResponseMap {
	c, _ := readCall(req)
	_, answers := p.input(&through.Call{Context: ctx}, round, &c)
	return answers
}

// Questions returns the questions as [tripseal.Boundary.Seal] needs them. It fails if the client has not declared that
// it can answer them: return that error unchanged, because the SDK then sends what the protocol demands.
func Questions(req mcp.Request, questions mcp.InputRequestMap) ([]tripseal.Question, error) {
	c, _ := readCall(req)
	pinned, err := pin(questions, nil)
	if err != nil {
		return nil, fmt.Errorf("gosdk: %w", err)
	}
	return pinned, checkDeclared(req.GetSession(), c.meta, questions)
}

// WireError converts an error of [tripseal.Boundary.Open] or [tripseal.Boundary.Seal] into the error that a handler
// must return, which the SDK sends as it is.
func WireError(err error) error { return sdkError(tripseal.Wire(err)) }
