// Package guard calls code that the author of a server supplied, such as a store or a principal, and makes texts that
// are safe to log.
package guard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Error says that the server author's code returned an error or panicked. Its text holds no secret: usually, it names
// only the type of the original error, which errors.Unwrap returns.
type Error struct {
	text  string
	err   *error // a pointer, so that no verb of fmt prints the original error
	stack string // the functions that led to a panic; "" if there was no panic
}

// Call calls a part that the server's author supplied. It returns the part's error or panic, or nil if the part
// succeeded. Call methods of that error only inside the part, because they may panic too.
func Call(part func() error) (failed *Error) {
	finished := false
	defer func() {
		v := recover()
		if finished {
			return
		}
		failed = &Error{text: fmt.Sprintf("panic of type %T", v), stack: stack()}
		if err, ok := v.(error); ok {
			failed.err = &err
		}
	}()
	if err := part(); err != nil {
		failed = Failed(err)
	}
	finished = true
	return failed
}

// Quietly calls f and ignores a panic.
func Quietly(f func()) {
	defer func() { recover() }()
	f()
}

// Failed wraps an error of the server author's code.
func Failed(err error) *Error { return &Error{text: describe(err), err: &err} }

// Explain returns an Error with the given text. The text must hold no secret.
func Explain(format string, args ...any) *Error { return &Error{text: fmt.Sprintf(format, args...)} }

func (e *Error) Error() string { return e.text }

// Format writes what the method Error returns, for every verb of fmt.
func (e *Error) Format(s fmt.State, _ rune) { io.WriteString(s, e.text) }

// Unwrap returns the original error: the one that the author's code returned, or the value with which it panicked, if
// that is an error. Otherwise it returns nil.
func (e *Error) Unwrap() error {
	if e.err == nil {
		return nil
	}
	return *e.err
}

// Stack returns the names of the functions that led to a panic, or "" if there was no panic.
func (e *Error) Stack() string { return e.stack }

// OrNil returns e as an error. If e is nil, the error is nil too, unlike the result of a plain conversion.
func (e *Error) OrNil() error {
	if e == nil {
		return nil
	}
	return e
}

// Attrs returns log attributes that describe e, which may be nil.
func Attrs(e *Error) (attrs []slog.Attr) {
	if e != nil {
		attrs = append(attrs, slog.String("cause", e.text))
		if e.stack != "" {
			attrs = append(attrs, slog.String("stack", e.stack))
		}
	}
	return attrs
}

// Canceled reports whether the caller has cancelled the call, so that there is nothing to repair. It returns false
// after a panic, which e tells of. It also returns false after a missed deadline: only the service sets deadlines, so
// there may be a slow function to repair.
func Canceled(ctx context.Context, e *Error) bool {
	return ctx.Err() == context.Canceled && (e == nil || e.stack == "")
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

// describe returns a text that describes an error and holds no secret: a fixed text, or the name of a type.
func describe(err error) string {
	last := err
	for e := range chain(err) {
		switch known := e.(type) {
		case PlainError:
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

// stack returns the names of the functions that led to a panic. Unlike debug.Stack, it leaves out their arguments,
// which may be secret.
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

// Log writes a record to the logger, or to slog.Default() if the logger is nil. It ignores a panic of the logger's
// handler.
func Log(ctx context.Context, logger *slog.Logger, level slog.Level, message string, attrs ...slog.Attr) {
	Quietly(func() { cmp.Or(logger, slog.Default()).LogAttrs(ctx, level, message, attrs...) })
}

// PlainError is an error whose text holds no secret.
type PlainError string

func (e PlainError) Error() string { return string(e) }

// MaxText is how many bytes of a client's text the log shows, at most.
const MaxText = 128

// PlainText returns a client's text in a form for the log. A short text of plain ASCII stays as it is. Any other text
// is quoted, and cut after MaxText bytes.
func PlainText(text string) string {
	special := func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }
	if len(text) <= MaxText && !strings.ContainsFunc(text, special) {
		return text
	}
	quoted := strconv.QuoteToASCII(text[:min(len(text), MaxText)])
	return quoted[:min(len(quoted), MaxText)]
}
