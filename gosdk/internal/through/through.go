// Package through marks the context of a call that has come through the middleware of a protected server.
package through

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/elicit"
)

// Call is the marked context of a call: one allocation does for both.
type Call struct {
	context.Context
	Session mcp.Session       // nil in tests of handlers
	Extra   *mcp.RequestExtra // the headers and the access token of the call's own request
	Arrival elicit.Arrival    // what package elicit gets of the call
	Older   any               // what package gosdk knows of the call of an older client; nil for newer clients
}

type key struct{}

// Value returns the Call itself for the key that [From] looks up, and its Arrival for package elicit.
func (c *Call) Value(k any) any {
	switch k.(type) {
	case key:
		return c
	case elicit.ArrivalKey:
		return &c.Arrival
	}
	return c.Context.Value(k)
}

// String returns the name of the type, so that a printed context shows nothing of the call.
func (c *Call) String() string { return "through.Call" }

// Extra returns the headers and the access token of the call that a context belongs to, or nil.
func Extra(ctx context.Context) *mcp.RequestExtra {
	if c, _ := ctx.Value(key{}).(*Call); c != nil {
		return c.Extra
	}
	return nil
}

// From returns the call that a context belongs to, or nil if there is none. The session must be the call's own: a
// handler may use the context of its call to connect to another server, to which the call does not belong.
func From(ctx context.Context, session mcp.Session) *Call {
	if c, _ := ctx.Value(key{}).(*Call); c != nil && c.Session == session {
		return c
	}
	return nil
}
