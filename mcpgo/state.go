package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// ErrNotProtected is returned by [State] and [SetState] in a call that came through no door: State would return
// whatever the client sent, and the client could read what SetState writes. They log it, too.
var ErrNotProtected = errors.New("mcpgo: the call has not come through a door: serve it with Handler or ServeStdio, " +
	"and pass the context that the handler got; in a test, pass mcpgotest.Context")

// Sealed reports whether a call came through a door of its server's engine. Pass the context that the handler got. Call
// it before you read RequestState directly.
func Sealed(ctx context.Context) bool { return passage.From(ctx) != nil }

func checkSealed(ctx context.Context) error {
	if Sealed(ctx) {
		return nil
	}
	slog.ErrorContext(ctx, ErrNotProtected.Error())
	return ErrNotProtected
}

// SetState writes value, as JSON, into a result with questions: a *mcp.CallToolResult or a *mcp.GetPromptResult.
// [State] reads it back in the next round. Pass the context that the handler got. SetState fails with
// [ErrNotProtected] in a call that came through no door.
func SetState(ctx context.Context, result, value any) error {
	if err := checkSealed(ctx); err != nil {
		return err
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

// State returns what [SetState] wrote in the previous round. Pass the context and the request that the handler got. In
// the first round, present is false. State fails with [ErrNotProtected] in a call that came through no door. It also
// fails if the state does not fit T, for example because an earlier version of the handler wrote it.
func State[T any](ctx context.Context, req any) (value T, present bool, err error) {
	var none T
	if err := checkSealed(ctx); err != nil {
		return none, false, err
	}
	text := ""
	switch r := req.(type) {
	case mcp.CallToolRequest:
		text = r.Params.RequestState
	case mcp.GetPromptRequest:
		text = r.Params.RequestState
	default:
		return none, false, fmt.Errorf("mcpgo: a %T carries no state: pass the request that the handler got", req)
	}
	if text == "" {
		return none, false, nil
	}
	value, err = tripseal.DecodeState[T](text)
	return value, true, err
}
