package gosdk

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// installation finds out whether the middleware is installed twice on one
// server: it would seal what is sealed already.
type installation struct{ passed atomic.Bool }

type installedKey struct{}

// check returns the context to go on with, and false if another instance is
// further out for the same session. An instance makes itself known to those
// further in until one of its calls has gone through; after that it costs a
// look-up and no allocation.
func (i *installation) check(ctx context.Context, session mcp.Session) (context.Context, bool) {
	if outer, ok := ctx.Value(installedKey{}).(mcp.Session); ok && outer == session {
		return ctx, false
	}
	if !i.passed.Load() {
		ctx = context.WithValue(ctx, installedKey{}, session)
	}
	return ctx, true
}
