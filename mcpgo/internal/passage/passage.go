// Package passage marks the context of a call that came through a door. The middleware and tests of handlers use it.
package passage

import (
	"context"

	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/wire"
)

// Call is a call that came through a door. Both fields are nil in tests of handlers.
type Call struct {
	Exchange *wire.Exchange
	Server   *server.MCPServer
}

type key struct{}

// With returns a context that belongs to the call. Nil means a call that came through no door.
func With(ctx context.Context, call *Call) context.Context {
	return context.WithValue(ctx, key{}, call)
}

// From returns the call that a context belongs to, or nil if that call came through no door. A handler may pass its
// context to another server in the same process: the other server's calls did not come through a door by that.
func From(ctx context.Context) *Call {
	call, _ := ctx.Value(key{}).(*Call)
	if call == nil || call.Server != server.ServerFromContext(ctx) {
		return nil
	}
	return call
}
