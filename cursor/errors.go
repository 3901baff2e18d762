package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
)

// Open returns these two kinds of errors. Use errors.Is to tell which kind an error is.
var (
	// ErrExpired means that the cursor is right for this request but too old. The client must start again at the first
	// page.
	ErrExpired = errors.New("tripseal: cursor expired")
	// ErrInvalid means that the cursor was refused for a reason other than its age. The log has the reason; send the
	// client what [Wire] returns.
	ErrInvalid = errors.New("tripseal: invalid cursor")
)

// Error means that a cursor was not opened or not issued. Use errors.As to get it if your own code must know the
// reason, which the client must not see: send the client what [Wire] returns. errors.Is matches the error of a cursor
// that was not opened with [ErrExpired] or [ErrInvalid], and its text says no more than that.
type Error struct {
	Op     tripseal.Op     `json:"-"` // OpIssue if a cursor was not issued; anything else means that it was not opened
	Reason tripseal.Reason `json:"-"` // tells the operator why
	cause  *guard.Error
}

func (e *Error) kind() error {
	switch {
	case e.Op == OpIssue:
		return nil
	case e.Reason == tripseal.ReasonExpired:
		return ErrExpired
	}
	return ErrInvalid
}

// Error returns the text of [ErrExpired] or [ErrInvalid] or, if no cursor was issued, a text for the log.
func (e *Error) Error() string {
	if kind := e.kind(); kind != nil {
		return kind.Error()
	}
	return "tripseal: cursor not issued: " + string(e.Reason)
}

// Is reports whether target is the kind of error that e is. Call errors.Is instead of this method.
func (e *Error) Is(target error) bool { return target == e.kind() }

// Cause returns an error that explains the reason, or nil: see [tripseal.RejectError.Cause].
func (e *Error) Cause() error { return e.cause.OrNil() }

func failed(reason tripseal.Reason) *Error { return &Error{Reason: reason} }

// failedBecause returns an error with an explanation. The explanation must hold no secret.
func failedBecause(reason tripseal.Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, cause: guard.Explain(format, args...)}
}

// Wire turns an error of this package into the error that the client gets. Use Wire in a handler that opens and issues
// cursors itself; paged tools of an adapter do this for you.
func Wire(err error) tripseal.WireError {
	const invalidParams = -32602 // the code that MCP's pagination chapter requires
	var issue *Error
	switch {
	case errors.Is(err, ErrExpired):
		return tripseal.WireError{Code: invalidParams, Message: "Expired cursor",
			Data: json.RawMessage(`{"reason":"expired_cursor"}`)}
	case errors.Is(err, ErrInvalid):
		return tripseal.WireError{Code: invalidParams, Message: "Invalid cursor",
			Data: json.RawMessage(`{"reason":"invalid_cursor"}`)}
	case errors.As(err, &issue) && issue.Reason == tripseal.ReasonInvalidParams:
		return tripseal.WireError{Code: invalidParams, Message: "Invalid params"}
	}
	return tripseal.WireError{Code: -32603, Message: "Internal error"}
}

// The observer of the boundary gets events about these operations of cursors.
const (
	OpIssue tripseal.Op = "issue_cursor" // a cursor was issued, or could not be issued
	OpOpen  tripseal.Op = "open_cursor"  // a cursor was opened or rejected
)

// report tells the observer about an operation, and the log too if the operation failed. It returns what the caller
// gets. A page of another issuer has nobody to tell.
func (p *Page) report(ctx context.Context, op tripseal.Op, start time.Time, cursor string, fail *Error) error {
	c := p.cursors
	if fail == nil && (c == nil || c.policy.Observer == nil) {
		return nil
	}
	if fail != nil {
		fail.Op = op
		if fail.Reason.Level() == slog.LevelError && guard.Canceled(ctx, fail.cause) {
			fail.Reason = tripseal.ReasonCanceled // there is nothing to repair
		}
		if c == nil {
			return fail
		}
	}
	e := tripseal.Event{
		Op: op, Method: guard.PlainText(p.request.Method), Format: prefix,
		TokenBytes: len(cursor), KeyID: c.keyID(cursor), Duration: time.Since(start),
	}
	if p.request.Method == "tools/call" {
		e.Target = guard.PlainText(p.request.Target)
	}
	if fail != nil {
		e.Reason, e.Cause = fail.Reason, fail.Cause()
		level, message := e.Reason.Level(), "tripseal: cursor rejected"
		if op == OpIssue {
			message = "tripseal: cursor not issued"
			if e.Reason != tripseal.ReasonCanceled {
				level = slog.LevelError
			}
		}
		guard.Log(ctx, c.policy.Logger, level, message, append([]slog.Attr{
			slog.String("reason", string(e.Reason)), slog.String("method", e.Method), slog.String("target", e.Target),
			slog.String("key", e.KeyID), slog.Int("cursor_bytes", e.TokenBytes),
		}, guard.Attrs(fail.cause)...)...)
		// The times are checked last, so a cursor that is rejected for them is for this target. With any other reason,
		// the client may have invented the target, and the observer does not get it.
		if op == OpOpen && e.Reason != tripseal.ReasonExpired && e.Reason != tripseal.ReasonFromTheFuture {
			e.Target = tripseal.TargetUnknown
		}
	}
	if c.policy.Observer != nil {
		guard.Quietly(func() { c.policy.Observer(ctx, e) })
	}
	if fail != nil {
		return fail
	}
	return nil
}

// keyID returns the key id in a cursor, which may be forged. It returns "" if the codec cannot read the id.
func (c *Cursors) keyID(cursor string) (id string) {
	text, ok := strings.CutPrefix(cursor, prefix)
	if named, says := c.codec.(interface{ KeyID(string) string }); ok && says && len(cursor) <= c.maxCursor() {
		guard.Quietly(func() { id = guard.PlainText(named.KeyID(text)) })
	}
	return id
}
