package passage

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// KindOf returns the kind of a question, or 0 if the value is nil or not a question.
func KindOf(question mcp.InputRequest) tripseal.Kind {
	switch q := question.(type) {
	case *mcp.ElicitParams:
		if q == nil {
			return 0
		}
		if isURL(q) {
			return tripseal.KindURL
		}
		return tripseal.KindForm
	case *mcp.CreateMessageParams:
		if q != nil {
			return tripseal.KindSampling
		}
	case *mcp.CreateMessageWithToolsParams:
		if q != nil {
			return tripseal.KindSampling
		}
	case *mcp.ListRootsParams:
		if q != nil {
			return tripseal.KindRoots
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
func KindOfAnswer(answer mcp.InputResponse) tripseal.Kind {
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
