// Package inspect lets the mcpseal command show what a genuine token says, without
// the request that it is bound to. Nothing else may do that, so it is internal. The
// packages that own the records set [ReadState] and [ReadCursor].
package inspect

import "time"

// State is what the record of a state says. Times are in milliseconds.
type State struct {
	Issued, Expires, FlowStart int64
	Flow                       [16]byte
	Round                      int
	Audience, User             bool // whether the token is bound to a service, and to a user
	Questions                  []Question
	State                      string
	HasState                   bool

	// Limits returns why policy refuses the token at a time, or "".
	Limits func(at time.Time, maxFlow time.Duration, maxRounds int) (reason string)
}

// Question is a question that the token's round asked.
type Question struct {
	Key    string
	Kind   uint8
	Worded bool // a digest of its exact wording is sealed too
}

// Cursor is what the record of a cursor says. Times are in milliseconds.
type Cursor struct {
	Issued, Expires int64
	Number          int64
	Position        []byte
	User            bool // only one user may use the cursor
	Everybody       bool // everybody may use the cursor; if User is false too, only callers without a user may

	// BoundTo returns why the cursor is not for this request, or "".
	BoundTo func(b Binding) (reason string, err error)
	// InTime returns why the cursor's times are refused at a time, or "".
	InTime func(at time.Time) (reason string)
}

// Binding is what a cursor may be bound to.
type Binding struct {
	Method, Target        string
	Arguments             []byte
	User, Audience, Epoch string
}

var (
	// ReadState reads the payload of a state.
	ReadState func(payload []byte) (State, error)
	// ReadCursor reads the payload of a cursor.
	ReadCursor func(payload []byte) (Cursor, error)
)
