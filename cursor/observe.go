package cursor

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
)

// [Config.Observer] gets events about these operations of cursors.
const (
	OpIssue tripseal.Op = "issue_cursor" // a cursor was issued, or could not be issued
	OpOpen  tripseal.Op = "open_cursor"  // a cursor was opened or rejected
)

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

func (c *Cursors) start() (start time.Time) {
	if c.config.Observer != nil {
		start = time.Now()
	}
	return start
}

// report tells the observer about an operation. It tells the log too if the operation failed.
func (c *Cursors) report(ctx context.Context, op tripseal.Op, start time.Time, request *tripseal.Request, cursor string, fail *failure) {
	if fail == nil && c.config.Observer == nil {
		return
	}
	e := tripseal.Event{Op: op, Method: guard.PlainText(request.Method), Format: prefix, TokenBytes: len(cursor), KeyID: c.keyID(cursor)}
	if request.Method == "tools/call" {
		e.Target = guard.PlainText(request.Target)
	}
	if !start.IsZero() {
		e.Duration = time.Since(start)
	}
	if fail != nil {
		if fail.reason.Level() == slog.LevelError && guard.Canceled(ctx, fail.cause) {
			fail.reason = tripseal.ReasonCanceled
		}
		e.Reason, e.Cause = fail.reason, fail.cause.OrNil()
		c.log(ctx, &e, fail)
		// If Open rejects a cursor because of a time, the target is right, because Open checks the
		// times last. With any other reason, the client may have invented the target, and the
		// observer does not get it.
		if op == OpOpen && fail.reason != tripseal.ReasonExpired && fail.reason != tripseal.ReasonFromTheFuture {
			e.Target = tripseal.TargetUnknown
		}
	}
	if c.config.Observer != nil {
		guard.Quietly(func() { c.config.Observer(ctx, e) })
	}
}

func (c *Cursors) log(ctx context.Context, e *tripseal.Event, fail *failure) {
	level, message := e.Reason.Level(), "tripseal: cursor rejected"
	if e.Op == OpIssue {
		message = "tripseal: cursor not issued"
		if e.Reason != tripseal.ReasonCanceled {
			level = slog.LevelError
		}
	}
	guard.Log(ctx, c.config.Logger, level, message, append([]slog.Attr{
		slog.String("reason", string(e.Reason)), slog.String("method", e.Method), slog.String("target", e.Target),
		slog.String("key", e.KeyID), slog.Int("cursor_bytes", e.TokenBytes),
	}, guard.Attrs(fail.cause)...)...)
}

// keyID returns the key id in a cursor, which may be forged. It returns "" if the codec
// cannot read the id.
func (c *Cursors) keyID(cursor string) (id string) {
	text, ok := strings.CutPrefix(cursor, prefix)
	if named, says := c.config.Codec.(interface{ KeyID(string) string }); ok && says && len(cursor) <= c.maxCursor() {
		guard.Quietly(func() { id = guard.PlainText(named.KeyID(text)) })
	}
	return id
}
