package gosdk

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/parts"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
	"github.com/tripseal/tripseal/gosdk/internal/whole"
)

// keep returns the answers that a handler may see. It drops an answer if screenAnswer
// returns nil for it, or if accepts(key, kind) is false for its key and kind. If all
// answers stay as they are, keep returns the map that it got, not a copy.
func keep(answers mcp.InputResponseMap, accepts func(key string, kind tripseal.Kind) bool) mcp.InputResponseMap {
	if len(answers) > 0 && allFit(answers, accepts) {
		return answers
	}
	var kept mcp.InputResponseMap
	for key, answer := range answers {
		if answer = screenAnswer(answer); answer != nil && accepts(key, passage.KindOfAnswer(answer)) {
			if kept == nil {
				kept = make(mcp.InputResponseMap, len(answers))
			}
			kept[key] = answer
		}
	}
	return kept
}

// allFit reports whether a handler may see all answers unchanged.
func allFit(answers mcp.InputResponseMap, accepts func(key string, kind tripseal.Kind) bool) bool {
	for key, answer := range answers {
		if answer == nil || screenAnswer(answer) != answer || !accepts(key, passage.KindOfAnswer(answer)) {
			return false
		}
	}
	return true
}

// screenAnswer returns an answer in the form that a handler may see. It returns nil if
// the answer has a nil (JSON's null) where a handler expects a value. If the user
// declined or cancelled, screenAnswer leaves out the content of the answer, because
// that content means nothing.
func screenAnswer(answer mcp.InputResponse) mcp.InputResponse {
	isWhole := false
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		if a != nil && (a.Action == "decline" || a.Action == "cancel") {
			if a.Content != nil {
				return &mcp.ElicitResult{Meta: a.Meta, Action: a.Action}
			}
			return a
		}
		isWhole = a != nil && a.Action == "accept" && (a.Content == nil || !parts.HasNull(a.Content))
	case *mcp.CreateMessageResult:
		isWhole = a != nil && whole.Content(a.Content)
	case *mcp.CreateMessageWithToolsResult:
		isWhole = a != nil && len(a.Content) > 0 && whole.Contents(a.Content)
	case *mcp.ListRootsResult:
		isWhole = a != nil && !slices.Contains(a.Roots, nil)
	}
	if !isWhole {
		return nil
	}
	return answer
}
