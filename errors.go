package mcpseal

import (
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/callback"
)

// ErrRejected is what every rejection is: errors.Is(err, ErrRejected).
var ErrRejected = errors.New("mcpseal: token rejected")

// RejectError is a token that [Boundary.Open] did not accept. Its text is the
// same for every reason, so that it can go anywhere.
type RejectError struct {
	Reason Reason `json:"-"` // for the operator, never for the client
	cause  *callback.Error
}

func (e *RejectError) Error() string { return ErrRejected.Error() }

// Is makes every RejectError an [ErrRejected].
func (e *RejectError) Is(target error) bool { return target == ErrRejected }

// Cause returns what a codec, a store or another part of yours did, if that
// was the reason. Its text is safe to log; errors.Unwrap reaches the original,
// whose text may not be.
func (e *RejectError) Cause() error { return e.cause.OrNil() }

// SealError is a state that [Boundary.Seal] did not seal: the service's fault,
// an internal error to the client.
type SealError struct {
	Reason Reason
	cause  *callback.Error
}

func (e *SealError) Error() string { return "mcpseal: state not sealed: " + string(e.Reason) }

// Cause returns what a codec or another part of yours did, if that was the
// reason, as for a [RejectError].
func (e *SealError) Cause() error { return e.cause.OrNil() }

// ParamsError is a first round that cannot be sealed, because the request's
// arguments have no digest: not JSON, two members of one name, too deep, too
// long. It is the client's fault.
type ParamsError struct {
	problem *argdigest.Error // says what and where, repeats nothing
}

func (e *ParamsError) Error() string { return "mcpseal: " + e.problem.Error() }

// WireError is what a client may see of an error, as JSON-RPC has it. It can
// be returned as an error itself.
type WireError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e WireError) Error() string { return e.Message }

// Wire returns the client's view of an error of [Boundary.Open] or
// [Boundary.Seal]. All rejections look alike.
func Wire(err error) WireError {
	var params *ParamsError
	switch {
	case errors.Is(err, ErrRejected):
		return WireError{-32602, "Invalid or expired requestState", json.RawMessage(`{"reason":"invalid_request_state"}`)}
	case errors.As(err, &params):
		return WireError{-32602, "Invalid params", nil}
	}
	return WireError{-32603, "Internal error", nil}
}

// Reason says why a token was rejected or a state not sealed. It is for the
// operator: a client never learns it.
//
// A Reason is an error, so that a [Codec] or a [Format] can return it.
type Reason string

// Why a token is rejected. The first four are about a token that did not prove
// genuine; the others about genuine tokens, or about the service itself.
const (
	ReasonMalformed  Reason = "malformed"   // not the text of any token
	ReasonUnknownKey Reason = "unknown_key" // sealed with a key that is not, or no longer, in the ring
	ReasonForged     Reason = "forged"      // changed, or never sealed
	ReasonTooLarge   Reason = "too_large"   // longer than a token, or a state, may be

	ReasonVersion       Reason = "version"         // of another purpose, or of a newer release
	ReasonRequest       Reason = "request"         // sealed for another method or target
	ReasonArguments     Reason = "arguments"       // sealed for other arguments, or these have no digest
	ReasonAudience      Reason = "audience"        // sealed by another service
	ReasonUser          Reason = "user"            // sealed for another user, for nobody, or nobody is calling
	ReasonExpired       Reason = "expired"         // too old
	ReasonFromTheFuture Reason = "from_the_future" // issued by a clock that is ahead
	ReasonFlowExpired   Reason = "flow_expired"    // all rounds together took too long
	ReasonTooManyRounds Reason = "too_many_rounds" // all rounds together are too many
	ReasonReplayed      Reason = "replayed"        // used before
	ReasonClaimMissing  Reason = "claim_missing"   // of a format that cannot carry what policy demands

	ReasonCodecFailed     Reason = "codec_failed"     // the codec, format or key source failed
	ReasonPrincipalFailed Reason = "principal_failed" // who is calling could not be told
	ReasonStoreFailed     Reason = "store_failed"     // the single-use store failed or took too long

	ReasonCanceled Reason = "canceled" // the caller gave up while a part of the service was asked; perhaps spent

	ReasonInvalidParams Reason = "invalid_params" // the arguments of a first round have no digest, the client's fault
	ReasonBadQuestions  Reason = "bad_questions"  // too many questions to seal, or malformed ones
	ReasonMisuse        Reason = "misuse"         // a Round of another boundary, or of none
)

// Level is how urgent a rejection is: an error where the service failed and its
// operator must act, a warning where a client did something.
func (r Reason) Level() slog.Level {
	switch r {
	case ReasonCodecFailed, ReasonPrincipalFailed, ReasonStoreFailed:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// Error makes a Reason an error.
func (r Reason) Error() string { return "mcpseal: " + string(r) }
