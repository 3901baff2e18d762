package atd

import (
	"errors"
	"fmt"
)

// These errors say why a cursor is not issued or not accepted. The ATD runtime also has
// the first five. It has no [ErrMismatch]: a program that uses the runtime must check by
// itself that the tool, the caller and the arguments are those of the cursor.
var (
	// ErrExpired means that the cursor is too old, or belongs to another session. The client
	// must start again at the first page.
	ErrExpired = errors.New("atd: the cursor has expired")
	// ErrSignature means that the cursor was changed, or was never issued.
	ErrSignature = errors.New("atd: the cursor's signature is invalid")
	// ErrFormat means that the text is not a cursor, or that the cursor's date is too far in
	// the future.
	ErrFormat = errors.New("atd: the cursor's format is invalid")
	// ErrTooLarge means that the cursor has more than 512 characters.
	ErrTooLarge = errors.New("atd: the cursor has more than 512 characters")
	// ErrStateTooLarge means that the state has more than 256 bytes.
	ErrStateTooLarge = errors.New("atd: the state has more than 256 bytes")
	// ErrMismatch means that the cursor is genuine, but for another tool, caller or arguments.
	ErrMismatch = errors.New("atd: the cursor is for another tool, caller or arguments")
)

// errSession is the error for a cursor of another session. It wraps ErrExpired.
var errSession = fmt.Errorf("%w: it is of another session", ErrExpired)

// These errors are for names that a cursor cannot hold.
var (
	errToolText   = errors.New("atd: the tool's name is not UTF-8")
	errCallerText = errors.New("atd: the caller's name is not UTF-8: " + nameUsers)
)

const nameUsers = "set gosdk.Options.Principal to name users by short text, as the peer names its callers"

// tooLarge returns an error that wraps ErrTooLarge and says what to shorten.
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

// argumentsError means that the client's arguments have no digest, because they are not
// JSON, or are JSON that the digest refuses.
type argumentsError struct{ problem error }

func (e *argumentsError) Error() string { return "atd: " + e.problem.Error() }
func (e *argumentsError) Unwrap() error { return e.problem }
