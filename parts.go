package tripseal

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/tripseal/tripseal/internal/callback"
	"github.com/tripseal/tripseal/internal/plain"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// The exported names below are for authors of adapters, formats and stores. They help to
// call the parts that a server's author supplied, and to make texts that a log may show.

// PlainError is an error whose text holds no secret. If a codec, a format, a store or a
// principal returns or wraps a PlainError, the log shows its text. For any other error, the
// log shows only the type. Return a PlainError from your own code to tell the operator
// what failed.
type PlainError = plain.Error

// PlainText returns a client's text in a form that a log may show. A text of at most 128
// bytes stays as it is if it has only printable ASCII characters, and neither " nor \. Any
// other text is quoted as in Go source, in ASCII, and cut at 128 bytes. Use PlainText for
// every text from a client that your adapter logs.
func PlainText(text string) string { return plain.Text(text) }

// PartError is the error or panic of a part that a server's author supplied, such as a
// store. Its text names only the type of that error or panic, because the original text
// may hold a secret. The method Stack names the functions that led to a panic. The method
// Unwrap returns the original error. An adapter logs a PartError, for the server's author.
type PartError = callback.Error

// Guard calls a part that a server's author supplied. It returns the part's error or
// panic as a [*PartError], or nil if the part succeeded. Use Guard in an adapter, so that
// a panic in the author's code does not end the process.
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

// Identify calls p and returns the name of the user that is calling. It returns "" if p
// is nil. If p fails, panics or returns a name of more than 4096 bytes, the error is a
// [*PartError]. Use Identify if your own code needs the name; a boundary calls the principal
// itself.
func (p Principal) Identify(ctx context.Context) (user string, err error) {
	user, failed := callback.Identify(ctx, p)
	return user, failed.OrNil()
}

// Logger returns a logger that logs as l does, but ignores a panic of l's slog.Handler.
// If l is nil, the current slog.Default() takes its place. Use Logger in an adapter, for
// the logger that the author supplied.
func Logger(l *slog.Logger) *slog.Logger { return callback.Logger(cmp.Or(l, slog.Default())) }

// failure says why a check failed, with all that the operator may know. It implements
// error. So a format of this package can return a failure, and a wrapper of the format
// can pass the failure on.
type failure struct {
	callback.Failure[Reason]
	params  *strictjson.Error // why the arguments have no digest; nil if the check failed for another reason
	flow    [16]byte          // the flow of a genuine token; zero means unknown
	round   int               // the round of a genuine token; 0 means unknown
	missing ClaimSet          // the demanded claims that the token's format cannot carry

	merelyOld bool // true if the token's age is its only fault, so that its rightful user may be asked again
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

func undigested(problem *strictjson.Error) *failure {
	fail := failedBecause(ReasonInvalidParams, "%s", problem) // the problem's text quotes nothing from the arguments
	fail.params = problem
	return fail
}

// guard calls a part that the server's author may have supplied, and returns the part's
// error or panic as a failure. If the error wraps one of the allowed reasons, the failure
// has that reason. In all other cases, the failure has the default reason.
func guard(part func() error, defaultReason Reason, allowed ...Reason) *failure {
	if checked := callback.Check(part, defaultReason, allowed...); checked != nil {
		return &failure{Failure: *checked}
	}
	return nil
}

// guardFormat calls a format, and returns the format's error or panic as a failure. If the
// error is a *failure, guardFormat returns it unchanged. If the error wraps an
// *strictjson.Error, the failure has the reason ReasonInvalidParams.
func guardFormat(call func() error) (fail *failure) {
	other := guard(func() error {
		err := call()
		if params, ok := callback.Find[*strictjson.Error](err); ok {
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
