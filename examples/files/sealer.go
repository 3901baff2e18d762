package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
)

// sealer is how the handler keeps a state between two rounds.
type sealer interface {
	// Open returns the state and the answers that the client sent. Return its error as
	// it is.
	Open(ctx context.Context, req *mcp.CallToolRequest) (opened, error)
	// Seal returns the result that asks, with the state for the next round.
	Seal(ctx context.Context, req *mcp.CallToolRequest, before opened, state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error)
}

// opened is the state of the previous round, and the answers to its questions. Both are
// empty in a first round.
type opened struct {
	state   string
	answers mcp.InputResponseMap
	round   mcpseal.Round // only inHandler needs it, to seal the next round
}

// plaintext is for servers with the middleware. The middleware opens and seals, so
// plaintext does neither.
type plaintext struct{}

func (plaintext) Open(ctx context.Context, req *mcp.CallToolRequest) (opened, error) {
	if !gosdk.Sealed(ctx, req) {
		return opened{}, gosdk.ErrNotProtected // the server was made without Install
	}
	return opened{state: req.Params.RequestState, answers: req.Params.InputResponses}, nil
}

func (plaintext) Seal(_ context.Context, _ *mcp.CallToolRequest, _ opened, state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
}

// inHandler opens and seals by itself, on servers without the middleware.
type inHandler struct{ protection *gosdk.Protection }

func (s inHandler) Open(ctx context.Context, req *mcp.CallToolRequest) (opened, error) {
	request, err := s.protection.Request(ctx, req)
	if err != nil {
		return opened{}, err
	}
	round, err := s.protection.Boundary().Open(ctx, request, req.Params.RequestState)
	if err != nil {
		return opened{}, gosdk.WireError(err)
	}
	state, _ := round.State()
	return opened{state, s.protection.Answers(ctx, &round, req), round}, nil
}

func (s inHandler) Seal(ctx context.Context, req *mcp.CallToolRequest, before opened, state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error) {
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
