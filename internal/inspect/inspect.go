// Package inspect lets the tripseal command show what a genuine token holds, even without the
// request that the token is bound to. No other program may do this, so the package is
// internal.
// The packages that define the contents of tokens, cursors and handles set the variables
// [ReadState], [ReadCursor] and [ReadHandle].
package inspect

import "time"

// State is what a state token holds. Times are in Unix milliseconds.
type State struct {
	Issued, Expires, FlowStart int64
	Flow                       [16]byte
	Round                      int
	Audience, User             bool // Audience: the token is bound to a service; User: it is bound to a user
	Questions                  []Question
	State                      string
	HasState                   bool
	Elicit                     bool // true if package elicit wrote the state

	// Limits checks only the dates and the round of the token. It returns the reason if the token
	// would be refused at the given time with these limits, and "" otherwise.
	Limits func(at time.Time, maxFlow time.Duration, maxRounds int) (reason string)
}

// Question is a question that was asked in the round of the token.
type Question struct {
	Key  string
	Kind uint8
}

// Cursor is what a cursor holds. Times are in Unix milliseconds.
type Cursor struct {
	Issued, Expires int64
	Number          int64
	Position        []byte
	User            bool // true if only one user may use the cursor
	Everybody       bool // true if everybody may use the cursor; if User and Everybody are both false, only callers without a user may use it

	// BoundTo returns why the cursor is not for the request b, or "" if it is.
	BoundTo func(b Binding) (reason string, err error)
	// InTime checks only the dates of the cursor. It returns the reason if the cursor would be
	// refused at the given time, and "" otherwise.
	InTime func(at time.Time) (reason string)
}

// Binding is the request, user and service that a cursor may be bound to.
type Binding struct {
	Method, Target        string
	Arguments             []byte
	User, Audience, Epoch string
}

// Handle is what a handle holds. Times are in Unix milliseconds.
type Handle struct {
	Issued, Expires int64
	ID              []byte
}

var (
	// ReadState decodes the decrypted payload of a state token.
	ReadState func(payload []byte) (State, error)
	// ReadCursor decodes the decrypted payload of a cursor.
	ReadCursor func(payload []byte) (Cursor, error)
	// ReadHandle decodes the decrypted payload of a handle.
	ReadHandle func(payload []byte) (Handle, error)
)
