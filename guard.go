package mcpseal

import (
	"context"
	"log/slog"
	"slices"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// failure is a failed check with all that the operator may learn of it.
type failure struct {
	reason  Reason
	cause   *callback.Error  // what a part supplied by the user returned
	params  *argdigest.Error // why the arguments have no digest
	genuine *genuineError    // names the flow of a token that is genuine
	missing ClaimSet         // the claims that the format cannot carry
}

func failed(reason Reason) *failure { return &failure{reason: reason} }

// failedBecause adds what to do about it, in words that hold no secret.
func failedBecause(reason Reason, format string, args ...any) *failure {
	return &failure{reason: reason, cause: callback.Explain(format, args...)}
}

// excuse takes a part's failure for what it is when the caller has given up: nobody
// must mend anything.
func (f *failure) excuse(ctx context.Context) {
	if f.reason.Level() == slog.LevelError && callback.GaveUp(ctx, f.cause) {
		f.reason = ReasonCanceled
	}
}

// guard calls a part that the user may have supplied. An error that wraps one
// of the reasons it may give is that reason; any other error, and a panic, is
// otherwise. The error's own methods are called here too, and nowhere else.
func guard(f func() error, otherwise Reason, mayGive ...Reason) (fail *failure) {
	panicked := callback.Guard(func() {
		if err := f(); err != nil {
			fail = classify(err, otherwise, mayGive)
		}
	})
	if panicked != nil {
		fail = &failure{reason: otherwise, cause: panicked}
	}
	return fail
}

func classify(err error, otherwise Reason, mayGive []Reason) *failure {
	fail := failed(otherwise)
	if hidden, ok := err.(*codecFailure); ok {
		fail.cause = callback.Failed(hidden.err)
		return fail
	}
	if params, ok := callback.Find[*argdigest.Error](err); ok && slices.Contains(mayGive, ReasonInvalidParams) {
		fail.reason, fail.params = ReasonInvalidParams, params
		return fail
	}
	fail.genuine, _ = err.(*genuineError)
	if reason, ok := callback.Find[Reason](err); ok && reason != ReasonInvalidParams && slices.Contains(mayGive, reason) {
		fail.reason = reason
		return fail
	}
	fail.cause = callback.Failed(err)
	return fail
}

// plainError is an error of this module whose text is fit for the log.
type plainError = plain.Error
