package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
	"github.com/mcpseal/mcpseal/gosdk/internal/whole"
)

// pins returns the questions as the boundary seals them. A question of elicit is sealed
// with the digest of its wording, because its answer is valid for that wording only. The
// question is refused if inner middleware changed the wording.
func (p *Protection) pins(passing *passage.Call, c call, a asking) ([]mcpseal.Question, error) {
	ctx, requests := passing.Context, a.questions
	changed := func() error {
		return p.refuse(ctx, c.method, "what elicit asks was changed on its way out: inner middleware must leave its questions and its state alone")
	}
	wording, ok := passing.Wording(a.state)
	if !ok || wording != nil && len(wording) != len(requests) {
		return nil, changed()
	}
	if len(requests) == 0 {
		return nil, nil
	}
	questions := make([]mcpseal.Question, 0, len(requests))
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
		questions = append(questions, mcpseal.Question{Key: key, Kind: kind, Digest: wording[key]})
	}
	return questions, nil
}

// checkWritable refuses a question or a _meta that cannot be written as JSON: the SDK
// would send the client no answer, or would panic with no recover.
func (p *Protection) checkWritable(ctx context.Context, method string, asking any) error {
	err := mcpseal.Guard(func() error {
		_, err := json.Marshal(asking)
		return err
	})
	if err != nil {
		return p.refuse(ctx, method, "a question, or the _meta beside it, cannot be written as JSON: "+err.Error())
	}
	return nil
}

// needs names the capability, and within it the part, that a client must
// declare before it is asked a question.
func needs(question mcp.InputRequest) (capability, part string) {
	switch passage.KindOf(question) {
	case mcpseal.KindForm:
		return "elicitation", "form"
	case mcpseal.KindURL:
		return "elicitation", "url"
	case mcpseal.KindSampling:
		if q, ok := question.(*mcp.CreateMessageWithToolsParams); ok && len(q.Tools) > 0 {
			return "sampling", "tools"
		}
		return "sampling", ""
	case mcpseal.KindRoots:
		return "roots", ""
	}
	return "", ""
}

// declares reports whether capabilities, as decoded from JSON, cover a question. A
// client that declares elicitation without a mode can answer forms.
func declares(capabilities map[string]any, question mcp.InputRequest) bool {
	capability, part := needs(question)
	declared, ok := capabilities[capability].(map[string]any)
	if !ok {
		return false
	}
	_, ok = declared[part]
	return ok || part == "" || part == "form" && len(declared) == 0
}

// checkCapabilities refuses questions that the client has not declared it can answer,
// as revision 2026-07-28 requires. A client declares its capabilities in each request,
// or else in the handshake.
func checkCapabilities(req mcp.Request, c call, questions mcp.InputRequestMap) error {
	capabilities := declaredIn(c.meta)
	if capabilities == nil {
		if session, ok := req.GetSession().(*mcp.ServerSession); ok && session != nil {
			capabilities = declaredBy(session)
		}
	}
	for _, question := range questions {
		if !declares(capabilities, question) {
			return missingCapabilities(questions)
		}
	}
	return nil
}

func declaredIn(meta map[string]any) (capabilities map[string]any) {
	switch value := meta[mcp.MetaKeyClientCapabilities].(type) {
	case nil:
	case map[string]any:
		return value
	default: // a Go value, from a client in the same process
		if text, err := json.Marshal(value); err == nil && json.Unmarshal(text, &capabilities) == nil {
			return capabilities
		}
	}
	return nil
}

// missingCapabilities returns an error that lists the capabilities that the questions
// need.
func missingCapabilities(questions mcp.InputRequestMap) error {
	required := make(map[string]map[string]any)
	for _, question := range questions {
		capability, part := needs(question)
		if required[capability] == nil {
			required[capability] = make(map[string]any)
		}
		if part != "" {
			required[capability][part] = struct{}{}
		}
	}
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

// declaredBy returns the capabilities that an older client declared in its handshake,
// in the form of decoded JSON.
func declaredBy(session *mcp.ServerSession) map[string]any {
	params := session.InitializeParams()
	if params == nil || params.Capabilities == nil {
		return nil
	}
	declared := make(map[string]any)
	part := func(capability string, parts map[string]bool) {
		present := make(map[string]any)
		for name, ok := range parts {
			if ok {
				present[name] = true
			}
		}
		declared[capability] = present
	}
	if e := params.Capabilities.Elicitation; e != nil {
		part("elicitation", map[string]bool{"form": e.Form != nil, "url": e.URL != nil})
	}
	if s := params.Capabilities.Sampling; s != nil {
		part("sampling", map[string]bool{"tools": s.Tools != nil})
	}
	if params.Capabilities.RootsV2 != nil {
		part("roots", nil)
	}
	return declared
}
