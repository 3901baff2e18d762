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

// RejectError means that a cursor was not opened. errors.Is matches it with [ErrExpired] or [ErrInvalid], and its text
// says no more than that. Use errors.As to get a RejectError if your own code must know the reason.
type RejectError struct {
	Reason tripseal.Reason `json:"-"` // tells the operator why; never show it to the client
	cause  *guard.Error
}

func (e *RejectError) kind() error {
	if e.Reason == tripseal.ReasonExpired {
		return ErrExpired
	}
	return ErrInvalid
}

// Error returns the text of [ErrExpired] or of [ErrInvalid]. A client may see it.
func (e *RejectError) Error() string { return e.kind().Error() }

// Is reports whether target is the kind of error that e is. Call errors.Is instead of this method.
func (e *RejectError) Is(target error) bool { return target == e.kind() }

// Cause returns an error that explains the reason, or nil: see [tripseal.RejectError.Cause].
func (e *RejectError) Cause() error { return e.cause.OrNil() }

// IssueError means that a cursor was not issued. Its text has the reason, which the client must not see: send the
// client what [Wire] returns.
type IssueError struct {
	Reason tripseal.Reason // tells the operator why
	cause  *guard.Error
}

// Error returns a text with the reason, for the log.
func (e *IssueError) Error() string { return "tripseal: cursor not issued: " + string(e.Reason) }

// Cause returns an error that explains the reason, or nil: see [tripseal.RejectError.Cause].
func (e *IssueError) Cause() error { return e.cause.OrNil() }

// Wire turns an error of this package into the error that the client gets. Use Wire in a handler that opens and issues
// cursors itself; paged tools of an adapter do this for you.
func Wire(err error) tripseal.WireError {
	const invalidParams = -32602 // the code that MCP's pagination chapter requires
	var issue *IssueError
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

// failure says why a check failed, with all that the operator may know.
type failure struct {
	reason tripseal.Reason
	cause  *guard.Error // explains the reason; may be nil
}

func failed(reason tripseal.Reason) *failure { return &failure{reason: reason} }

// failedBecause returns a failure with an explanation. The explanation must hold no secret.
func failedBecause(reason tripseal.Reason, format string, args ...any) *failure {
	return &failure{reason, guard.Explain(format, args...)}
}

// [Config.Observer] gets events about these operations of cursors.
const (
	OpIssue tripseal.Op = "issue_cursor" // a cursor was issued, or could not be issued
	OpOpen  tripseal.Op = "open_cursor"  // a cursor was opened or rejected
)

// report tells the observer about an operation. It tells the log too if the operation failed.
func (c *Cursors) report(
	ctx context.Context, op tripseal.Op, start time.Time, request *tripseal.Request, cursor string, fail *failure,
) {
	if fail == nil && c.config.Observer == nil {
		return
	}
	e := tripseal.Event{
		Op: op, Method: guard.PlainText(request.Method), Format: prefix,
		TokenBytes: len(cursor), KeyID: c.keyID(cursor), Duration: time.Since(start),
	}
	if request.Method == "tools/call" {
		e.Target = guard.PlainText(request.Target)
	}
	if fail != nil {
		if fail.reason.Level() == slog.LevelError && guard.Canceled(ctx, fail.cause) {
			fail.reason = tripseal.ReasonCanceled // there is nothing to repair
		}
		e.Reason, e.Cause = fail.reason, fail.cause.OrNil()
		level, message := e.Reason.Level(), "tripseal: cursor rejected"
		if op == OpIssue {
			message = "tripseal: cursor not issued"
			if e.Reason != tripseal.ReasonCanceled {
				level = slog.LevelError
			}
		}
		guard.Log(ctx, c.config.Logger, level, message, append([]slog.Attr{
			slog.String("reason", string(e.Reason)), slog.String("method", e.Method), slog.String("target", e.Target),
			slog.String("key", e.KeyID), slog.Int("cursor_bytes", e.TokenBytes),
		}, guard.Attrs(fail.cause)...)...)
		// The times are checked last, so a cursor that is rejected for them is for this target. With any other reason,
		// the client may have invented the target, and the observer does not get it.
		if op == OpOpen && e.Reason != tripseal.ReasonExpired && e.Reason != tripseal.ReasonFromTheFuture {
			e.Target = tripseal.TargetUnknown
		}
	}
	if c.config.Observer != nil {
		guard.Quietly(func() { c.config.Observer(ctx, e) })
	}
}

// keyID returns the key id in a cursor, which may be forged. It returns "" if the codec cannot read the id.
func (c *Cursors) keyID(cursor string) (id string) {
	text, ok := strings.CutPrefix(cursor, prefix)
	if named, says := c.config.Codec.(interface{ KeyID(string) string }); ok && says && len(cursor) <= c.maxCursor() {
		guard.Quietly(func() { id = guard.PlainText(named.KeyID(text)) })
	}
	return id
}
