package mcpgo

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/exactjson"
)

// keepAnswers returns the answers that the handler may see, in decoded form. In the first
// round of a call nothing was asked before, so all answers are dropped, unless the tool is
// in Options.Unsolicited. All answers to questions of gosdk/elicit are dropped too.
func (p *Protection) keepAnswers(ctx context.Context, round *tripseal.Round, c *call) (kept mcp.InputResponses) {
	if len(c.answers) == 0 {
		return nil
	}
	if adapter.PinsWording(round) {
		round.Dropped(ctx, len(c.answers))
		return nil
	}
	// If no token says what was asked, the members of each answer must tell its kind.
	anyKind := round.Waived()&tripseal.ClaimQuestions != 0 ||
		c.token == "" && c.method == string(mcp.MethodToolsCall) && p.unsolicited[c.target]
	for key, answer := range c.answers {
		kind := tripseal.Kind(0)
		if anyKind {
			kind = kindOf(answer)
		} else {
			kind = kindAsked(round, key)
		}
		answer, ok := decodeAnswer(answer, kind)
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

// kindAsked returns the kind of the question with this key in the previous round. It
// returns 0 if there was no such question. For a question of KindURL it returns KindForm,
// because the answers to both kinds look the same.
func kindAsked(round *tripseal.Round, key string) tripseal.Kind {
	for _, kind := range []tripseal.Kind{tripseal.KindForm, tripseal.KindSampling, tripseal.KindRoots} {
		if round.Accepts(key, kind) {
			return kind
		}
	}
	return 0
}

// decodeAnswer decodes an answer to a question of this kind. In the result only the field of
// this kind is set, so a handler cannot read the answer as another kind. It returns false
// if the answer is of another kind, not complete, or not exact (see isExact).
func decodeAnswer(answer mcp.InputResponse, kind tripseal.Kind) (mcp.InputResponse, bool) {
	// If the client is an older one, mcp-go has already decoded the answer.
	typed := answer.Elicitation != nil || answer.Sampling != nil || answer.Roots != nil
	if kind == 0 || !typed && !isExact(answer, kind) {
		return answer, false
	}
	if typed { // outer middleware may call the handler again with the same answers, even at the same time
		own, ok := deepCopy(answer)
		if !ok {
			return answer, false
		}
		answer = own
	}
	switch kind {
	case tripseal.KindForm, tripseal.KindURL:
		if !typed && answer.DecodeFor(mcp.MethodElicitationCreate) != nil {
			return answer, false
		}
		if a := soundElicitation(answer.Elicitation); a != nil {
			return mcp.InputResponse{Elicitation: a}, true
		}
	case tripseal.KindSampling:
		if !typed && answer.DecodeFor(mcp.MethodSamplingCreateMessage) != nil {
			return answer, false
		}
		if a := answer.Sampling; a != nil && a.Role != "" && a.Model != "" && wholeContent(a.Content) {
			return mcp.InputResponse{Sampling: a}, true
		}
	case tripseal.KindRoots:
		if !typed && answer.DecodeFor(mcp.MethodListRoots) != nil {
			return answer, false
		}
		if a := answer.Roots; a != nil && a.Roots != nil && !slices.ContainsFunc(a.Roots, func(r mcp.Root) bool { return r.URI == "" }) {
			return mcp.InputResponse{Roots: a}, true
		}
	}
	return answer, false
}

// isExact reports whether the JSON of an answer means the same to every reader. mcp-go reads
// a name in whatever case, and takes the last of two members with one name; another reader
// may take the first, or ignore a name in another case. So isExact returns false if an
// object in the answer has two members with one name, or if a name differs only in case from
// a name that mcp-go reads. It also returns false if the JSON is not UTF-8, has more than
// 16 MiB, or nests more than 128 levels deep.
func isExact(answer mcp.InputResponse, kind tripseal.Kind) bool {
	text, err := answer.MarshalJSON() // the text that arrived, because the answer is not decoded yet
	if err != nil {
		return false
	}
	if !exactjson.Unmistakable(text, answerNames) {
		return false
	}
	if kind != tripseal.KindRoots {
		return true
	}
	var answered struct {
		Roots []json.RawMessage `json:"roots"`
	}
	return json.Unmarshal(text, &answered) == nil &&
		!slices.ContainsFunc(answered.Roots, func(root json.RawMessage) bool { return !exactjson.Unmistakable(root, rootNames) })
}

// The names of the members that mcp-go reads in an answer of any kind, and in a root.
var (
	answerNames = namesOf("_meta", "resultType", "action", "content", "role", "model", "stopReason", "roots")
	rootNames   = namesOf("_meta", "uri", "name")
)

func namesOf(names ...string) (set exactjson.Names) {
	set.Add(names...)
	return set
}

// kindOf returns the kind of an answer, judged by the members of the answer. It returns 0
// if the members fit no kind or several kinds.
func kindOf(answer mcp.InputResponse) (kind tripseal.Kind) {
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
		kind, kinds = tripseal.KindForm, kinds+1
	}
	if answer.Sampling != nil {
		kind, kinds = tripseal.KindSampling, kinds+1
	}
	if answer.Roots != nil {
		kind, kinds = tripseal.KindRoots, kinds+1
	}
	if kinds != 1 {
		return 0
	}
	return kind
}

// soundElicitation returns the answer to a form or a URL as a handler may see it. It returns
// nil if the answer is malformed or has a null in it. If the user declined or cancelled, the
// result has no content: the content of such an answer means nothing.
func soundElicitation(a *mcp.ElicitationResult) *mcp.ElicitationResult {
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
		case nil: // the answer to a URL has no content
			return a
		case map[string]any:
			if !adapter.HasNull(content) {
				return a
			}
		case []any, string, float64, bool: // refused: the content of a form must be an object
		default: // another Go type, from a client in the same process
			return a
		}
	}
	return nil
}

// hasNull reports whether a content of a sampled message has a null. Some members may hold
// any JSON, such as the arguments of a tool call: nulls in such a member do not count.
func hasNull(content any) bool {
	switch v := content.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case map[string]any:
		for name, member := range v {
			switch name {
			case "input", "structuredContent", "_meta", "annotations":
			default:
				if hasNull(member) {
					return true
				}
			}
		}
	}
	return false
}

// wholeContent reports whether a sampled message has content, and the content has a type
// and no nulls.
func wholeContent(content any) bool {
	switch v := content.(type) {
	case map[string]any:
		kind, _ := v["type"].(string)
		return kind != "" && !hasNull(v)
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
	return true // one of mcp-go's content types, decoded for an older client
}
