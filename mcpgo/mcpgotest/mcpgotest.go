// Package mcpgotest is for tests of handlers whose server is protected by package mcpgo.
// With [Context], a test can call such a handler directly. To test a whole server, send it
// requests with its HandleMessage method or with mcp-go's client.
package mcpgotest

import (
	"context"
	"testing"

	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// Context returns a context for a test that calls a handler directly. It is marked as if
// the call came through a boundary: [mcpgo.Sealed] returns true for it.
func Context(t testing.TB) context.Context { return &passage.Call{Context: t.Context()} }
