package callback

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
)

// Reason is mcpseal.Reason, which this package cannot import.
type Reason interface {
	~string
	error
	Level() slog.Level
}

// Failure is a failed check: the reason, and the cause if there is more to say.
type Failure[R Reason] struct {
	Reason R
	Cause  *Error
}

// Check calls a part that the server's author may have supplied. If its error wraps
// one of the reasons in mayGive, that is the reason; for any other error, and for a
// panic, the reason is otherwise. Methods of the error are called only here.
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

// Excuse changes the reason to canceled if a part failed because the caller gave up:
// then there is nothing to repair. It does not excuse a panic. Nor does it excuse a
// deadline: only the service sets one, so the part may be too slow.
func (f *Failure[R]) Excuse(ctx context.Context, canceled R) {
	panicked := f.Cause != nil && f.Cause.stack != ""
	if f.Reason.Level() == slog.LevelError && ctx.Err() == context.Canceled && !panicked {
		f.Reason = canceled
	}
}

// Attrs returns what a log may show of the cause.
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

// Log writes a record, to slog.Default() if the logger is nil. It ignores a panic of
// the handler.
func Log(ctx context.Context, logger *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	Quietly(func() { cmp.Or(logger, slog.Default()).LogAttrs(ctx, level, message, attrs...) })
}
