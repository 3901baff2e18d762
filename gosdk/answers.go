package gosdk

import (
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// keep returns the answers that a handler may see: those to questions of the previous round, or all of them, in the
// form that screened gives them. If all stay as they are, keep returns the map that it got.
func keep(answers mcp.InputResponseMap, round *tripseal.Round, all bool) mcp.InputResponseMap {
	fits := func(key string, answer mcp.InputResponse) mcp.InputResponse {
		if kind := kindOfAnswer(answer); kind == 0 || !all && !round.Accepts(key, kind) {
			return nil
		}
		return screened(answer)
	}
	same := true
	for key, answer := range answers {
		same = same && answer != nil && fits(key, answer) == answer
	}
	if same {
		return answers
	}
	kept := make(mcp.InputResponseMap, len(answers))
	for key, answer := range answers {
		if seen := fits(key, answer); seen != nil {
			kept[key] = seen
		}
	}
	return kept
}

// kindOfAnswer returns a kind of question that the answer can answer, or 0 if there is none.
func kindOfAnswer(answer mcp.InputResponse) tripseal.Kind {
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		if a != nil {
			return tripseal.KindForm
		}
	case *mcp.CreateMessageResult:
		if a != nil {
			return tripseal.KindSampling
		}
	case *mcp.CreateMessageWithToolsResult:
		if a != nil {
			return tripseal.KindSampling
		}
	case *mcp.ListRootsResult:
		if a != nil {
			return tripseal.KindRoots
		}
	}
	return 0
}

// screened returns an answer in the form that a handler may see. It returns nil if the answer has a nil (JSON's null)
// where a handler expects a value. A member of a form that is null is a field that the user left empty, so it counts as
// absent. The content of a form that the user declined or cancelled means nothing, and is left out. The answer must not
// be nil.
func screened(answer mcp.InputResponse) mcp.InputResponse {
	whole := false
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		content := a.Content
		switch a.Action {
		case "accept":
			content = withoutNulls(content)
		case "decline", "cancel":
			content = nil
		default:
			return nil
		}
		if hasNull(content) {
			return nil
		}
		if len(content) != len(a.Content) || content == nil && a.Content != nil {
			return &mcp.ElicitResult{Meta: a.Meta, Action: a.Action, Content: content}
		}
		whole = true
	case *mcp.CreateMessageResult:
		whole = isWhole(a.Content)
	case *mcp.CreateMessageWithToolsResult:
		whole = len(a.Content) > 0 && !slices.ContainsFunc(a.Content, isNotWhole)
	case *mcp.ListRootsResult:
		whole = !slices.Contains(a.Roots, nil)
	}
	if !whole {
		return nil
	}
	return answer
}

// withoutNulls returns the content of a form without the members that are nil.
func withoutNulls(content map[string]any) map[string]any {
	for _, value := range content {
		if value == nil {
			content = maps.Clone(content)
			maps.DeleteFunc(content, func(_ string, value any) bool { return value == nil })
			break
		}
	}
	return content
}

// hasNull reports whether a JSON value holds a nil, at any depth.
func hasNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case map[string]any:
		for _, member := range v {
			if hasNull(member) {
				return true
			}
		}
	}
	return false
}

func isNotWhole(content mcp.Content) bool { return !isWhole(content) }

// isWhole returns false if the content or something in it is nil.
func isWhole(content mcp.Content) bool {
	switch c := content.(type) {
	case *mcp.TextContent:
		return c != nil
	case *mcp.ImageContent:
		return c != nil
	case *mcp.AudioContent:
		return c != nil
	case *mcp.ResourceLink:
		return c != nil
	case *mcp.EmbeddedResource:
		return c != nil && c.Resource != nil
	case *mcp.ToolUseContent:
		return c != nil
	case *mcp.ToolResultContent:
		return c != nil && !slices.ContainsFunc(c.Content, isNotWhole)
	}
	return false
}
