// Package callback calls code that the author of a server supplied, such as a store. If that
// code fails or panics, the package returns an [Error], whose text is safe to log.
package callback

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"syscall"

	"github.com/tripseal/tripseal/internal/plain"
)

// Error says that the server author's code, such as a store, returned an error or panicked. The
// text of an Error holds no secret: usually, it names only the type of the original error.
// errors.Unwrap returns the original error.
type Error struct {
	kind  string
	err   *error // a pointer, so that no verb of fmt prints the original error
	stack string // the functions that led to a panic; "" if there was no panic
}

// Explain returns an Error with the given text. The text must hold no secret.
func Explain(format string, args ...any) *Error {
	return &Error{kind: fmt.Sprintf(format, args...)}
}

// Failed wraps err in an Error. Usually, err comes from the server author's code, such as a store
// or a codec.
func Failed(err error) *Error { return &Error{kind: describe(err), err: &err} }

// Guard calls f. If f panics, Guard returns the panic as an Error, otherwise nil. If f gets
// an error from code that the server's author supplied, call the methods of that error only
// inside f, because they may panic too.
func Guard(f func()) (panicked *Error) {
	finished := false
	defer func() {
		v := recover()
		if finished {
			return
		}
		panicked = &Error{kind: fmt.Sprintf("panic of type %T", v), stack: stack()}
		if err, ok := v.(error); ok {
			panicked.err = &err
		}
	}()
	f()
	finished = true
	return nil
}

// Quietly calls f and ignores a panic.
func Quietly(f func()) {
	defer func() { recover() }()
	f()
}

func (e *Error) Error() string { return e.kind }

// Format writes what the method Error returns, for every verb of fmt.
func (e *Error) Format(s fmt.State, _ rune) { io.WriteString(s, e.kind) }

// Unwrap returns the original error: the one that the author's code returned, or the value
// with which it panicked, if that is an error. Otherwise it returns nil.
func (e *Error) Unwrap() error {
	if e.err == nil {
		return nil
	}
	return *e.err
}

// Stack returns the names of the functions that led to a panic, or "" if there was no panic.
func (e *Error) Stack() string { return e.stack }

// OrNil returns e as an error. If e is nil, the error is nil too, unlike the result of a
// plain conversion.
func (e *Error) OrNil() error {
	if e == nil {
		return nil
	}
	return e
}

// maxChain limits how many errors are unwrapped, because an error may wrap itself.
const maxChain = 100

// chain yields err and the errors that it wraps.
func chain(err error) func(yield func(error) bool) {
	return func(yield func(error) bool) {
		pending := []error{err}
		for n := 0; n < maxChain && len(pending) > 0; n++ {
			err, pending = pending[0], pending[1:]
			if err == nil {
				continue
			}
			if !yield(err) {
				return
			}
			switch e := err.(type) {
			case interface{ Unwrap() error }:
				pending = append(pending, e.Unwrap())
			case interface{ Unwrap() []error }:
				pending = append(pending, e.Unwrap()...)
			}
		}
	}
}

// Find returns the first error of type T among err and the errors that it wraps.
func Find[T error](err error) (found T, ok bool) {
	for e := range chain(err) {
		if found, ok = e.(T); ok {
			return found, true
		}
	}
	return found, false
}

// describe returns a text that describes an error and holds no secret: a fixed text, or the
// name of a type.
func describe(err error) string {
	last := err
	for e := range chain(err) {
		switch known := e.(type) {
		case plain.Error:
			return known.Error()
		case syscall.Errno:
			return known.Error()
		}
		if e == context.DeadlineExceeded || e == context.Canceled {
			return e.Error()
		}
		last = e
	}
	return fmt.Sprintf("error of type %T", last)
}

// stack returns the names of the functions that led to a panic. Unlike debug.Stack, it
// leaves out their arguments, which may be secret.
func stack() string {
	const maxFrames, maxStack = 24, 4 << 10
	var pcs [maxFrames]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])]) // 4 skips the frames of the recovery itself
	var b strings.Builder
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&b, "%s %s:%d; ", frame.Function, frame.File, frame.Line)
		if !more || b.Len() > maxStack {
			text := strings.TrimSuffix(b.String(), "; ")
			return text[:min(len(text), maxStack)]
		}
	}
}

const (
	maxUser = 4096

	errLongUser = plain.Error("the user's name is longer than 4096 bytes")
)

// Identify calls the function principal and returns the name of the calling user, or "" if
// the function is nil. It returns an Error if the function fails, panics, or returns a name
// that is too long.
func Identify(ctx context.Context, principal func(context.Context) (string, error)) (user string, failed *Error) {
	if principal == nil {
		return "", nil
	}
	panicked := Guard(func() {
		name, err := principal(ctx)
		switch {
		case err != nil:
			failed = Failed(err)
		case len(name) > maxUser:
			failed = Failed(errLongUser)
		default:
			user = name
		}
	})
	if panicked != nil {
		return "", panicked
	}
	return user, failed
}

// Logger returns a logger that ignores a panic of its handler.
func Logger(l *slog.Logger) *slog.Logger { return slog.New(quiet{l.Handler()}) }

type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	Quietly(func() { enabled = q.Handler.Enabled(ctx, level) })
	return enabled
}

func (q quiet) Handle(ctx context.Context, r slog.Record) (err error) {
	Quietly(func() { err = q.Handler.Handle(ctx, r) })
	return err
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }
