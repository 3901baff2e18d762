package callback

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
)

// Reason stands for tripseal.Reason: this package cannot import tripseal.
type Reason interface {
	~string
	error
	Level() slog.Level
}

// Failure says why a check failed. Cause explains the reason; it may be nil.
type Failure[R Reason] struct {
	Reason R
	Cause  *Error
}

// Check calls a function that the server's author may have supplied. It returns the error or
// panic of that function as a Failure, or nil if the function succeeds. If the error wraps
// one of the reasons in mayGive, the Failure has that reason. In all other cases, the Failure
// has the fallback reason.
func Check[R Reason](part func() error, fallback R, mayGive ...R) (failed *Failure[R]) {
	panicked := Guard(func() {
		err := part()
		if err == nil {
			return
		}
		if reason, ok := Find[R](err); ok && slices.Contains(mayGive, reason) {
			failed = &Failure[R]{Reason: reason}
			return
		}
		failed = &Failure[R]{fallback, Failed(err)}
	})
	if panicked != nil {
		failed = &Failure[R]{fallback, panicked}
	}
	return failed
}

// Excuse sets the reason to canceled if the caller has cancelled the call, because there is nothing
// to repair. It changes only a reason that is logged as an error. It keeps the reason after a
// panic. It also keeps the reason after a missed deadline: only the service sets deadlines, so
// there may be a slow function to repair.
func (f *Failure[R]) Excuse(ctx context.Context, canceled R) {
	panicked := f.Cause != nil && f.Cause.stack != ""
	if f.Reason.Level() == slog.LevelError && ctx.Err() == context.Canceled && !panicked {
		f.Reason = canceled
	}
}

// Attrs returns log attributes that describe the cause and hold no secret.
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

// Log writes a record to the logger, or to slog.Default() if the logger is nil. It ignores a
// panic of the logger's handler.
func Log(ctx context.Context, logger *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	Quietly(func() { cmp.Or(logger, slog.Default()).LogAttrs(ctx, level, message, attrs...) })
}
