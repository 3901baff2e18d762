package main

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// state is what a handler remembers between two rounds.
type state struct {
	Folder string   // of the user
	Agreed []string // the keys of the questions to which the user said yes
}

// call is one round of a call to a tool.
type call struct {
	state   state
	answers mcp.InputResponseMap
	round   tripseal.Round
}

// open reads the state that the previous round wrote, and the answers to its question. If it
// returns an error, the handler must return this error unchanged.
func (s *service) open(ctx context.Context, req *mcp.CallToolRequest) (*call, error) {
	c, text := &call{answers: req.Params.InputResponses}, req.Params.RequestState
	if s.protector != nil {
		var err error
		if c.round, err = s.protector.Boundary().Open(ctx, s.protector.Request(req), text); err != nil {
			return nil, gosdk.WireError(err)
		}
		text, _ = c.round.State()
		c.answers = s.protector.Answers(ctx, &c.round, req)
	}
	if text == "" { // the first round
		return c, nil
	}
	return c, json.Unmarshal([]byte(text), &c.state)
}

// seal returns a result that asks the questions, and holds the state for the next round.
func (s *service) seal(
	ctx context.Context, req *mcp.CallToolRequest, c *call, questions mcp.InputRequestMap,
) (*mcp.CallToolResult, error) {
	text, err := json.Marshal(c.state)
	if err != nil {
		return nil, err
	}
	result := &mcp.CallToolResult{InputRequests: questions, RequestState: string(text)}
	if s.protector == nil {
		return result, nil
	}
	asked, err := gosdk.Questions(req, questions)
	if err != nil {
		return nil, err
	}
	if result.RequestState, err = s.protector.Boundary().Seal(ctx, &c.round, &result.RequestState, asked...); err != nil {
		return nil, gosdk.WireError(err)
	}
	return result, nil
}
