package mcpseal

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// The exported names below are for authors of adapters, formats and stores: they call
// parts that a server's author supplied, and make texts that a log may show.

// PlainError is an error whose text holds no secret. A log shows the text of a
// PlainError that a codec, a format, a store or a principal returns or wraps; of
// any other error it shows the type only.
type PlainError = plain.Error

// PlainText returns a client's text in a form that a log may show: quoted unless it
// is plain ASCII, and cut at 128 bytes.
func PlainText(text string) string { return plain.Text(text) }

// PartError is the error or panic of a part that a server's author supplied, such as
// a store. Its text names only the type of the failure, because the original text
// may hold anything. Stack names the functions that led to a panic; Unwrap returns
// the original error.
type PartError = callback.Error

// Guard calls a part that a server's author supplied. It returns the part's error or
// panic as a [*PartError].
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

// Identify returns the user that is calling, and "" for a nil Principal. An error, a
// panic and a name of more than 4096 bytes come back as a [*PartError].
func (p Principal) Identify(ctx context.Context) (user string, err error) {
	user, failed := callback.Identify(ctx, p)
	return user, failed.OrNil()
}

// Logger returns a logger like l that ignores a panic of its handler. If l is nil, it is
// like the current slog.Default().
func Logger(l *slog.Logger) *slog.Logger { return callback.Logger(cmp.Or(l, slog.Default())) }

// failure says why a check failed, with all that the operator may know. It is an error, so
// that a format of this package can return it even through a format that wraps it.
type failure struct {
	callback.Failure[Reason]
	params  *argdigest.Error // why the arguments have no digest; nil if the failure is another one
	flow    [16]byte         // the flow of a genuine token; zero means unknown
	round   int              // the round of a genuine token; 0 means unknown
	missing ClaimSet         // the demanded claims that the token's format cannot carry

	merelyOld bool // true if the token is only too old, so that its rightful user may be asked again
}

func (f *failure) Error() string { return f.Reason.Error() }
func (f *failure) Unwrap() error { return f.Reason }

func failed(reason Reason) *failure { return failedWith(reason, nil) }

func failedWith(reason Reason, cause *callback.Error) *failure {
	return &failure{Failure: callback.Failure[Reason]{Reason: reason, Cause: cause}}
}

// failedBecause returns a failure with an explanation. The explanation must hold no secret.
func failedBecause(reason Reason, format string, args ...any) *failure {
	return failedWith(reason, callback.Explain(format, args...))
}

func lacking(claims ClaimSet) *failure {
	fail := failed(ReasonClaimMissing)
	fail.missing = claims
	return fail
}

func undigested(problem *argdigest.Error) *failure {
	fail := failedBecause(ReasonInvalidParams, "%s", problem) // the text of problem repeats nothing of the arguments
	fail.params = problem
	return fail
}

// guard calls a part that the server's author may have supplied, and returns its error or
// panic as a failure. If the error wraps a reason in mayGive, the failure has that reason;
// in all other cases it has the reason in the parameter otherwise.
func guard(part func() error, otherwise Reason, mayGive ...Reason) *failure {
	if checked := callback.Check(part, otherwise, mayGive...); checked != nil {
		return &failure{Failure: *checked}
	}
	return nil
}

// guardFormat calls a format. If the format returns a *failure, guardFormat returns it
// unchanged. It returns any other error, or a panic, as guard does.
func guardFormat(call func() error) (fail *failure) {
	other := guard(func() error {
		err := call()
		if params, ok := callback.Find[*argdigest.Error](err); ok {
			fail = undigested(params)
			return nil
		}
		var ours bool
		if fail, ours = err.(*failure); ours {
			return nil
		}
		return err
	}, ReasonCodecFailed, formatReasons...)
	return cmp.Or(fail, other)
}

// formatReasons are the reasons that a format may give.
var formatReasons = []Reason{
	ReasonMalformed, ReasonUnknownKey, ReasonForged, ReasonTooLarge, ReasonVersion,
	ReasonRequest, ReasonArguments, ReasonAudience, ReasonUser,
}

// plainError is an error of this package whose text is safe to log.
type plainError = plain.Error
