package tripseal

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// The exported names below are for authors of adapters, formats and stores. They help to
// call the parts that a server's author supplied, and to make texts that a log may show.

// PlainError is an error whose text holds no secret. If a codec, a format, a store or a
// principal returns or wraps a PlainError, the log shows its text. For any other error, the
// log shows only the type. Return a PlainError from your own code to tell the operator
// what failed.
type PlainError = guard.PlainError

// PlainText returns a client's text in a form that a log may show. A text of at most 128
// bytes stays as it is if it has only printable ASCII characters, and neither " nor \. Any
// other text is quoted as in Go source, in ASCII, and cut at 128 bytes. Use PlainText for
// every text from a client that your adapter logs.
func PlainText(text string) string { return guard.PlainText(text) }

// PartError is the error or panic of a part that a server's author supplied, such as a
// store. Its text names only the type of that error or panic, because the original text
// may hold a secret. The method Stack names the functions that led to a panic. The method
// Unwrap returns the original error. An adapter logs a PartError, for the server's author.
type PartError = guard.Error

// Guard calls a part that a server's author supplied. It returns the part's error or
// panic as a [*PartError], or nil if the part succeeded. Use Guard in an adapter, so that
// a panic in the author's code does not end the process.
func Guard(part func() error) error { return guard.Call(part).OrNil() }

// Logger returns a logger that logs as l does, but ignores a panic of l's slog.Handler.
// If l is nil, the current slog.Default() takes its place. Use Logger in an adapter, for
// the logger that the author supplied.
func Logger(l *slog.Logger) *slog.Logger { return slog.New(quiet{cmp.Or(l, slog.Default()).Handler()}) }

type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	guard.Quietly(func() { enabled = q.Handler.Enabled(ctx, level) })
	return enabled
}

func (q quiet) Handle(ctx context.Context, r slog.Record) (err error) {
	guard.Quietly(func() { err = q.Handler.Handle(ctx, r) })
	return err
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }

// failure says why a check failed, with all that the operator may know. It implements
// error. So a format of this package can return a failure, and a wrapper of the format
// can pass the failure on.
type failure struct {
	reason  Reason
	cause   *PartError        // explains the reason; may be nil
	params  *strictjson.Error // why the arguments have no digest; nil if the check failed for another reason
	flow    [16]byte          // the flow of a genuine token; zero means unknown
	round   int               // the round of a genuine token; 0 means unknown
	missing ClaimSet          // the demanded claims that the token's format cannot carry

	merelyOld bool // true if the token's age is its only fault, so that its rightful user may be asked again
}

func (f *failure) Error() string { return f.reason.Error() }
func (f *failure) Unwrap() error { return f.reason }

func failed(reason Reason) *failure { return &failure{reason: reason} }

// failedBecause returns a failure with an explanation. The explanation must hold no secret.
func failedBecause(reason Reason, format string, args ...any) *failure {
	return &failure{reason: reason, cause: guard.Explain(format, args...)}
}

// excuse sets the reason to canceled if the caller has cancelled the call, because there is nothing to repair. It changes
// only a reason that is logged as an error.
func (f *failure) excuse(ctx context.Context) {
	if f.reason.Level() == slog.LevelError && guard.Canceled(ctx, f.cause) {
		f.reason = ReasonCanceled
	}
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

// call calls a part that the server's author may have supplied, and returns the part's error or panic as a failure. If
// the error wraps one of the allowed reasons, the failure has that reason. In all other cases, the failure has the
// default reason. A *failure, or an *strictjson.Error of bad arguments, is passed on.
func call(part func() error, defaultReason Reason, allowed ...Reason) (fail *failure) {
	cause := guard.Call(func() error {
		err := part()
		if err == nil {
			return nil
		}
		var ours bool
		if fail, ours = err.(*failure); ours {
			return nil
		}
		if params, ok := guard.Find[*strictjson.Error](err); ok {
			fail = undigested(params)
			return nil
		}
		if reason, ok := guard.Find[Reason](err); ok && slices.Contains(allowed, reason) {
			fail = failed(reason)
			return nil
		}
		return err
	})
	if cause != nil {
		return &failure{reason: defaultReason, cause: cause}
	}
	return fail
}

// callFormat calls a format.
func callFormat(part func() error) *failure { return call(part, ReasonCodecFailed, formatReasons...) }

// formatReasons are the reasons that a format may give.
var formatReasons = []Reason{
	ReasonMalformed, ReasonUnknownKey, ReasonForged, ReasonTooLarge, ReasonVersion,
	ReasonRequest, ReasonArguments, ReasonAudience, ReasonUser,
}

// plainError is an error of this package whose text is safe to log.
type plainError = guard.PlainError
