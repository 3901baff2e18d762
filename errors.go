package tripseal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	"github.com/tripseal/tripseal/internal/guard"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// ErrRejected matches the error of every rejected token: use errors.Is(err, ErrRejected) if you do not need the
// reason.
var ErrRejected = errors.New("tripseal: token rejected")

// RejectError means that [Boundary.Open] did not accept a token, or [Handles.Open] a handle. Its text is the same for
// every reason, so a client may see it. Use errors.As to get a RejectError if your own code must know the reason; the
// log and the observer have the reason already.
type RejectError struct {
	Reason Reason `json:"-"` // tells the operator why; never show it to the client
	cause  *guard.Error
}

// Error returns the text of [ErrRejected], which is the same for every rejection.
func (e *RejectError) Error() string { return ErrRejected.Error() }

// Is makes errors.Is(err, ErrRejected) true for every RejectError. Call errors.Is instead of this method.
func (e *RejectError) Is(target error) bool { return target == ErrRejected }

// Cause returns an error that explains the reason, such as how your codec or store failed. It returns nil if there is
// no explanation. The text of the returned error is safe to log. The returned error wraps the original one, whose text
// may not be safe to log. Log the returned error if you write your own record of the rejection.
func (e *RejectError) Cause() error { return e.cause.OrNil() }

// SealError means that [Boundary.Seal] did not seal a state, or [Handles.Seal] an id. The service is at fault, and the
// client sees an internal error. An adapter passes the SealError to [Wire]; the log already says why nothing was
// sealed.
type SealError struct {
	Reason Reason // tells the operator why
	cause  *guard.Error
	what   string // what was not sealed; "" means a state
}

// Error returns a text with the reason. It is for the log; send the client what [Wire] returns.
func (e *SealError) Error() string {
	return "tripseal: " + cmp.Or(e.what, "state") + " not sealed: " + string(e.Reason)
}

// Cause returns an error that explains the reason, or nil if there is no explanation: see [RejectError.Cause].
func (e *SealError) Cause() error { return e.cause.OrNil() }

// paramsError means that a first round cannot be sealed, because the request's arguments have no digest: they are not
// JSON, have two members with the same name, nest too deep or are too long. This is the client's fault. [Wire] turns
// it into the error "Invalid params", so most callers need not look for it.
type paramsError struct {
	problem *strictjson.Error // says what is wrong with the arguments and where, but quotes nothing from them
}

// Error says what is wrong with the arguments, for the log. It quotes nothing from them.
func (e *paramsError) Error() string { return "tripseal: " + e.problem.Error() }

// WireError is a JSON-RPC error that says no more than a client may know. It implements error, so a handler can return
// it. An adapter converts it into the error type of its SDK.
type WireError struct {
	Code    int64           `json:"code"`           // the JSON-RPC error code
	Message string          `json:"message"`        // a fixed text, which repeats nothing of the request
	Data    json.RawMessage `json:"data,omitempty"` // a JSON object for programs, or nil
}

// Error returns the message, so that a WireError is an error.
func (e WireError) Error() string { return e.Message }

// Wire turns an error of [Boundary.Open] or [Boundary.Seal] into the error that the client gets. All rejections look
// the same. Use Wire in an adapter, or in a handler that seals by itself, to answer a request whose token was rejected
// or whose state was not sealed.
func Wire(err error) WireError {
	var params *paramsError
	switch {
	case errors.Is(err, ErrRejected):
		return WireError{-32602, "Invalid or expired requestState", json.RawMessage(`{"reason":"invalid_request_state"}`)}
	case errors.As(err, &params):
		return WireError{-32602, "Invalid params", nil}
	}
	return WireError{-32603, "Internal error", nil}
}

// Reason says why a token was rejected, or why a state was not sealed. It is for the operator: a client never learns
// it. Use it as the label of a metric, and to find in docs/operations.md what to do about it.
//
// A Reason is an error, so that a [Codec] or a [Format] can return it.
type Reason string

