// Package passage is what the middleware of a protected server, the package
// elicit and tests of handlers share about a call on its way to the handler.
package passage

import (
	"context"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// Call is the context of a call whose state and answers have passed a boundary.
// It is a context itself, so that the mark costs one allocation.
type Call struct {
	context.Context
	By      any            // the *gosdk.Protected that it passed
	Session mcp.Session    // nil in tests of handlers
	Round   *mcpseal.Round // of the token that came in; nil without one
	Older   any            // the gosdk's own, for clients that are asked in the middle of the call
	Caller  any            // the gosdk's own: who sent it, as it arrived

	// What elicit wrote in the last run of the handler. Only elicit calls Wrote,
	// so that no other state can pass for its own.
	mu      sync.Mutex // a handler may still run when nobody waits for it any more
	state   string
	wording map[string][16]byte
}

type key struct{}

// Value makes the Call known to what runs in it.
func (c *Call) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// From returns the call that a context belongs to, or nil.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}

// Wrote notes the state that elicit returns, and how its questions are worded.
func (c *Call) Wrote(state string, wording map[string][16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state, c.wording = state, wording
}

// Forget forgets it, before the handler runs once more.
func (c *Call) Forget() { c.Wrote("", nil) }

func (c *Call) written() (state string, wording map[string][16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.wording
}

// Asking reports whether the last run of elicit's handler asked.
func (c *Call) Asking() bool {
	_, wording := c.written()
	return wording != nil
}

// Wording returns how elicit's questions are worded, for the token of a state; nil
// if elicit did not write that state.
func (c *Call) Wording(state string) map[string][16]byte {
	written, wording := c.written()
	if written != state {
		return nil
	}
	return wording
}

// Written reports whether elicit wrote the state that came in, with questions of
// this wording: because the token says so, because the operator did without that
// claim, or because elicit did it a moment ago and the SDK asked by itself.
func (c *Call) Written(state string, wording map[string][16]byte) bool {
	if written, asked := c.written(); asked != nil && c.Older != nil {
		return written == state
	}
	if c.Round == nil || c.Round.First() {
		return false
	}
	if c.Round.Waived()&mcpseal.ClaimWording != 0 {
		return true
	}
	questions, _ := c.Round.Questions()
	for _, q := range questions {
		if worded, ok := wording[q.Key]; !ok || worded != q.Digest || q.Digest == [16]byte{} {
			return false
		}
	}
	return len(questions) > 0 && len(questions) == len(wording)
}
