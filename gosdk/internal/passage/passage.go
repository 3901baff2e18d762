// Package passage describes a call on its way to the handler. The middleware of a
// protected server, package elicit and tests of handlers share that description.
package passage

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// Functions of package gosdk that package elicit needs. Package gosdk sets them.
var (
	// LoggerOf returns the logger for the author and operator of a *gosdk.Protection.
	LoggerOf func(protection any) *slog.Logger
	// ProtectionOf returns the *gosdk.Protection of a *gosdk.Protected.
	ProtectionOf func(protected any) any
	// CheckCapabilities returns the protocol's error -32021 if the client of a request
	// has not declared that it can answer the questions, or else nil.
	CheckCapabilities func(req mcp.Request, questions mcp.InputRequestMap) error
)

// Call marks the context of a call whose state and answers have passed a boundary. It is
// a context itself, so that marking costs one allocation only.
type Call struct {
	context.Context
	By      any         // the *gosdk.Protection whose middleware the call has passed
	Session mcp.Session // nil in tests of handlers
	Older   any         // gosdk's own data about the call of an older client; nil for newer clients
	Caller  any         // gosdk's own data about who sent the call

	// The fields below have what elicit wrote in this round, in the last few runs of
	// its handler: middleware may run the handler more than once, and use any of the
	// results. Only elicit calls Wrote, so that no other state can pass for its own.
	mu     sync.Mutex // a handler may still run after its call has ended
	round  *mcpseal.Round
	wrote  []written
	asking bool // true if the last run asked
	open   int  // how many results with questions the handler has not taken yet

	input *input // the state and the answers that came in for elicit; nil if none did

	beginning sync.Mutex // held while an asker is made
	within    any        // what Within returns during the run withinOf
	withinOf  withinRun  // zero before the first call of Within

	parts  int            // calls of Within so far; part 0 is the handler of elicit itself
	askers map[string]int // the part that asks under each key, in this run
	pended bool           // a call of Within returned a result that asks, in this run
}

// withinRun identifies one run of a handler. For older clients, SDK 1.7 runs the
// handler again with the same request, and only the state and the answers in that
// request tell the runs apart.
type withinRun struct {
	req     mcp.Request
	state   string
	answers uintptr // the address of the map of answers
}

type written struct {
	state   string
	wording map[string][16]byte
}

// maxWritten limits how many states are kept: each may have mcpseal.Config.MaxState bytes.
const maxWritten = 8

type key struct{}

// Value lets From find the Call.
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

// Began notes that a run of elicit's handler begins. It may be the first of this call
// or a later one.
func (c *Call) Began() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking, c.open = false, 0
}

// Within returns what begin made for this run of a handler. It calls begin only the first
// time, so a handler that calls elicit.Within several times gets the same asker each time.
// It also returns the number of this part of the run.
func (c *Call) Within(req mcp.Request, state string, answers mcp.InputResponseMap, begin func() any) (asker any, part int) {
	run := withinRun{req, state, reflect.ValueOf(answers).Pointer()}
	c.beginning.Lock()
	defer c.beginning.Unlock()
	c.mu.Lock()
	if c.withinOf.state != run.state || c.withinOf.answers != run.answers { // a copy of the request is no other run
		c.askers, c.pended = nil, false
	}
	c.parts++
	part = c.parts
	c.mu.Unlock()
	if c.within == nil || c.withinOf != run {
		c.within, c.withinOf = begin(), run
	}
	return c.within, part
}

// AsksIn notes that a part of the run asks under a key. It is false if another part did.
func (c *Call) AsksIn(part int, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.askers[key]; ok {
		return before == part
	}
	if c.askers == nil {
		c.askers = make(map[string]int)
	}
	c.askers[key] = part
	return true
}

// Begun notes the asker of a handler of elicit, so that Within returns it.
func (c *Call) Begun(req mcp.Request, state string, answers mcp.InputResponseMap, asker any) {
	c.beginning.Lock()
	defer c.beginning.Unlock()
	c.within, c.withinOf = asker, withinRun{req, state, reflect.ValueOf(answers).Pointer()}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.askers, c.pended = nil, false
}

// Pend notes that there is a result that asks. The handler must take it and return it.
func (c *Call) Pend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.pended = c.open+1, true
}

// Pended reports whether Pend noted a result in this run, taken or not.
func (c *Call) Pended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pended
}

// Take notes that the handler has taken a result that Pend noted.
func (c *Call) Take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}

// Dropped reports whether the handler has not taken a result that Pend noted.
func (c *Call) Dropped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0
}