// The reasons why a token is rejected, or a state is not sealed. The first three mean that the token was not verified
// as genuine. A token that is too long to be opened was not verified either; its reason is ReasonTooLarge. The other
// reasons are about genuine tokens, about the request, or about the service itself.
const (
	ReasonMalformed  Reason = "malformed"   // the text does not have the form of a token
	ReasonUnknownKey Reason = "unknown_key" // the token was sealed with a key that is not in the ring
	ReasonForged     Reason = "forged"      // the token was changed, or was never sealed
	ReasonTooLarge   Reason = "too_large"   // the token, state or arguments are longer than allowed

	ReasonVersion       Reason = "version"         // the token was sealed for another purpose, or by a newer release
	ReasonRequest       Reason = "request"         // the token was sealed for another method or target
	ReasonArguments     Reason = "arguments"       // the token was sealed for other arguments, or these are malformed
	ReasonAudience      Reason = "audience"        // the token was sealed by another service
	ReasonUser          Reason = "user"            // the token was sealed for another user or none, or the call has none
	ReasonExpired       Reason = "expired"         // the token is too old
	ReasonFromTheFuture Reason = "from_the_future" // the server that sealed the token has a clock ahead of ours
	ReasonFlowExpired   Reason = "flow_expired"    // all rounds of the flow together took too long
	ReasonTooManyRounds Reason = "too_many_rounds" // the flow has too many rounds
	ReasonReplayed      Reason = "replayed"        // the token was used before
	ReasonClaimMissing  Reason = "claim_missing"   // the token's format cannot carry a claim that the config demands

	ReasonCodecFailed     Reason = "codec_failed"     // the codec, format or key source failed
	ReasonPrincipalFailed Reason = "principal_failed" // the function Request.Principal could not tell who is calling
	ReasonStoreFailed     Reason = "store_failed"     // the replay store failed or took too long

	ReasonCanceled Reason = "canceled" // the caller canceled the request; its token may count as used

	ReasonInvalidParams Reason = "invalid_params" // a first round has malformed arguments
	ReasonBadQuestions  Reason = "bad_questions"  // the handler asked too many questions, or malformed ones
	ReasonMisuse        Reason = "misuse"         // Seal got a Round of another boundary, or an empty id
)

// Level returns the log level for a rejection with this reason. It is error for [ReasonCodecFailed],
// [ReasonPrincipalFailed] and [ReasonStoreFailed], because then the service failed and its operator must act. For
// every other reason it is warning. Use Level if you log rejections yourself.
func (r Reason) Level() slog.Level {
	switch r {
	case ReasonCodecFailed, ReasonPrincipalFailed, ReasonStoreFailed:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// Error returns the reason as a text, so that a Reason is an error.
func (r Reason) Error() string { return string(r) }

// The exported names below are for authors of adapters, formats and stores. They help to call the parts that a
// server's author supplied, and to make texts that a log may show.

// PlainError is an error whose text holds no secret. If a codec, a format, a store or a principal returns or wraps a
// PlainError, the log shows its text. For any other error, the log shows only the type. Return a PlainError from your
// own code to tell the operator what failed.
type PlainError = guard.PlainError

// PlainText returns a client's text in a form that a log may show. A text of at most 128 bytes stays as it is if it
// has only printable ASCII characters, and neither " nor \. Any other text is quoted as in Go source, in ASCII, and
// cut at 128 bytes. Use PlainText for every text from a client that your adapter logs.
func PlainText(text string) string { return guard.PlainText(text) }

// PartError is the error or panic of a part that a server's author supplied, such as a store. Its text names only the
// type of that error or panic, because the original text may hold a secret. The method Stack names the functions that
// led to a panic. The method Unwrap returns the original error. An adapter logs a PartError, for the server's author.
type PartError = guard.Error

// Guard calls a part that a server's author supplied. It returns the part's error or panic as a [*PartError], or nil
// if the part succeeded. Use Guard in an adapter, so that a panic in the author's code does not end the process.
func Guard(part func() error) error { return guard.Call(part).OrNil() }

// Logger returns a logger that logs as l does, but ignores a panic of l's slog.Handler. If l is nil, the current
// slog.Default() takes its place. Use Logger in an adapter, for the logger that the author supplied.
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

// failure says why a check failed, with all that the operator may know. It implements error. So a format of this
// package can return a failure, and a wrapper of the format can pass the failure on.
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

// excuse sets the reason to canceled if the caller has cancelled the call, because there is nothing to repair. It
// changes only a reason that is logged as an error.
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
