package atd

import (
	"errors"
	"fmt"
)

// Why a cursor is not issued or not accepted. The peer has the first five too. For
// [ErrMismatch], callers of the peer check tool, caller and arguments themselves.
var (
	// ErrExpired is a cursor that is too old, or of another session. The client
	// starts over.
	ErrExpired = errors.New("atd: the cursor has expired")
	// ErrSignature is a cursor that was changed, or never issued.
	ErrSignature = errors.New("atd: the cursor's signature is invalid")
	// ErrFormat is a text that is not a cursor, or a cursor from the future.
	ErrFormat = errors.New("atd: the cursor's format is invalid")
	// ErrTooLarge is a cursor of more than 512 characters.
	ErrTooLarge = errors.New("atd: the cursor has more than 512 characters")
	// ErrStateTooLarge is a state of more than 256 bytes.
	ErrStateTooLarge = errors.New("atd: the state has more than 256 bytes")
	// ErrMismatch is a genuine cursor for another tool, caller or arguments.
	ErrMismatch = errors.New("atd: the cursor is for another tool, caller or arguments")
)

// errSession is ErrExpired because of the session.
var errSession = fmt.Errorf("%w: it is of another session", ErrExpired)

// Names that a cursor cannot carry.
var (
	errToolText   = errors.New("atd: the tool's name is not UTF-8")
	errCallerText = errors.New("atd: the caller's name is not UTF-8: " + nameUsers)
)

const nameUsers = "set gosdk.Options.Principal to name users by short text, as the peer names its callers"

// tooLarge returns ErrTooLarge with advice on what to shorten.
func (p *payload) tooLarge() error {
	caller := 0
	if p.Caller != nil {
		caller = len(*p.Caller)
	}
	advice := "keep a key in the state, not a row"
	switch max(len(p.Tool), caller, len(p.State)) {
	case caller:
		advice = nameUsers
	case len(p.Tool):
		advice = "shorten the tool's name"
	}
	return fmt.Errorf("%w: the tool's name has %d bytes, the caller's %d, the state %d; %s", ErrTooLarge, len(p.Tool), caller, len(p.State), advice)
}

// argumentsError means that the client's arguments have no fingerprint.
type argumentsError struct{ problem error }

func (e *argumentsError) Error() string { return "atd: " + e.problem.Error() }
func (e *argumentsError) Unwrap() error { return e.problem }
