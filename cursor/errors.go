package cursor

import (
	"encoding/json"
	"errors"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/guard"
)

// Open returns these two kinds of errors. Use errors.Is to tell which kind an error is.
var (
	// ErrExpired means that the cursor is right for this request but too old. The client
	// must start again at the first page.
	ErrExpired = errors.New("tripseal: cursor expired")
	// ErrInvalid means that the cursor was refused for a reason other than its age. The
	// log has the reason; send the client what [Wire] returns.
	ErrInvalid = errors.New("tripseal: invalid cursor")
)

// RejectError means that a cursor was not opened. errors.Is matches it with [ErrExpired]
// or [ErrInvalid], and its text says no more than that. Use errors.As to get a
// RejectError if your own code must know the reason.
type RejectError struct {
	Reason tripseal.Reason `json:"-"` // tells the operator why; never show it to the client
	cause  *guard.Error
}

func (e *RejectError) kind() error {
	if e.Reason == tripseal.ReasonExpired {
		return ErrExpired
	}
	return ErrInvalid
}

// Error returns the text of [ErrExpired] or of [ErrInvalid]. A client may see it.
func (e *RejectError) Error() string { return e.kind().Error() }

// Is reports whether target is the kind of error that e is: [ErrExpired] or [ErrInvalid].
// Call errors.Is instead of this method.
func (e *RejectError) Is(target error) bool { return target == e.kind() }

// Cause returns an error that explains the reason, such as how your codec failed. It
// returns nil if there is no explanation. The text of the returned error is safe to log.
// Log the returned error if you write your own record of the rejection.
func (e *RejectError) Cause() error { return e.cause.OrNil() }

// IssueError means that a cursor was not issued. Its text has the reason, which the client
// must not see: send the client what [Wire] returns.
type IssueError struct {
	Reason tripseal.Reason // tells the operator why
	cause  *guard.Error
}

// Error returns a text with the reason, for the log.
func (e *IssueError) Error() string { return "tripseal: cursor not issued: " + string(e.Reason) }

// Cause returns an error that explains the reason, such as how your codec failed. It
// returns nil if there is no explanation. The text of the returned error is safe to log.
// Log the returned error if you write your own record of the failure.
func (e *IssueError) Cause() error { return e.cause.OrNil() }

const invalidParams = -32602 // the JSON-RPC code that MCP's pagination chapter requires

// Wire turns an error of this package into the error that the client gets. Use Wire in a
// handler that opens and issues cursors itself; paged tools of an adapter do this for
// you.
func Wire(err error) tripseal.WireError {
	var issue *IssueError
	switch {
	case errors.Is(err, ErrExpired):
		return tripseal.WireError{Code: invalidParams, Message: "Expired cursor", Data: json.RawMessage(`{"reason":"expired_cursor"}`)}
	case errors.Is(err, ErrInvalid):
		return tripseal.WireError{Code: invalidParams, Message: "Invalid cursor", Data: json.RawMessage(`{"reason":"invalid_cursor"}`)}
	case errors.As(err, &issue) && issue.Reason == tripseal.ReasonInvalidParams:
		return tripseal.WireError{Code: invalidParams, Message: "Invalid params"}
	}
	return tripseal.WireError{Code: -32603, Message: "Internal error"}
}
