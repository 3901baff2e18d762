package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// sealer keeps the state of a handler between two rounds.
type sealer interface {
	// Open returns the state and the answers that the client sent. If it returns an error,
	// the handler must return this error unchanged.
	Open(ctx context.Context, req *mcp.CallToolRequest) (openedRound, error)
	// Seal returns a result that asks the questions and holds the state for the next round.
	Seal(ctx context.Context, req *mcp.CallToolRequest, before openedRound, state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error)
}

// openedRound holds the state that the previous round wrote, and the answers to the questions
// of that round. Both are empty in the first round.
type openedRound struct {
	state   string
	answers mcp.InputResponseMap
	round   tripseal.Round // used only by the type inHandler, to seal the next state
}

// plaintext is the sealer for servers with the middleware. It passes states on as they are,
// because the middleware opens and seals them.
type plaintext struct{}

func (plaintext) Open(ctx context.Context, req *mcp.CallToolRequest) (openedRound, error) {
	if !gosdk.Sealed(ctx, req) {
		return openedRound{}, gosdk.ErrNotProtected // the server has no middleware: Install was not called
	}
	return openedRound{state: req.Params.RequestState, answers: req.Params.InputResponses}, nil
}

func (plaintext) Seal(_ context.Context, _ *mcp.CallToolRequest, _ openedRound, state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
}

// inHandler is the sealer for servers without the middleware. It opens and seals states
// itself.
type inHandler struct{ protection *gosdk.Protection }

func (s inHandler) Open(ctx context.Context, req *mcp.CallToolRequest) (openedRound, error) {
	request, err := s.protection.Request(ctx, req)
	if err != nil {
		return openedRound{}, err
	}
	round, err := s.protection.Boundary().Open(ctx, request, req.Params.RequestState)
	if err != nil {
		return openedRound{}, gosdk.WireError(err)
	}
	state, _ := round.State()
	return openedRound{state, s.protection.Answers(ctx, &round, req), round}, nil
}

func (s inHandler) Seal(ctx context.Context, req *mcp.CallToolRequest, before openedRound, state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	asked, err := s.protection.Questions(ctx, req, questions)
	if err != nil {
		return nil, err
	}
	token, err := s.protection.Boundary().Seal(ctx, &before.round, &state, asked...)
	if err != nil {
		return nil, gosdk.WireError(err)
	}
	return &mcp.CallToolResult{InputRequests: questions, RequestState: token}, nil
}
