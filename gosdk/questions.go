package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/gosdk/internal/parts"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
	"github.com/tripseal/tripseal/gosdk/internal/whole"
)

// pinQuestions returns the questions in the form that the boundary seals. A question of
// package elicit is sealed with the digest of its wording, because its answer is valid
// for that wording only. The question is refused if inner middleware changed the
// wording. The questions are appended to the buffer, which is an empty slice: if its
// capacity suffices, they need no allocation.
func (p *Protection) pinQuestions(passing *passage.Call, c call, a asking, buffer []tripseal.Question) ([]tripseal.Question, error) {
	ctx, requests := passing.Context, a.questions
	changed := func() error {
		return p.refuse(ctx, c.method, "what elicit asks was changed on its way out: inner middleware must not change the questions and the state of elicit, "+
			"and a handler that has asked with elicit must not ask by hand in the same call")
	}
	wording, ok := passing.Wording(a.state)
	if !ok || wording != nil && len(wording) != len(requests) {
		return nil, changed()
	}
	if len(requests) == 0 {
		return nil, nil
	}
	questions := slices.Grow(buffer, len(requests))
	for key, request := range requests {
		kind := passage.KindOf(request)
		if kind == 0 || !whole.Question(request) || !utf8.ValidString(key) {
			return nil, p.refuse(ctx, c.method, fmt.Sprintf("the question %.40q is nil, has a nil message, content, tool or hint, is of a type that cannot be asked, %T, "+
				"or its key is not UTF-8", key, request))
		}
		if wording != nil {
			if _, digest, ok := passage.DigestOf(request); !ok || digest != wording[key] {
				return nil, changed()
			}
		} else if err := p.checkWritable(ctx, c.method, request); err != nil {
			return nil, err
		}
		questions = append(questions, tripseal.Question{Key: key, Kind: kind})
	}
	return questions, nil
}

// checkWritable refuses a question or a _meta that cannot be written as JSON: the SDK would send
// the client no answer, or it would panic and end the process.
func (p *Protection) checkWritable(ctx context.Context, method string, asking any) error {
	if err := checkJSON(asking); err != nil {
		return p.refuse(ctx, method, "a question, or the _meta beside it, cannot be written as JSON: "+err.Error())
	}
	return nil
}

// checkJSON returns an error if a question or a _meta cannot be written as JSON. In elicitations
// and questions for roots, it checks only the fields whose Go type allows any value: all other
// fields are texts. So it seldom has to write a whole question as JSON.
func checkJSON(asking any) error {
	switch q := asking.(type) {
	case *mcp.ElicitParams:
		if err := parts.CheckWritable(map[string]any(q.Meta)); err != nil {
			return err
		}
		return parts.CheckWritable(q.RequestedSchema)
	case *mcp.ListRootsParams:
		return parts.CheckWritable(map[string]any(q.Meta))
	}
	return parts.CheckWritable(asking)
}

// needOf returns what a client must declare before it is asked a question.
func needOf(question mcp.InputRequest) adapter.Need {
	withTools, _ := question.(*mcp.CreateMessageWithToolsParams)
	return adapter.Need{Kind: passage.KindOf(question), Tools: withTools != nil && len(withTools.Tools) > 0}
}

// checkCapabilities refuses questions if the client has not declared that it can answer
// such questions, as revision 2026-07-28 requires. A client declares its capabilities
// in each request, or else in the handshake.
func checkCapabilities(req mcp.Request, c call, questions mcp.InputRequestMap) error {
	capabilities, declared := declaredIn(c.meta)
	if session, ok := req.GetSession().(*mcp.ServerSession); ok && session != nil && !declared {
		capabilities = declaredBy(session)
	}
	return checkDeclared(capabilities, questions)
}

// checkDeclared returns an error that lists all capabilities that the questions need,
// or nil if the client has declared each of them.
func checkDeclared(capabilities adapter.Capabilities, questions mcp.InputRequestMap) error {
	needs := make([]adapter.Need, 0, 4)
	missing := false
	for _, question := range questions {
		need := needOf(question)
		needs, missing = append(needs, need), missing || !capabilities.Meet(need)
	}
	if !missing {
		return nil
	}
	wire := adapter.MissingCapabilities(needs...)
	return &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
}

// declaredIn returns the capabilities that a request declares; ok is false if it declares
// none.
func declaredIn(meta map[string]any) (capabilities adapter.Capabilities, ok bool) {
	switch value := meta[mcp.MetaKeyClientCapabilities].(type) {
	case nil:
	case map[string]any:
		return adapter.CapabilitiesIn(value), true
	default: // a Go value, from a client in the same process
		var declared map[string]any
		if text, err := json.Marshal(value); err == nil && json.Unmarshal(text, &declared) == nil && declared != nil {
			return adapter.CapabilitiesIn(declared), true
		}
	}
	return capabilities, false
}

// declaredBy returns the capabilities that an older client declared in its handshake.
func declaredBy(session *mcp.ServerSession) (c adapter.Capabilities) {
	params := session.InitializeParams()
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
