package gosdk

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SetState writes value, as JSON, into a result that asks: a *mcp.CallToolResult,
// *mcp.GetPromptResult or *mcp.ReadResourceResult. [State] reads it back in the
// next round.
func SetState(result mcp.Result, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("gosdk: the state cannot be written as JSON: %w", err)
	}
	if _, ok := readResult(result); !ok {
		return fmt.Errorf("gosdk: a %T carries no state", result)
	}
	switch r := result.(type) {
	case *mcp.CallToolResult:
		r.RequestState = string(text)
	case *mcp.GetPromptResult:
		r.RequestState = string(text)
	case *mcp.ReadResourceResult:
		r.RequestState = string(text)
	}
	return nil
}

// State returns what [SetState] wrote in the round before. On a first round
// present is false. An error means that the state was written by something
// else, or by an earlier version of the handler; it repeats nothing of it.
func State[T any](req mcp.Request) (value T, present bool, err error) {
	var text string
	for _, method := range []string{methodTool, methodPrompt, methodResource} {
		if c, ok := readCall(method, req); ok {
			text = c.token // plaintext by now
		}
	}
	if text == "" {
		return value, false, nil
	}
	if json.Unmarshal([]byte(text), &value) != nil {
		var zero T
		return zero, true, fmt.Errorf("gosdk: the state is not a %T", zero)
	}
	return value, true, nil
}
