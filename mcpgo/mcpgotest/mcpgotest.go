// Package mcpgotest is for tests of handlers that use [mcpgo.State] and [mcpgo.SetState], without a server.
package mcpgotest

import (
	"context"
	"testing"

	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// Context returns a context for a test that calls a handler directly. It is marked as if the call came through a door.
func Context(t testing.TB) context.Context { return passage.With(t.Context(), new(passage.Call)) }
