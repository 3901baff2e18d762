// Package passage marks the context of a call that has passed a boundary. The middleware
// and tests of handlers use it.
package passage

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
)

// Call is a context that marks a call whose state and answers have passed a boundary. It is
// the context and the mark in one value, so that both take only one allocation.
type Call struct {
	context.Context
	Server *server.MCPServer // nil in tests of handlers
	Round  tripseal.Round
	State  string // the state in plaintext that the handler gets; not set in tests of handlers
}

type key struct{}

// Value returns c for the key that the function From uses, so that From finds the call.
func (c *Call) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// String returns the name of the type, so that a printed context does not show the state.
func (c *Call) String() string { return "passage.Call" }

// Format writes what String returns, whatever the verb is.
func (c *Call) Format(s fmt.State, _ rune) { io.WriteString(s, c.String()) }

// LogValue returns what String returns.
func (c *Call) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText returns what String returns, so that encoding/json does not show the state either.
func (c *Call) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// From returns the call that a context belongs to, or nil if the call has passed no boundary.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}
