package mcpseal

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// failure is a failed check with all that the operator may learn of it.
type failure struct {
	reason  Reason
	cause   *callbackError   // what a part supplied by the user returned
	params  *argdigest.Error // why the arguments have no digest
	genuine *genuineError    // names the flow of a token that is genuine
	missing ClaimSet         // the claims that the format cannot carry
}

func failed(reason Reason) *failure { return &failure{reason: reason} }

// failedBecause adds what to do about it, in words that hold no secret.
func failedBecause(reason Reason, format string, args ...any) *failure {
	return &failure{reason: reason, cause: &callbackError{kind: fmt.Sprintf(format, args...)}}
}

// guard calls a part that the user may have supplied. An error that wraps one
// of the reasons it may give is that reason; any other error, and a panic, is
// otherwise. The error's own methods are called here too, and nowhere else.
func guard(f func() error, otherwise Reason, mayGive ...Reason) (fail *failure) {
	finished := false
	defer func() {
		v := recover()
		if finished {
			return
		}
		cause := &callbackError{kind: fmt.Sprintf("panic of type %T", v), stack: stack()}
		if err, ok := v.(error); ok {
			cause.err = &err
		}
		fail = &failure{reason: otherwise, cause: cause}
	}()
	if err := f(); err != nil {
		fail = classify(err, otherwise, mayGive)
	}
	finished = true
	return fail
}

func classify(err error, otherwise Reason, mayGive []Reason) *failure {
	fail := failed(otherwise)
	if hidden, ok := err.(*codecFailure); ok {
		fail.cause = &callbackError{kind: describe(hidden.err), err: &hidden.err}
		return fail
	}
	if params, ok := find[*argdigest.Error](err); ok && slices.Contains(mayGive, ReasonInvalidParams) {
		fail.reason, fail.params = ReasonInvalidParams, params
		return fail
	}
	fail.genuine, _ = err.(*genuineError)
	if reason, ok := find[Reason](err); ok && reason != ReasonInvalidParams && slices.Contains(mayGive, reason) {
		fail.reason = reason
		return fail
	}
	fail.cause = &callbackError{kind: describe(err), err: &err}
	return fail
}

// quietly calls f and does not care how it ends.
func quietly(f func()) {
	defer func() { recover() }()
	f()
}

// maxChain bounds how many errors are unwrapped: an error may wrap itself.
const maxChain = 100

// chain yields err and what it wraps.
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

// find returns the first error of type T that err is or wraps.
func find[T error](err error) (found T, ok bool) {
	for e := range chain(err) {
		if found, ok = e.(T); ok {
			return found, true
		}
	}
	return found, false
}

// callbackError is what a part supplied by the user returned or panicked with.
// Its text names the kind of failure only, because the original's may hold
// anything; errors.Unwrap reaches the original.
type callbackError struct {
	kind  string
	err   *error // behind a pointer, where no formatting verb looks
	stack string // of a panic
}

func (e *callbackError) Error() string { return e.kind }

// Format writes Error under every verb.
func (e *callbackError) Format(s fmt.State, _ rune) { io.WriteString(s, e.kind) }

// Unwrap returns the error, or the panic's value if that was an error.
func (e *callbackError) Unwrap() error {
	if e.err == nil {
		return nil
	}
	return *e.err
}

func (e *callbackError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// describe says what an error is in words that cannot hold a secret: fixed
// texts and the names of types.
func describe(err error) string {
	last := err
	for e := range chain(err) {
		switch known := e.(type) {
		case plainError:
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

// plainError is an error of this module whose text is fit for the log.
type plainError = plain.Error

// stack names the functions that led to a panic, without their arguments,
// which debug.Stack would print.
func stack() string {
	const maxFrames = 24
	var pcs [maxFrames]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])]) // from where it panicked
	var b strings.Builder
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&b, "%s %s:%d; ", frame.Function, frame.File, frame.Line)
		if !more {
			return strings.TrimSuffix(b.String(), "; ")
		}
	}
}
