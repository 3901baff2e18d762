// Package passage marks the context of a call that has passed a boundary. The middleware
// and tests of handlers use it.
package passage

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
)

// Call is a context that marks a call whose state and answers have passed a boundary. It is
// the context and the mark in one value, so that both take only one allocation.
type Call struct {
	context.Context
	Server *server.MCPServer // nil in tests of handlers
	Round  mcpseal.Round
	State  string // the state in plaintext that the handler gets; not set in tests of handlers
	// Arguments tells how the arguments of a tool arrived. It is nil if nobody needs to
	// know that, and in tests of handlers.
	Arguments *Arguments
}

// Arguments has the arguments of a tool as JSON. An Arguments is not changed once a
// handler runs.
type Arguments struct {
	Tool    string // the tool's name
	Sent    []byte // what the client sent
	Settled []byte // the JSON of the arguments when their two forms, text and decoded value, last agreed
	Alike   bool   // true if it is known that all readers get the same values from Sent, and that all get the same values from Settled
	Refused error  // not nil if the arguments were refused after hooks had seen them

	IsTask      bool        // true if the call runs as a task
	IsForgotten bool        // true if the texts of a task were removed
	Timeout     *time.Timer // removes the texts of a task ten minutes after the call, if they are still there; nil if no timer was started

	isDecoded bool
	decoded   any
}

// Settle sets Settled to a copy of text.
func (a *Arguments) Settle(text []byte) {
	if !bytes.Equal(a.Settled, text) {
		a.Settled, a.Alike, a.isDecoded, a.decoded = bytes.Clone(text), false, false, nil
	}
}

// Decoded returns the value that encoding/json decodes from Settled. It decodes only
// once, so nobody may change the value. The value is nil if Settled is empty or not JSON.
func (a *Arguments) Decoded() any {
	if !a.isDecoded {
		a.isDecoded = true
		if json.Unmarshal(a.Settled, &a.decoded) != nil {
			a.decoded = nil
		}
	}
	return a.decoded
}

// DropDecoded frees the memory of the decoded value. Decoded decodes it anew.
func (a *Arguments) DropDecoded() { a.isDecoded, a.decoded = false, nil }

type key struct{}

// Value returns c for the key that the function From uses, so that From finds the call.
func (c *Call) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// From returns the call that a context belongs to, or nil if the call has passed no boundary.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}
