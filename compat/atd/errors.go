package atd

import (
	"errors"
	"fmt"
)

// Why a cursor is not issued or not accepted. The first five are the peer's;
// [ErrMismatch] is what its callers find out by themselves.
var (
	// ErrExpired is a cursor that is too old, or of another session. The client
	// starts over.
	ErrExpired = errors.New("atd: the cursor has expired")
	// ErrSignature is a cursor that was changed, or never issued.
	ErrSignature = errors.New("atd: the cursor's signature is invalid")
	// ErrFormat is a text that is no cursor, or a cursor from the future.
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

// argumentsError is arguments without a fingerprint, the client's fault.
type argumentsError struct{ problem error }

func (e *argumentsError) Error() string { return "atd: " + e.problem.Error() }
func (e *argumentsError) Unwrap() error { return e.problem }
