package mcpseal

import (
	"encoding/json"
	"errors"

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