// Wrote notes the state that a run returns, and the digests of its questions, by key.
func (c *Call) Wrote(state string, wording map[string][16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrote) == maxWritten {
		c.wrote = slices.Delete(c.wrote, 0, 1)
	}
	c.wrote, c.asking = append(c.wrote, written{state, wording}), true
}

// Begin begins a round, which the boundary opened from the token that came in. The
// caller must not change the round after this.
func (c *Call) Begin(round *mcpseal.Round) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round, c.wrote, c.asking, c.input = round, nil, false, nil
	c.askers, c.pended = nil, false
}

// Worded reports whether elicit wrote the state of a round: whether every question in
// the round's token has a digest of its wording. Such a state is for elicit alone: any
// other handler might take it for a state of its own.
func Worded(round *mcpseal.Round) bool {
	questions, _ := round.Questions()
	return len(questions) > 0 && !slices.ContainsFunc(questions, func(q mcpseal.Question) bool { return q.Digest == [16]byte{} })
}

// input is the state and the answers that came in for elicit, and the request that they
// came with.
type input struct {
	state   string
	answers mcp.InputResponseMap

	params     mcp.Params // the params that the handler gets
	target     string
	arguments  []byte            // a copy of a tool's arguments
	promptArgs map[string]string // a copy of a prompt's arguments
}

// Keep keeps the state and the answers that came in for elicit. Req is the request that
// the handler gets, which has neither.
func (c *Call) Keep(req mcp.Request, state string, answers mcp.InputResponseMap) {
	in := &input{state: state, answers: answers, params: req.GetParams()}
	target, arguments, promptArgs := called(req)
	in.target, in.arguments, in.promptArgs = target, bytes.Clone(arguments), maps.Clone(promptArgs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input = in
}

// Input returns the state and the answers that Keep kept, or nothing if Keep was not
// called. ok is false if req is neither the request that was kept with them nor a copy
// of it: a tool that calls other tools must not lend them its answers.
func (c *Call) Input(req mcp.Request) (state string, answers mcp.InputResponseMap, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.input
	if in == nil {
		return "", nil, true
	}
	if target, arguments, promptArgs := called(req); in.params != req.GetParams() &&
		(in.target != target || !sameValue(in.arguments, arguments) || !maps.Equal(in.promptArgs, promptArgs)) {
		return "", nil, false
	}
	return in.state, in.answers, true
}

// sameValue reports whether two arguments are the same JSON value: inner middleware may
// have written them anew.
func sameValue(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, err := (&mcpseal.Binding{Arguments: a}).ArgumentsDigest()
	if err != nil {
		return false
	}
	other, err := (&mcpseal.Binding{Arguments: b}).ArgumentsDigest()
	return err == nil && one == other
}

// called returns what a request calls, and with which arguments.
func called(req mcp.Request) (target string, arguments []byte, promptArgs map[string]string) {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		return "tool " + r.Params.Name, r.Params.Arguments, nil
	case *mcp.GetPromptRequest:
		return "prompt " + r.Params.Name, nil, r.Params.Arguments
	case *mcp.ReadResourceRequest:
		return "resource " + r.Params.URI, nil, nil
	}
	return "", nil, nil
}

func (c *Call) opened() *mcpseal.Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round
}

// Asking reports whether the last run of elicit's handler asked.
func (c *Call) Asking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking
}

// Wording returns the digests of the questions of a result with this state, by key, or
// nil if the handler is not one of elicit's. ok is false if elicit asked in this round,
// but did not write this state.
func (c *Call) Wording(state string) (wording map[string][16]byte, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.wrote {
		if w.state == state {
			return w.wording, true
		}
	}
	return nil, len(c.wrote) == 0
}

// Written reports whether elicit wrote the state that came in, with questions of this
// wording. It is true if the token says so, or if the operator waived ClaimWording. It is
// also true if elicit wrote the state earlier in this call and the SDK asked by itself.
func (c *Call) Written(state string, wording map[string][16]byte) bool {
	if asked, _ := c.Wording(state); asked != nil && c.Older != nil {
		return true
	}
	round := c.opened()
	if round == nil || round.First() {
		return false
	}
	if round.Waived()&mcpseal.ClaimWording != 0 {
		return true
	}
	questions, _ := round.Questions()
	for _, q := range questions {
		if worded, ok := wording[q.Key]; !ok || worded != q.Digest || q.Digest == [16]byte{} {
			return false
		}
	}
	return len(questions) > 0 && len(questions) == len(wording)
}
