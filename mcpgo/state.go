package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// ErrNotProtected is returned by [State] and [SetState] in a call that came through no boundary. In
// such a call, State would return whatever the client sent, and the client could read what SetState
// writes. A handler may also build a request itself, for example from its own arguments. If the
// state in such a request came through no boundary, State returns this error too. State and
// SetState also log this error, to slog.Default().
var ErrNotProtected = errors.New("mcpgo: the call has not come through a boundary: call Protect on its server, " +
	"and pass the context and the request that the handler got; in a test, pass mcpgotest.Context")

// refuseUnprotected logs ErrNotProtected and returns it.
func refuseUnprotected(ctx context.Context) error {
	slog.ErrorContext(ctx, ErrNotProtected.Error())
	return ErrNotProtected
}

// Sealed reports whether a call came through a boundary. Pass the context that the handler
// got. Call it before you read RequestState directly, so that the handler does not trust
// the client when Protect was forgotten. Sealed looks only at the context: a request that a
// handler built itself has a state and answers that nobody has checked. The handler of a
// task tool never gets a state.
func Sealed(ctx context.Context) bool {
	// A handler of a protected server may pass its context to another server in the same
	// process. The mark of the protected call is then in the context of the other call, too.
	// So Sealed checks that the mark names the server that the context belongs to.
	call := passage.From(ctx)
	return call != nil && call.Server == server.ServerFromContext(ctx)
}

// isNobodys reports whether a token of a call would be bound to nobody although the handler knows
// a user.
func isNobodys(ctx context.Context) (found bool) {
	i, call := installed(ctx), passage.From(ctx)
	if i == nil || call.Server == nil || i.options.Principal == nil || !i.options.AllowAnonymous {
		return false // a test of a handler, or a server on which a call without a user fails
	}
	tripseal.Guard(func() error {
		if inner, err := i.options.Principal(ctx); inner == "" || err != nil {
			return err
		}
		arrived, err := i.options.Principal(call.Context)
		found = arrived == "" && err == nil
		return err
	})
	return found
}

// SetState writes value, as JSON, into a result with questions: a *mcp.CallToolResult or a
// *mcp.GetPromptResult. [State] reads it back in the next round. Pass the context that the handler
// got. Use SetState when a handler asks something and must remember a value until the answer
// arrives. SetState fails with [ErrNotProtected] in a call that came through no boundary. With
// Options.AllowAnonymous, SetState also fails if Options.Principal finds a user in ctx, but no user
// in the context that Protect's middleware got. In that case, put the user into the context
// earlier, with server.WithHTTPContextFunc for example.
func SetState(ctx context.Context, result, value any) error {
	if !Sealed(ctx) {
		return refuseUnprotected(ctx)
	}
	if isNobodys(ctx) {
		return installed(ctx).refuse(ctx, "", errInnerUser.Error())
	}
	text, err := tripseal.EncodeState(value)
	if err != nil {
		return err
	}
	switch r := result.(type) {
	case *mcp.CallToolResult:
		if r != nil {
			r.RequestState = text
			return nil
		}
	case *mcp.GetPromptResult:
		if r != nil {
			r.RequestState = text
			return nil
		}
	}
	return fmt.Errorf("mcpgo: a %T carries no state, or is nil", result)
}

// State returns what [SetState] wrote in the previous round. Pass the context and the request that
// the handler got. In the first round, present is false. State fails if the state does not fit T:
// the state has members that T does not have, or members of other types. For example, an earlier
// version of the handler may have written the state. The error repeats nothing of the state. Call
// State at the start of a handler that writes its state with SetState.
func State[T any](ctx context.Context, req any) (value T, present bool, err error) {
	var none T
	if !Sealed(ctx) {
		return none, false, refuseUnprotected(ctx)
	}
	c, ok := anyCall(req)
	if !ok {
		return none, false, fmt.Errorf("mcpgo: a %T carries no state: pass the request that the handler got", req)
	}
	if c.token == "" { // here c.token is the plaintext state: the middleware has opened the token
		return none, false, nil
	}
	if call := passage.From(ctx); call.Server != nil && c.token != call.State { // tests of handlers have no server
		return none, false, refuseUnprotected(ctx)
	}
	value, err = tripseal.DecodeState[T](c.token)
	return value, true, err
}
