package mcpgo

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/adapter"
)

// keep returns the answers that the handler may see, decoded. On a first round nothing was
// asked, so answers are dropped, except for tools in Options.Unsolicited.
func (p *Protection) keep(ctx context.Context, round *mcpseal.Round, c *call) (kept mcp.InputResponses) {
	if len(c.answers) == 0 {
		return nil
	}
	// If nothing says what was asked, the answer's members must say of which kind it is.
	anyKind := round.Waived()&mcpseal.ClaimQuestions != 0 ||
		c.token == "" && c.method == string(mcp.MethodToolsCall) && p.unsolicited[c.target]
	for key, answer := range c.answers {
		kind := mcpseal.Kind(0)
		if anyKind {
			kind = kindOf(answer)
		} else {
			kind = kindAsked(round, key)
		}
		answer, ok := decoded(answer, kind)
		if !ok {
			continue
		}
		if kept == nil {
			kept = make(mcp.InputResponses, len(c.answers))
		}
		kept[key] = answer
	}
	round.Dropped(ctx, len(c.answers)-len(kept))
	return kept
}

// kindAsked returns the kind of answer that the previous round asked for, or 0. For a URL
// it is KindForm: the answers look the same.
func kindAsked(round *mcpseal.Round, key string) mcpseal.Kind {
	for _, kind := range []mcpseal.Kind{mcpseal.KindForm, mcpseal.KindSampling, mcpseal.KindRoots} {
		if round.Accepts(key, kind) {
			return kind
		}
	}
	return 0
}

// decoded reads an answer as one of the given kind. The result holds nothing else, so a
// handler cannot read it as another kind. It is not ok if the answer is not complete.
func decoded(answer mcp.InputResponse, kind mcpseal.Kind) (mcp.InputResponse, bool) {
	// From older clients mcp-go has the answer decoded already.
	typed := answer.Elicitation != nil || answer.Sampling != nil || answer.Roots != nil
	switch kind {
	case mcpseal.KindForm, mcpseal.KindURL:
		if !typed && answer.DecodeFor(mcp.MethodElicitationCreate) != nil {
			return answer, false
		}
		if a := sound(answer.Elicitation); a != nil {
			return mcp.InputResponse{Elicitation: a}, true
		}
	case mcpseal.KindSampling:
		if !typed && answer.DecodeFor(mcp.MethodSamplingCreateMessage) != nil {
			return answer, false
		}
		if a := answer.Sampling; a != nil && wholeContent(a.Content) {
			return mcp.InputResponse{Sampling: a}, true
		}
	case mcpseal.KindRoots:
		if !typed && answer.DecodeFor(mcp.MethodListRoots) != nil {
			return answer, false
		}
		if a := answer.Roots; a != nil && a.Roots != nil && !slices.ContainsFunc(a.Roots, func(r mcp.Root) bool { return r.URI == "" }) {
			return mcp.InputResponse{Roots: a}, true
		}
	}
	return answer, false
}

// kindOf tells the kind of an answer by its members, or returns 0 if they are those of no
// kind or of several.
func kindOf(answer mcp.InputResponse) (kind mcpseal.Kind) {
	if answer.Elicitation == nil && answer.Sampling == nil && answer.Roots == nil {
		var members struct{ Action, Model, Roots json.RawMessage }
		text, err := answer.MarshalJSON()
		if err != nil || json.Unmarshal(text, &members) != nil {
			return 0
		}
		answer = mcp.InputResponse{}
		if members.Action != nil {
			answer.Elicitation = new(mcp.ElicitationResult)
		}
		if members.Model != nil {
			answer.Sampling = new(mcp.CreateMessageResult)
		}
		if members.Roots != nil {
			answer.Roots = new(mcp.ListRootsResult)
		}
	}
	kinds := 0
	if answer.Elicitation != nil {
		kind, kinds = mcpseal.KindForm, kinds+1
	}
	if answer.Sampling != nil {
		kind, kinds = mcpseal.KindSampling, kinds+1
	}
	if answer.Roots != nil {
		kind, kinds = mcpseal.KindRoots, kinds+1
	}
	if kinds != 1 {
		return 0
	}
	return kind
}

// sound returns the answer to a form or a URL as a handler may see it, or nil if a part of
// it is missing or null. The content of a declined or cancelled question means nothing and
// is left out.
func sound(a *mcp.ElicitationResult) *mcp.ElicitationResult {
	if a == nil {
		return nil
	}
	switch a.Action {
	case mcp.ElicitationResponseActionDecline, mcp.ElicitationResponseActionCancel:
		refused := *a
		refused.Content = nil
		return &refused
	case mcp.ElicitationResponseActionAccept:
		switch content := a.Content.(type) {
		case nil: // a URL has none
			return a
		case map[string]any:
			if !adapter.HasNull(content) {
				return a
			}
		case []any, string, float64, bool: // a form is an object
		default: // a Go value, from a client in the same process
			return a
		}
	}
	return nil
}

// wholeContent reports whether the content of a sampled message is there, with a type and
// without a null in it.
func wholeContent(content any) bool {
	switch v := content.(type) {
	case map[string]any:
		kind, _ := v["type"].(string)
		return kind != "" && !adapter.HasNull(v)
	case []any:
		return len(v) > 0 && !slices.ContainsFunc(v, func(item any) bool {
			_, nested := item.([]any)
			return nested || !wholeContent(item)
		})
	case nil, string, float64, bool:
		return false
	case []mcp.Content:
		return len(v) > 0 && !slices.Contains(v, nil)
	}
	return true // a Go value, from an older client
}
