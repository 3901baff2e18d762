package mcpseal

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// What follows is for authors of adapters, formats and stores: how to call code of
// their users, and what may be said about it in a log.

// PlainError is an error whose text holds no secret. A log shows the text of a
// PlainError that a codec, a format, a store or a principal returns or wraps; of
// any other error it shows the type only.
type PlainError = plain.Error

// PlainText returns a text that a client chose as a log may show it: quoted, unless
// it is plain ASCII, and cut at 128 bytes.
func PlainText(text string) string { return plain.Text(text) }

// PartError is what a part that a user supplied returned or panicked with. Its text
// names the kind of failure only, because the original's may hold anything. Stack
// names the functions that led to a panic; Unwrap reaches the original error.
type PartError = callback.Error

// Guard calls a part that a user supplied. Its error, and what it panics with, come
// back as a [*PartError].
func Guard(part func() error) error {
	var failed *PartError
	panicked := callback.Guard(func() {
		if err := part(); err != nil {
			failed = callback.Failed(err)
		}
	})
	if panicked != nil {
		failed = panicked
	}
	return failed.OrNil()
}

// Identify asks who is calling; a nil Principal is nobody. An error, a panic and
// a text of more than 4096 bytes come back as a [*PartError].
func (p Principal) Identify(ctx context.Context) (user string, err error) {
	user, failed := callback.Identify(ctx, p)
	return user, failed.OrNil()
}

// Logger returns a logger that goes on when its handler panics. Nil means what
// slog.Default() returns now.
func Logger(l *slog.Logger) *slog.Logger { return callback.Logger(cmp.Or(l, slog.Default())) }

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
