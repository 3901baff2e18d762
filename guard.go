package mcpseal

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

// failure is a failed check with all that the operator may learn of it.
type failure struct {
	reason  Reason
	cause   *callbackError   // what a part supplied by the user returned
	params  *argdigest.Error // why the arguments have no digest
	genuine *genuineError    // names the flow of a token that is genuine
	missing Claim            // the claims that the format cannot carry
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
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			cause := &callbackError{fmt.Sprintf("panic of type %T", v), nil, string(stack[:min(len(stack), maxStack)])}
			cause.err, _ = v.(error)
			fail = &failure{reason: otherwise, cause: cause}
		}
	}()
	err := f()
	if err == nil {
		return nil
	}
	fail = failed(otherwise)
	if errors.As(err, &fail.params) {
		fail.reason = ReasonInvalidParams
		return fail
	}
	errors.As(err, &fail.genuine)
	if reason := Reason(""); errors.As(err, &reason) && slices.Contains(mayGive, reason) {
		fail.reason = reason
		return fail
	}
	fail.cause = &callbackError{kind: describe(err), err: err}
	return fail
}

// callbackError is what a part supplied by the user returned or panicked with.
// Its text names the kind of failure only, because the original's may hold
// anything; errors.Unwrap reaches the original.
type callbackError struct {
	kind  string
	err   error
	stack string // of a panic
}

const maxStack = 4 << 10

func (e *callbackError) Error() string { return e.kind }

// Unwrap returns the error, or the panic's value if that was an error.
func (e *callbackError) Unwrap() error { return e.err }

func (e *callbackError) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// describe says what an error is in words that cannot hold a secret: fixed
// texts and the names of types.
func describe(err error) string {
	var plain plainError
	var errno syscall.Errno
	switch {
	case errors.As(err, &plain):
		return plain.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded.Error()
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.As(err, &errno):
		return errno.Error()
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return fmt.Sprintf("error of type %T", err)
}

// plainError is an error of this package whose text is fit for the log.
type plainError string

func (e plainError) Error() string { return string(e) }
