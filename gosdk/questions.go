package gosdk

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
)

// kindOf returns the kind of a question, or 0 if it is not one that can be asked. It tells forms from URLs as the SDK
// does.
func kindOf(question mcp.InputRequest) tripseal.Kind {
	switch q := question.(type) {
	case *mcp.ElicitParams:
		if q.Mode == "url" || q.Mode == "" && (q.URL != "" || q.ElicitationID != "") {
			return tripseal.KindURL
		}
		return tripseal.KindForm
	case *mcp.CreateMessageParams, *mcp.CreateMessageWithToolsParams:
		return tripseal.KindSampling
	case *mcp.ListRootsParams:
		return tripseal.KindRoots
	}
	return 0
}

// pin returns the questions in the form that the boundary seals.
func pin(questions mcp.InputRequestMap, room []tripseal.Question) ([]tripseal.Question, error) {
	for key, question := range questions {
		kind := kindOf(question)
		if kind == 0 {
			return nil, fmt.Errorf("the question %.40q cannot be asked: %T", key, question)
		}
		room = append(room, tripseal.Question{Key: key, Kind: kind})
	}
	return room, nil
}

// checkDeclared returns the protocol's error -32021 if the client has not declared that it can answer the questions, as
// revision 2026-07-28 requires.
func checkDeclared(session mcp.Session, meta map[string]any, questions mcp.InputRequestMap) error {
	can := declared(session, meta)
	for _, question := range questions {
		if !can.Meet(needOf(question)) {
			needs := make([]adapter.Need, 0, len(questions))
			for _, question := range questions {
				needs = append(needs, needOf(question))
			}
			return sdkError(adapter.MissingCapabilities(needs...))
		}
	}
	return nil
}

// needOf returns what a client must have declared before it is asked a question.
func needOf(question mcp.InputRequest) adapter.Need {
	withTools, _ := question.(*mcp.CreateMessageWithToolsParams)
	return adapter.Need{Kind: kindOf(question), Tools: withTools != nil && len(withTools.Tools) > 0}
}

// declared returns what a client has declared that it can answer, in the request's _meta or else in its handshake.
func declared(session mcp.Session, meta map[string]any) (c adapter.Capabilities) {
	if value, ok := meta[mcp.MetaKeyClientCapabilities]; ok {
		members, _ := value.(map[string]any)
		return adapter.CapabilitiesIn(members)
	}
	serving, ok := session.(*mcp.ServerSession)
	if !ok || serving == nil { // a unit test calls the handler: there is no client that lacks anything
		return adapter.Capabilities{Form: true, URL: true, Sampling: true, SamplingTools: true, Roots: true}
	}
	params := serving.InitializeParams()
	if params == nil || params.Capabilities == nil {
		return c
	}
	if e := params.Capabilities.Elicitation; e != nil {
		c.Form, c.URL = e.Form != nil || e.URL == nil, e.URL != nil
	}
	if s := params.Capabilities.Sampling; s != nil {
		c.Sampling, c.SamplingTools = true, s.Tools != nil
	}
	c.Roots = params.Capabilities.RootsV2 != nil
	return c
}

// sdkError converts an error to the SDK's type.
func sdkError(e tripseal.WireError) *jsonrpc.Error {
	return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}

// refuse logs the reason for the operator, and returns an internal error that tells the client nothing.
func (p *Protector) refuse(ctx context.Context, method, reason string) error {
	p.logger().ErrorContext(ctx, "gosdk: "+reason, "method", method)
	return sdkError(tripseal.Wire(nil))
}
