package gosdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// ErrNotProtected is what [State] and [SetState] return in a call that no boundary
// has seen: its state is whatever the client sent, and would leave in plaintext.
var ErrNotProtected = errors.New("gosdk: the call has not come through a boundary: call Protect on its server, " +
	"and pass what the handler got; in a test, pass gosdktest.Context")

// Sealed reports whether a request came through a boundary; both are what the
// handler got. A handler that reads RequestState by itself asks it first, so that
// it does not trust a client where the line with Protect was forgotten.
func Sealed(ctx context.Context, req mcp.Request) bool {
	passing := passage.From(ctx)
	if passing == nil {
		return false
	}
	if passing.Session == nil { // a test, of a handler by itself
		session, ok := req.GetSession().(*mcp.ServerSession)
		return ok && session == nil
	}
	// The context of a server that a protected handler connected to is derived
	// from that handler's. The session tells them apart.
	return passing.Session == req.GetSession()
}

// SetState writes value, as JSON, into a result that asks: a *mcp.CallToolResult,
// *mcp.GetPromptResult or *mcp.ReadResourceResult. [State] reads it back in the
// next round. Context and request are the handler's.
func SetState(ctx context.Context, req mcp.Request, result mcp.Result, value any) error {
	if !Sealed(ctx, req) {
		return ErrNotProtected
	}
	text, err := mcpseal.EncodeState(value)
	if err != nil {
		return err
	}
	if _, ok := readResult(result); !ok {
		return fmt.Errorf("gosdk: a %T carries no state", result)
	}
	switch r := result.(type) {
	case *mcp.CallToolResult:
		r.RequestState = text
	case *mcp.GetPromptResult:
		r.RequestState = text
	case *mcp.ReadResourceResult:
		r.RequestState = text
	}
	return nil
}

// State returns what [SetState] wrote in the round before. On a first round
// present is false. An error other than [ErrNotProtected] means that the state was
// written by something else, or by an earlier version of the handler: it has
// members that T does not have, or of other types. It repeats nothing of the state.
func State[T any](ctx context.Context, req mcp.Request) (value T, present bool, err error) {
	var none T
	if !Sealed(ctx, req) {
		return none, false, ErrNotProtected
	}
	c, _ := anyCall(req)
	if c.token == "" { // plaintext by now
		return none, false, nil
	}
	value, err = mcpseal.DecodeState[T](c.token)
	return value, true, err
}
