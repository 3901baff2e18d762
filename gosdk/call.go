package gosdk

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

const (
	methodTool     = "tools/call"
	methodPrompt   = "prompts/get"
	methodResource = "resources/read"
)

// call has the fields that requests of tools/call, prompts/get and resources/read have in common.
type call struct {
	method, target string
	arguments      []byte            // a tool's arguments
	promptArgs     map[string]string // a prompt's arguments
	token          string            // the state in plaintext, once the middleware has opened the token
	answers        mcp.InputResponseMap
	meta           map[string]any
}

// readCall reads a request of tools/call, prompts/get or resources/read; ok is false for any other request.
func readCall(req mcp.Request) (c call, ok bool) {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		if p := r.Params; p != nil {
			return call{methodTool, p.Name, p.Arguments, nil, p.RequestState, p.InputResponses, p.Meta}, true
		}
	case *mcp.GetPromptRequest:
		if p := r.Params; p != nil {
			return call{methodPrompt, p.Name, nil, p.Arguments, p.RequestState, p.InputResponses, p.Meta}, true
		}
	case *mcp.ReadResourceRequest:
		if p := r.Params; p != nil {
			return call{methodResource, p.URI, nil, nil, p.RequestState, p.InputResponses, p.Meta}, true
		}
	}
	return c, false
}

// request returns what the boundary needs to know about the call.
func (c *call) request(user tripseal.Principal) tripseal.Request {
	r := tripseal.Request{Method: c.method, Target: c.target, Arguments: c.arguments, Principal: user}
	if len(c.promptArgs) > 0 {
		r.Arguments = jsonOf(c.promptArgs)
	}
	return r
}

// jsonOf returns the arguments of a prompt as a JSON object. If they are not UTF-8, it returns what the boundary
// refuses.
func jsonOf(members map[string]string) []byte {
	for name, value := range members {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return []byte{0xff}
		}
	}
	text, _ := json.Marshal(members) // a map of texts can always be written
	return text
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

// copyRequest returns a copy of a request with a copy of its params, in one allocation.
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

// readResult reads the state and the questions of a result. ok is false if the result is nil or not the SDK's own.
func readResult(result mcp.Result) (a asking, ok bool) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r != nil {
			return asking{r.RequestState, r.InputRequests, r.NeedsInput()}, true
		}
	case *mcp.GetPromptResult:
		if r != nil {
			return asking{r.RequestState, r.InputRequests, r.NeedsInput()}, true
		}
	case *mcp.ReadResourceResult:
		if r != nil {
			return asking{r.RequestState, r.InputRequests, r.NeedsInput()}, true
		}
	}
	return asking{}, false
}

// withState returns a copy of the result with another state. It copies the whole struct, because the SDK keeps the type
// of the result in an unexported field.
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

// uncached returns a result with the cache scope private and the cache time 0: a result that depends on answers or
// carries a token is for one user. Only the results of resources have cache settings.
func uncached(result mcp.Result) mcp.Result {
	r, ok := result.(*mcp.ReadResourceResult)
	if !ok || r == nil || r.TTLMs == 0 && r.CacheScope == "private" {
		return result
	}
	copied := *r
	copied.TTLMs, copied.CacheScope = 0, "private"
	return &copied
}
