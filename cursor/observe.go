package cursor

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// What an observer is told of.
const (
	OpIssue mcpseal.Op = "issue_cursor"
	OpOpen  mcpseal.Op = "open_cursor"
)

// failure is a failed check with all that the operator may learn of it.
type failure struct {
	reason mcpseal.Reason
	cause  *callback.Error
}

func failed(reason mcpseal.Reason) *failure { return &failure{reason: reason} }

func (c *Cursors) start() (start time.Time) {
	if c.config.Observer != nil {
		start = time.Now()
	}
	return start
}

func (c *Cursors) event(op mcpseal.Op, start time.Time, request *mcpseal.Request, size int) mcpseal.Event {
	e := mcpseal.Event{Op: op, Method: plain.Text(request.Method), Format: prefix, TokenBytes: size}
	if request.Method == "tools/call" {
		e.Target = plain.Text(request.Target)
	}
	if !start.IsZero() {
		e.Duration = time.Since(start)
	}
	return e
}

func (c *Cursors) observe(ctx context.Context, op mcpseal.Op, start time.Time, request *mcpseal.Request, size int) {
	if c.config.Observer != nil {
		e := c.event(op, start, request, size)
		callback.Quietly(func() { c.config.Observer(ctx, e) })
	}
}

// report tells the operator why.
func (c *Cursors) report(ctx context.Context, op mcpseal.Op, start time.Time, request *mcpseal.Request, size int, fail *failure) {
	if fail.reason.Level() == slog.LevelError && callback.GaveUp(ctx, fail.cause) {
		fail.reason = mcpseal.ReasonCanceled
	}
	e := c.event(op, start, request, size)
	e.Reason, e.Cause = fail.reason, fail.cause.OrNil()
	level, message := e.Reason.Level(), "mcpseal: cursor rejected"
	if op == OpIssue {
		message = "mcpseal: cursor not issued"
		if e.Reason != mcpseal.ReasonCanceled {
			level = slog.LevelError
		}
	}
	attrs := []slog.Attr{
		slog.String("reason", string(e.Reason)), slog.String("method", e.Method), slog.String("target", e.Target),
		slog.Int("cursor_bytes", e.TokenBytes),
	}
	if fail.cause != nil {
		attrs = append(attrs, slog.String("cause", fail.cause.Error()))
		if stack := fail.cause.Stack(); stack != "" {
			attrs = append(attrs, slog.String("stack", stack))
		}
	}
	callback.Quietly(func() { cmp.Or(c.config.Logger, slog.Default()).LogAttrs(ctx, level, message, attrs...) })
	if c.config.Observer != nil {
		callback.Quietly(func() { c.config.Observer(ctx, e) })
	}
}
