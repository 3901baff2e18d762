package gosdk

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// pins returns the questions as the boundary seals them.
func (p *Protected) pins(ctx context.Context, c call, requests mcp.InputRequestMap) ([]mcpseal.Question, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	questions := make([]mcpseal.Question, 0, len(requests))
	for key, request := range requests {
		kind := kindOfQuestion(request)
		if kind == 0 {
			return nil, p.refuse(ctx, c, fmt.Sprintf("the question %.40q is nil or of a type that cannot be asked, %T", key, request))
		}
		questions = append(questions, mcpseal.Question{Key: key, Kind: kind})
	}
	return questions, nil
}

func kindOfQuestion(request mcp.InputRequest) mcpseal.Kind {
	switch q := request.(type) {
	case *mcp.ElicitParams:
		if q == nil {
			return 0
		}
		if isURL(q) {
			return mcpseal.KindURL
		}
		return mcpseal.KindForm
	case *mcp.CreateMessageParams:
		if q != nil {
			return mcpseal.KindSampling
		}
	case *mcp.CreateMessageWithToolsParams:
		if q != nil {
			return mcpseal.KindSampling
		}
	case *mcp.ListRootsParams:
		if q != nil {
			return mcpseal.KindRoots
		}
	}
	return 0
}

// isURL is how the SDK infers the mode of an elicitation.
func isURL(q *mcp.ElicitParams) bool {
	return q.Mode == "url" || q.Mode == "" && (q.URL != "" || q.ElicitationID != "")
}

// solicited returns the answers to questions that the round before asked, by
// key and kind.
func solicited(round *mcpseal.Round, answers mcp.InputResponseMap) mcp.InputResponseMap {
	if _, pinned := round.Questions(); !pinned {
		return answers
	}
	var kept mcp.InputResponseMap
	for key, answer := range answers {
		if asked, ok := round.Asked(key); ok && fits(answer, asked.Kind) {
			if kept == nil {
				kept = make(mcp.InputResponseMap, len(answers))
			}
			kept[key] = answer
		}
	}
	return kept
}

// fits says whether an answer is of the question's kind. Answers to a form and
// to a URL look alike.
func fits(answer mcp.InputResponse, kind mcpseal.Kind) bool {
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		known := a != nil && (a.Action == "accept" || a.Action == "decline" || a.Action == "cancel")
		return known && (kind == mcpseal.KindForm || kind == mcpseal.KindURL)
	case *mcp.CreateMessageResult:
		return a != nil && kind == mcpseal.KindSampling
	case *mcp.CreateMessageWithToolsResult:
		return a != nil && kind == mcpseal.KindSampling
	case *mcp.ListRootsResult:
		return a != nil && kind == mcpseal.KindRoots
	}
	return false
}
