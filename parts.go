package mcpseal

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// What follows is for authors of adapters, formats and stores: how to call parts
// that a server's author supplied, and what a log may show about them.

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

// Logger returns a logger that survives a panic of its handler. Nil means what
// slog.Default() returns now.
func Logger(l *slog.Logger) *slog.Logger { return callback.Logger(cmp.Or(l, slog.Default())) }

// failure is a failed check with all that the operator may learn about it. It is an
// error so that a format of this package can return it to a format that wraps it.
type failure struct {
	callback.Failure[Reason]
	params  *argdigest.Error // why the arguments have no digest
	flow    [16]byte         // the flow of a genuine token; zero means unknown
	round   int              // the round of a genuine token; 0 means unknown
	missing ClaimSet         // the claims that the format cannot carry

	merelyOld bool // the token is too old, and its rightful user may be asked again
}

func (f *failure) Error() string { return f.Reason.Error() }
func (f *failure) Unwrap() error { return f.Reason }

func failed(reason Reason) *failure { return failedWith(reason, nil) }

func failedWith(reason Reason, cause *callback.Error) *failure {
	return &failure{Failure: callback.Failure[Reason]{Reason: reason, Cause: cause}}
}

// failedBecause returns a failure with an explanation, which must hold no secret.
func failedBecause(reason Reason, format string, args ...any) *failure {
	return failedWith(reason, callback.Explain(format, args...))
}

func lacking(claims ClaimSet) *failure {
	fail := failed(ReasonClaimMissing)
	fail.missing = claims
	return fail
}

func undigested(problem *argdigest.Error) *failure {
	fail := failedBecause(ReasonInvalidParams, "%s", problem) // its text repeats nothing of the arguments
	fail.params = problem
	return fail
}

// guard calls a part that the server's author may have supplied. If its error wraps
// one of the reasons in mayGive, that is the reason; for any other error, and for a
// panic, the reason is otherwise.
func guard(part func() error, otherwise Reason, mayGive ...Reason) *failure {
	if checked := callback.Check(part, otherwise, mayGive...); checked != nil {
		return &failure{Failure: *checked}
	}
	return nil
}

// guardFormat calls a format. It returns a *failure of this package as it is, and any
// other error as guard does.
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

// plainError is an error of this module whose text is fit for the log.
type plainError = plain.Error
