// Package passage has the mark of a call that passed a boundary, for the middleware and
// for tests of handlers.
package passage

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
)

// Call is the context of a call whose state and answers have passed a boundary. It is a
// context itself, so that marking costs one allocation only.
type Call struct {
	context.Context
	Server *server.MCPServer // nil in tests of handlers
	Round  mcpseal.Round
}

type key struct{}

// Value lets From find the call.
func (c *Call) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// From returns the call that a context belongs to, or nil.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}
