//go:build !race

package mcpgo_test

import (
	"encoding/json"
	"testing"

	"github.com/mark3labs/mcp-go/server"
)

// One allocation is for the context that marks the call as checked. The other one is for the tool
// filter that Protect adds.
func TestACallThatNeverAsksPaysTwoAllocations(t *testing.T) {
	empty := server.NewMCPServer("test", "1", server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc { return next }))
	addHandlers(empty)
	ours := protected(t, new(log))
	alice := as(t.Context(), "alice")
	for name, params := range map[string]string{
		"2026-07-28": meta + `,"name":"echo","arguments":{"a":{"b":[1,2,3]}}`,
		"older":      `"name":"echo","arguments":{"a":{"b":[1,2,3]}}`,
	} {
		call := json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + params + `}}`)
		base := testing.AllocsPerRun(500, func() { empty.HandleMessage(alice, call) })
		if got := testing.AllocsPerRun(500, func() { ours.HandleMessage(alice, call) }); got > base+3 { // the marked context, the tool filter, and one allocation that any middleware needs
			t.Errorf("%s: %v allocations, %v with an empty middleware", name, got, base+1)
		}
	}
}
