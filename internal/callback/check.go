package callback

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
)

// Reason is mcpseal.Reason, which this package cannot name.
type Reason interface {
	~string
	error
	Level() slog.Level
}

// Failure is a failed check: why, and what a part of the user's did, if that was it.
type Failure[R Reason] struct {
	Reason R
	Cause  *Error
}

// Check calls a part that the user may have supplied. An error that wraps one of
// the reasons it may give is that reason; any other error, and a panic, is
// otherwise. The error's own methods are called here too, and nowhere else.
func Check[R Reason](part func() error, otherwise R, mayGive ...R) (failed *Failure[R]) {
	panicked := Guard(func() {
		err := part()
		if err == nil {
			return
		}
		if reason, ok := Find[R](err); ok && slices.Contains(mayGive, reason) {
			failed = &Failure[R]{Reason: reason}
			return
		}
		failed = &Failure[R]{otherwise, Failed(err)}
	})
	if panicked != nil {
		failed = &Failure[R]{otherwise, panicked}
	}
	return failed
}

// Excuse changes the reason to canceled when a part failed because the caller has
// given up: nobody must mend anything then. A panic stays a failure, and so does a
// deadline: only the service sets one, perhaps because a part is slow.
func (f *Failure[R]) Excuse(ctx context.Context, canceled R) {
	panicked := f.Cause != nil && f.Cause.stack != ""
	if f.Reason.Level() == slog.LevelError && ctx.Err() == context.Canceled && !panicked {
		f.Reason = canceled
	}
}

// Attrs are what a log is told of the cause.
func (f *Failure[R]) Attrs() (attrs []slog.Attr) {
	if f.Cause == nil {
		return nil
	}
	attrs = append(attrs, slog.String("cause", f.Cause.Error()))
	if f.Cause.stack != "" {
		attrs = append(attrs, slog.String("stack", f.Cause.stack))
	}
	return attrs
}

// Log writes a record, to slog.Default() if there is no logger. A handler that
// panics changes nothing.
func Log(ctx context.Context, logger *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	Quietly(func() { cmp.Or(logger, slog.Default()).LogAttrs(ctx, level, message, attrs...) })
}
