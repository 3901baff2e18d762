package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// pins returns the questions as the boundary seals them, with the wording of those
// that elicit asks.
func (p *Protected) pins(ctx context.Context, c call, requests mcp.InputRequestMap, wording map[string][16]byte) ([]mcpseal.Question, error) {
	if wording != nil && !sameKeys(wording, requests) {
		return nil, p.refuse(ctx, c.method, "the questions of elicit were changed, so they would never get an answer: "+
			"a middleware further in must leave its results alone")
	}
	if len(requests) == 0 {
		return nil, nil
	}
	questions := make([]mcpseal.Question, 0, len(requests))
	for key, request := range requests {
		kind := kindOfQuestion(request)
		if kind == 0 || !hasMessages(request) || !utf8.ValidString(key) {
			return nil, p.refuse(ctx, c.method, fmt.Sprintf("the question %.40q is nil, has a nil message or content, is of a type that cannot be asked, %T, "+
				"or its key is not UTF-8", key, request))
		}
		if err := p.checkWritable(ctx, c.method, request); err != nil {
			return nil, err
		}
		questions = append(questions, mcpseal.Question{Key: key, Kind: kind, Digest: wording[key]})
	}
	return questions, nil
}

// checkWritable refuses what cannot be written as JSON: the SDK would not answer the
// client, or write it with nobody to recover.
func (p *Protected) checkWritable(ctx context.Context, method string, asking any) error {
	err := mcpseal.Guard(func() error {
		_, err := json.Marshal(asking)
		return err
	})
	if err != nil {
		return p.refuse(ctx, method, "a question, or the _meta beside it, cannot be written as JSON: "+err.Error())
	}
	return nil
}

// hasMessages reports whether the messages of a sampling question are whole: the SDK
// would write them with nobody to recover.
func hasMessages(request mcp.InputRequest) bool {
	switch q := request.(type) {
	case *mcp.CreateMessageParams:
		return !slices.ContainsFunc(q.Messages, func(m *mcp.SamplingMessage) bool { return m == nil || !isWhole(m.Content) })
	case *mcp.CreateMessageWithToolsParams:
		return !slices.ContainsFunc(q.Messages, func(m *mcp.SamplingMessageV2) bool { return m == nil || !areWhole(m.Content) })
	}
	return true
}

func sameKeys(wording map[string][16]byte, requests mcp.InputRequestMap) bool {
	for key := range requests {
		if _, ok := wording[key]; !ok {
			return false
		}
	}
	return len(wording) == len(requests)
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
