package gosdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/through"
)

// ErrNotProtected is returned by [State] and [SetState] in a call that came through no boundary. In such a call, State
// would return whatever the client sent, and the client could read what SetState writes. State and SetState also log
// this error, to slog.Default().
var ErrNotProtected = errors.New("gosdk: the call has not come through a boundary: call Protect on its server, " +
	"and pass what the handler got; in a test, pass gosdktest.Context")

// logNotProtected logs ErrNotProtected and returns it.
func logNotProtected(ctx context.Context) error {
	slog.ErrorContext(ctx, ErrNotProtected.Error())
	return ErrNotProtected
}

// Sealed reports whether a request came through a boundary. Pass the context and the request that the handler got. Call
// it before you read RequestState directly, so that the handler does not trust the client when Protect was forgotten.
func Sealed(ctx context.Context, req mcp.Request) bool {
	session := req.GetSession()
	if serving, ok := session.(*mcp.ServerSession); ok && serving == nil {
		session = nil // a test that calls the handler directly
	}
	return through.From(ctx, session) != nil
}

// SetState writes a Go value, as JSON, into a result with questions: a
// *mcp.CallToolResult, *mcp.GetPromptResult or *mcp.ReadResourceResult. [State] reads
// the value back in the next round. Pass the context and the request that the handler got. Use SetState when a handler
// asks something and must remember a value until the answer is there.
func SetState(ctx context.Context, req mcp.Request, result mcp.Result, value any) error {
	if !Sealed(ctx, req) {
		return logNotProtected(ctx)
	}
	text, err := tripseal.EncodeState(value)
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

// State returns the value that [SetState] wrote in the previous round. If there is no state, as in the first round, the
// second result is false. An error other than [ErrNotProtected] means that the state does not fit T: it has members
// that T does not have, or members of other types. For example, an earlier version of the handler may have written it.
// The error repeats nothing of the state. Call State at the start of a handler that writes its state with SetState.
func State[T any](ctx context.Context, req mcp.Request) (value T, present bool, err error) {
	var none T
	if !Sealed(ctx, req) {
		return none, false, logNotProtected(ctx)
	}
	c, _ := readCall(req)
	if c.token == "" { // after the middleware has opened the token, c.token is the state in plaintext
		return none, false, nil
	}
	value, err = tripseal.DecodeState[T](c.token)
	return value, true, err
}
