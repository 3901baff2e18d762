package gosdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// capabilities are a client's, or those that a question requires, as JSON has
// them.
type capabilities map[string]map[string]any

// require adds what a question needs.
func (c capabilities) require(question mcp.InputRequest) {
	add := func(name string, sub ...string) {
		if c[name] == nil {
			c[name] = map[string]any{}
		}
		for _, s := range sub {
			c[name][s] = map[string]any{}
		}
	}
	switch kindOfQuestion(question) {
	case mcpseal.KindForm:
		add("elicitation", "form")
	case mcpseal.KindURL:
		add("elicitation", "url")
	case mcpseal.KindSampling:
		if q, ok := question.(*mcp.CreateMessageWithToolsParams); ok && len(q.Tools) > 0 {
			add("sampling", "tools")
		} else {
			add("sampling")
		}
	case mcpseal.KindRoots:
		add("roots")
	}
}

// declares says whether a client has all that is required. Elicitation without
// a mode means forms.
func (c capabilities) declares(required capabilities) bool {
	for name, subs := range required {
		declared, ok := c[name]
		if !ok {
			return false
		}
		for sub := range subs {
			_, ok := declared[sub]
			if !ok && !(sub == "form" && len(declared) == 0) {
				return false
			}
		}
	}
	return true
}

// checkCapabilities refuses questions that the client has not declared it can
// answer, as revision 2026-07-28 asks.
func (p *Protected) checkCapabilities(ctx context.Context, c call, questions mcp.InputRequestMap) error {
	required := make(capabilities)
	for _, question := range questions {
		required.require(question)
	}
	if len(required) == 0 || declaredIn(c.meta).declares(required) {
		return nil
	}
	return missingCapabilities(required)
}

// declaredIn reads the capabilities that come with each request.
func declaredIn(meta map[string]any) capabilities {
	declared := make(capabilities)
	switch value := meta[mcp.MetaKeyClientCapabilities].(type) {
	case nil:
	case map[string]any:
		for name, subs := range value {
			if m, ok := subs.(map[string]any); ok {
				declared[name] = m
			}
		}
	default: // a Go value, from a client in the same process
		if text, err := json.Marshal(value); err == nil {
			var raw map[string]any
			if json.Unmarshal(text, &raw) == nil {
				return declaredIn(map[string]any{mcp.MetaKeyClientCapabilities: raw})
			}
		}
	}
	return declared
}

func missingCapabilities(required capabilities) error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": required})
	if err != nil {
		return internalError()
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "Missing required client capabilities",
		Data:    data,
	}
}

// send is the sending middleware. It keeps questions from older clients that
// have not declared that they can answer them.
func (p *Protected) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		question, ok := req.GetParams().(mcp.InputRequest)
		session, isServer := req.GetSession().(*mcp.ServerSession)
		if !ok || !isServer {
			return next(ctx, method, req)
		}
		required := make(capabilities)
		required.require(question)
		if len(required) > 0 && !declaredBy(session).declares(required) {
			return nil, missingCapabilities(required)
		}
		return next(ctx, method, req)
	}
}

// declaredBy reads the capabilities of an older client's handshake.
func declaredBy(session *mcp.ServerSession) capabilities {
	params := session.InitializeParams()
	if params == nil || params.Capabilities == nil {
		return nil
	}
	declared := make(capabilities)
	if e := params.Capabilities.Elicitation; e != nil {
		declared["elicitation"] = map[string]any{}
		if e.Form != nil {
			declared["elicitation"]["form"] = true
		}
		if e.URL != nil {
			declared["elicitation"]["url"] = true
		}
	}
	if s := params.Capabilities.Sampling; s != nil {
		declared["sampling"] = map[string]any{}
		if s.Tools != nil {
			declared["sampling"]["tools"] = true
		}
	}
	if params.Capabilities.RootsV2 != nil {
		declared["roots"] = map[string]any{}
	}
	return declared
}
