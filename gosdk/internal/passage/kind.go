package passage

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// KindOf returns the kind of a question, or 0 if the value is nil or not a question.
func KindOf(question mcp.InputRequest) mcpseal.Kind {
	switch q := question.(type) {
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

// isURL reports whether an elicitation is about a URL. It decides as the SDK does.
func isURL(q *mcp.ElicitParams) bool {
	return q.Mode == "url" || q.Mode == "" && (q.URL != "" || q.ElicitationID != "")
}

// KindOfAnswer returns a kind of question that the answer can answer, or 0 if there is
// none.
func KindOfAnswer(answer mcp.InputResponse) mcpseal.Kind {
	switch a := answer.(type) {
	case *mcp.ElicitResult:
		if a != nil {
			return mcpseal.KindForm
		}
	case *mcp.CreateMessageResult:
		if a != nil {
			return mcpseal.KindSampling
		}
	case *mcp.CreateMessageWithToolsResult:
		if a != nil {
			return mcpseal.KindSampling
		}
	case *mcp.ListRootsResult:
		if a != nil {
			return mcpseal.KindRoots
		}
	}
	return 0
}
