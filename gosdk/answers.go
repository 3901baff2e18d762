package gosdk

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// solicited returns the answers that a handler may see: sound ones, to questions
// that the round before asked, by key and kind.
func solicited(round *mcpseal.Round, answers mcp.InputResponseMap) mcp.InputResponseMap {
	pinned := round.Waived()&mcpseal.ClaimQuestions == 0
	return keep(answers, func(key string, answer mcp.InputResponse) bool {
		if !pinned {
			return true
		}
		asked, ok := round.Asked(key)
		return ok && fits(answer, asked.Kind)
	})
}

// keep returns the sound answers for which more holds: all of them in their own
// map, fewer in a new one.
func keep(answers mcp.InputResponseMap, more func(string, mcp.InputResponse) bool) mcp.InputResponseMap {
	var kept mcp.InputResponseMap
	for key, answer := range answers {
		if isSound(answer) && more(key, answer) {
			if kept == nil {
				kept = make(mcp.InputResponseMap, len(answers))
			}
			kept[key] = answer
		}
	}
	return kept
}

// fits reports whether an answer is of the question's kind. Answers to a form and
// to a URL look alike.
func fits(answer mcp.InputResponse, kind mcpseal.Kind) bool {
	switch answer.(type) {
	case *mcp.ElicitResult:
		return kind == mcpseal.KindForm || kind == mcpseal.KindURL
	case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
		return kind == mcpseal.KindSampling
	case *mcp.ListRootsResult:
		return kind == mcpseal.KindRoots
	}
	return false
}

// isSound reports whether an answer is whole: JSON's null becomes nil in places
// where no handler expects it.
func isSound(answer mcp.InputResponse) bool {
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		return a != nil && (a.Action == "accept" || a.Action == "decline" || a.Action == "cancel") && !hasNull(a.Content)
	case *mcp.CreateMessageResult:
		return a != nil && isWhole(a.Content)
	case *mcp.CreateMessageWithToolsResult:
		return a != nil && len(a.Content) > 0 && areWhole(a.Content)
	case *mcp.ListRootsResult:
		return a != nil && !slices.Contains(a.Roots, nil)
	}
	return false
}

// hasNull reports whether the fields of a form hold a null. A field that was left
// empty is absent.
func hasNull(fields map[string]any) bool {
	for _, value := range fields {
		if isNull(value) {
			return true
		}
	}
	return false
}

func isNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, isNull)
	case map[string]any:
		return hasNull(v)
	}
	return false
}

func areWhole(contents []mcp.Content) bool {
	return !slices.ContainsFunc(contents, func(c mcp.Content) bool { return !isWhole(c) })
}

// isWhole reports whether a content of a sample, and what is in it, is there.
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
		return c != nil && areWhole(c.Content)
	}
	return false
}
