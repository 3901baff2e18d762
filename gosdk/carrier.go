package gosdk

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk/internal/whole"
)

const (
	methodTool     = "tools/call"
	methodPrompt   = "prompts/get"
	methodResource = "resources/read"
)

func isCarrier(method string) bool {
	return method == methodTool || method == methodPrompt || method == methodResource
}

// call has the fields that requests of tools/call, prompts/get and resources/read have
// in common.
type call struct {
	method, target string
	arguments      []byte            // a tool's arguments as JSON; after keepArguments, also a prompt's arguments
	promptArgs     map[string]string // a prompt's arguments, shared with its handler
	token          string
	answers        mcp.InputResponseMap
	meta           map[string]any
}

// readCall reads a request of tools/call, prompts/get or resources/read; ok is false
// for any other request.
func readCall(method string, req mcp.Request) (c call, ok bool) {
	c.method = method
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if r == nil || r.Params == nil || method != methodTool {
			return c, false
		}
		return call{method, r.Params.Name, r.Params.Arguments, nil, r.Params.RequestState, r.Params.InputResponses, r.Params.Meta}, true
	case *mcp.GetPromptRequest:
		if r == nil || r.Params == nil || method != methodPrompt {
			return c, false
		}
		return call{method, r.Params.Name, nil, r.Params.Arguments, r.Params.RequestState, r.Params.InputResponses, r.Params.Meta}, true
	case *mcp.ReadResourceRequest:
		if r == nil || r.Params == nil || method != methodResource {
			return c, false
		}
		return call{method, r.Params.URI, nil, nil, r.Params.RequestState, r.Params.InputResponses, r.Params.Meta}, true
	}
	return c, false
}

// anyCall is readCall for callers that do not know the method.
func anyCall(req mcp.Request) (c call, ok bool) {
	for _, method := range []string{methodTool, methodPrompt, methodResource} {
		if c, ok = readCall(method, req); ok {
			return c, true
		}
	}
	return c, false
}

// withInput returns a copy of the request with this state and these answers.
func withInput(req mcp.Request, state string, answers mcp.InputResponseMap) mcp.Request {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		copied := copyRequest(r)
		copied.Params.RequestState, copied.Params.InputResponses = state, answers
		return copied
	case *mcp.GetPromptRequest:
		copied := copyRequest(r)
		copied.Params.RequestState, copied.Params.InputResponses = state, answers
		return copied
	case *mcp.ReadResourceRequest:
		copied := copyRequest(r)
		copied.Params.RequestState, copied.Params.InputResponses = state, answers
		return copied
	}
	return req
}

// copyRequest returns a copy of a request with a copy of its params. The two copies
// take one allocation together.
func copyRequest[T any, P interface {
	*T
	mcp.Params
}](r *mcp.ServerRequest[P]) *mcp.ServerRequest[P] {
	copied := &struct {
		request mcp.ServerRequest[P]
		params  T
	}{params: *r.Params}
	copied.request = mcp.ServerRequest[P]{Session: r.Session, Params: &copied.params, Extra: r.Extra}
	return &copied.request
}

// asking has the questions of a result, and the state that goes with them.
type asking struct {
	state     string
	questions mcp.InputRequestMap // nil if the result has no questions
	sent      bool                // true if the SDK will send the result as input_required, not as complete
}

// readResult reads the state and the questions of a result. ok is false if the result's
// type is not the SDK's own, or if the result or a content in it is nil: the SDK would
// panic when it writes a nil, and nothing would recover.
func readResult(result mcp.Result) (a asking, ok bool) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r != nil && whole.Contents(r.Content) {
			return asking{r.RequestState, r.InputRequests, r.NeedsInput()}, true
		}
	case *mcp.GetPromptResult:
		if r != nil && !slices.ContainsFunc(r.Messages, func(m *mcp.PromptMessage) bool { return m == nil || !whole.Content(m.Content) }) {
			return asking{r.RequestState, r.InputRequests, r.NeedsInput()}, true
		}
	case *mcp.ReadResourceResult:
		if r != nil && !slices.Contains(r.Contents, nil) {
			return asking{r.RequestState, r.InputRequests, r.NeedsInput()}, true
		}
	}
	return asking{}, false
}

// withState returns a copy of the result with another state. It copies the whole struct,
// because the SDK keeps the result type in an unexported field.
func withState(result mcp.Result, state string) mcp.Result {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		copied := *r
		copied.RequestState = state
		return &copied
	case *mcp.GetPromptResult:
		copied := *r
		copied.RequestState = state
		return &copied
	case *mcp.ReadResourceResult:
		copied := *r
		copied.RequestState = state
		return &copied
	}
	return result
}

// withoutCaching returns a result with the cache scope private and the cache time 0. A
// result that depends on answers or carries a token is for one user. The results of tools
// and prompts have no cache settings, so withoutCaching returns them unchanged.
func withoutCaching(result mcp.Result) mcp.Result {
	r, ok := result.(*mcp.ReadResourceResult)
	if !ok || r == nil || r.TTLMs == 0 && r.CacheScope == "private" {
		return result
	}
	copied := *r
	copied.TTLMs, copied.CacheScope = 0, "private"
	return &copied
}
