package mcpgo

import (
	"encoding/json"
	"errors"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tripseal/tripseal/adapter"
)

// call has the fields that requests of tools/call, prompts/get and resources/read have in
// common.
type call struct {
	method, target string
	arguments      []byte            // the JSON that the token is bound to; callOfTool and callOfPrompt do not set it
	unknown        bool              // true if nothing tells what the client sent as arguments: see boundTo
	promptArgs     map[string]string // a prompt's arguments, shared with its handler
	token          string
	answers        mcp.InputResponses
	task           bool // true if the call runs as a task: see decideTask

	// copies is true if the handler must get a copy of the arguments, because it may be called again with
	// the same arguments: by mcp-go, after mcp-go has asked an older client, or by middleware that was
	// added before Protect.
	copies   bool
	uncopied bool                 // true if the arguments cannot be copied: see deepCopy
	older    bool                 // true if the client is an older one that mcp-go can ask
	declared adapter.Capabilities // what the client could answer when the call arrived; an older client may declare more during the call
	state    string               // the state in plaintext, for the handler
	kept     mcp.InputResponses   // the answers that the handler may see
}

func callOfTool(r *mcp.CallToolRequest) call {
	return call{
		method: string(mcp.MethodToolsCall), target: r.Params.Name,
		token: r.Params.RequestState, answers: r.Params.InputResponses, task: r.Params.Task != nil,
	}
}

func callOfPrompt(r *mcp.GetPromptRequest) call {
	return call{
		method: string(mcp.MethodPromptsGet), target: r.Params.Name, promptArgs: r.Params.Arguments,
		token: r.Params.RequestState, answers: r.Params.InputResponses,
	}
}

func callOfResource(r *mcp.ReadResourceRequest) call {
	c := call{
		method: string(mcp.MethodResourcesRead), target: r.Params.URI,
		token: r.Params.RequestState, answers: r.Params.InputResponses,
	}
	if len(r.Params.Arguments) > 0 {
		c.arguments = jsonOf(r.Params.Arguments)
	}
	return c
}

// anyCall reads a request that a handler got. It returns false if the request is not for a tool,
// prompt or resource.
func anyCall(req any) (c call, ok bool) {
	switch r := req.(type) {
	case mcp.CallToolRequest:
		return callOfTool(&r), true
	case mcp.GetPromptRequest:
		return callOfPrompt(&r), true
	case mcp.ReadResourceRequest:
		return callOfResource(&r), true
	}
	return c, false
}

// handOver puts the opened state and the accepted answers into the params for the handler.
// They replace the token and the answers that the client sent.
func (c *call) handOver(params *mcp.MultiRoundTripParams) {
	params.RequestState, params.InputResponses = c.state, c.kept
}

// copyArguments replaces c.arguments with a copy that the handler cannot change, and
// returns the copy. The copy is valid until it is released. copyArguments returns nil if
// there is no copy to release: the call has no arguments, or their JSON is longer than the
// limit. JSON over this limit is never digested.
func (c *call) copyArguments(limit int) (kept *adapter.Arguments) {
	switch {
	case len(c.arguments) > limit:
		return nil
	case len(c.arguments) > 0:
		kept = adapter.CopyArguments(c.arguments)
	case len(c.promptArgs) > 0:
		kept = adapter.CopyStrings(c.promptArgs)
	default:
		return nil
	}
	c.arguments = kept.Text()
	return kept
}

// asking holds the state of a result, and whether the result asks questions.
type asking struct {
	state     string
	questions bool // true if the result has questions
	asks      bool // true if mcp-go will send the result as one that needs input
}

// readResult reads the state and the questions of what a handler returned. It returns
// false if a tool or prompt returned nil. The result of a resource has neither state nor
// questions.
func readResult(result any) (a asking, ok bool) {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r == nil {
			return a, false
		}
		a = asking{r.RequestState, len(r.InputRequests) > 0, r.NeedsInput()}
	case *mcp.GetPromptResult:
		if r == nil {
			return a, false
		}
		a = asking{r.RequestState, len(r.InputRequests) > 0, r.NeedsInput()}
	}
	return a, true
}

func questionsOf(result any) mcp.InputRequests {
	switch r := result.(type) {
	case *mcp.CallToolResult:
		return r.InputRequests
	case *mcp.GetPromptResult:
		return r.InputRequests
	}
	return nil
}

// checkWritableBeside returns an error if a result cannot be written as JSON. It does not
// look at the questions of the result.
func checkWritableBeside(result any) error {
	var meta *mcp.Meta
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if err := adapter.CheckWritable(r.StructuredContent); err != nil {
			return err
		}
		if raw := r.RawStructuredContent; len(raw) > 0 && !json.Valid(raw) {
			return errors.New("RawStructuredContent is not JSON")
		}
		if len(r.Content) > 0 {
			if err := adapter.CheckWritable(r.Content); err != nil {
				return err
			}
		}
		meta = r.Meta
	case *mcp.GetPromptResult:
		if len(r.Messages) > 0 {
			if err := adapter.CheckWritable(r.Messages); err != nil {
				return err
			}
		}
		meta = r.Meta
	}
	if meta == nil {
		return nil
	}
	return adapter.CheckWritable(meta)
}

// withState returns a copy of a result with another state. It does not change the
// original, because the handler may use the original again.
func withState[R any](result R, state string) R {
	switch r := any(result).(type) {
	case *mcp.CallToolResult:
		copied := *r
		copied.RequestState = state
		return any(&copied).(R)
	case *mcp.GetPromptResult:
		copied := *r
		copied.RequestState = state
		return any(&copied).(R)
	}
	return result
}
