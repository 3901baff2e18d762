// Package passage describes a call on its way to the handler. Package elicit, tests of
// handlers, and the middleware of a protected server share that description.
package passage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// Functions of package gosdk that package elicit needs. Package gosdk sets them.
var (
	// LoggerOf returns the logger of a *gosdk.Protection.
	LoggerOf func(protection any) *slog.Logger
	// ProtectionOf returns the *gosdk.Protection of a *gosdk.Protected.
	ProtectionOf func(protected any) any
	// CheckCapabilities returns the protocol's error -32021 if the client of a request
	// has not declared that it can answer the questions. Otherwise it returns nil.
	CheckCapabilities func(req mcp.Request, questions mcp.InputRequestMap) error
)

// ErrPending tells a handler of elicit that an answer has not arrived yet. The handler
// returns this error to elicit, and elicit then sends the questions. No client ever gets
// the error.
var ErrPending = errors.New("elicit: not answered yet")

// Call marks the context of a call whose state and answers have passed a boundary. Call
// is itself the marked context, so that marking costs only one allocation.
type Call struct {
	context.Context
	By      any         // the *gosdk.Protection whose middleware the call has passed
	Session mcp.Session // nil in tests of handlers
	Older   any         // gosdk's own data about the call of an older client; nil for newer clients
	Caller  any         // gosdk's own data about who sent the call

	// The fields below record what elicit wrote in the last few runs of its handler in
	// this round: middleware may run the handler more than once, and use any of the
	// results. Only elicit calls the method Wrote, so a state from elsewhere cannot pass
	// for a state of elicit.
	mu     sync.Mutex // needed because a handler may still run after its call has ended
	round  *tripseal.Round
	wrote  []written
	asking bool                // true if the last run asked questions
	owed   mcp.InputRequestMap // the handler must return a Pending with these questions; nil if it need not return a Pending
	taken  bool                // true if the handler has called ToolResult, PromptResult or ResourceResult of the Pending that it must return
	failed bool                // true if elicit was misused after Within returned, so that the call must fail
	waits  bool                // true if, in the last run, the function passed to Within tried to read an answer that has not arrived yet
	lacks  string              // why the handler must return an error; "" if it need not

	input *input // the state and the answers that came in for elicit; nil if nothing came in for it

	beginning sync.Mutex // held while an asker is made
	within    any        // the asker of the run that withinOf identifies; nil if there is none yet
	withinOf  withinRun  // zero before the first call of Within
}

// withinRun identifies one run of a handler. For older clients, the SDK runs the handler twice in a
// round. Only the state and the answers in the request show which of the two runs it is. The
// pointer to the request cannot show this, because the handler may pass a copy of its request to
// Within.
type withinRun struct {
	req     mcp.Request
	round   *tripseal.Round
	state   string
	answers mcp.InputResponseMap
}

type written struct {
	state   string
	wording map[string][16]byte
}

// maxWritten is how many states a Call stores at most. It is small because each state may
// have tripseal.Config.MaxState bytes.
const maxWritten = 8

type key struct{}

// Value returns the Call itself for the key that the function From looks up.
func (c *Call) Value(k any) any {
	if k == (key{}) {
		return c
	}
	return c.Context.Value(k)
}

// String returns the name of the type, so that a printed context does not show the state.
func (c *Call) String() string { return "passage.Call" }

// Format writes what String returns, whatever the verb is.
func (c *Call) Format(s fmt.State, _ rune) { io.WriteString(s, c.String()) }

// LogValue returns what String returns.
func (c *Call) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText returns what String returns, so that encoding/json does not show the state either.
func (c *Call) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// From returns the call that a context belongs to, or nil if there is none.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}

// Began is called when a run of elicit's handler begins, the first run of this call or
// a later one.
func (c *Call) Began() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking, c.waits = false, false
}

// Within returns the asker for this run of a handler. It calls newAsker only once in a
// run, so a handler that calls elicit.Within several times gets the same asker each
// time. The result ok is false if earlier calls of Within in this run got another
// request. A copy counts as the same request.
func (c *Call) Within(req mcp.Request, state string, answers mcp.InputResponseMap, newAsker func() any) (asker any, ok bool) {
	c.beginning.Lock()
	defer c.beginning.Unlock()
	run := withinRun{req, c.opened(), state, answers}
	if c.within != nil && c.sameRun(run, c.withinOf) {
		return c.within, sameRequest(run.req, c.withinOf.req)
	}
	if c.isPassedOn(state) {
		c.settle() // the SDK has asked the questions that the previous run had to return
	}
	c.within, c.withinOf = newAsker(), run
	return c.within, true
}

// sameRun reports whether two calls of Within are in the same run of the handler. If
// the SDK passed on a state of elicit, the answers need not be equal: that state alone
// identifies the run. The handler may have copied the answers, and copies of them are not
// equal, because answers are pointers.
func (c *Call) sameRun(a, b withinRun) bool {
	return a.round == b.round && a.state == b.state && (maps.Equal(a.answers, b.answers) || c.isPassedOn(a.state))
}

// Begun stores the asker of a handler that was registered with elicit, so that Within
// returns this asker.
func (c *Call) Begun(req mcp.Request, state string, answers mcp.InputResponseMap, asker any) {
	c.beginning.Lock()
	defer c.beginning.Unlock()
	c.within, c.withinOf = asker, withinRun{req, c.opened(), state, answers}
}

// Owe stores the questions of a result that the handler must return.
func (c *Call) Owe(questions mcp.InputRequestMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed, c.taken = questions, false
}

// Take is called when the handler calls ToolResult, PromptResult or ResourceResult of the Pending
// that it must return.
func (c *Call) Take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken = true
}

// Owes reports whether the handler must still return the result whose questions were
// passed to the method Owe. The middleware checks this when the handler has returned a
// result without questions.
func (c *Call) Owes() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owed != nil
}

// Taken reports whether Take was called after Owe. If the handler fails after that, the
// client must get the handler's error.
func (c *Call) Taken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.taken
}

// Sends is called when the SDK sends a question to an older client. If this
// question was passed to the method Owe, the handler has returned it to the SDK, and owes
// nothing more: the SDK will run the handler again with the answer.
func (c *Call) Sends(question mcp.InputRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, owed := range c.owed {
		if areAlike(owed, question) {
			c.owed, c.waits = nil, false
			return
		}
	}
}

// areAlike reports whether two questions have the same kind and, if they are elicitations,
// the same message. The SDK changes other parts of some questions when it sends them.
func areAlike(a, b mcp.InputRequest) bool {
	if KindOf(a) != KindOf(b) {
		return false
	}
	form, ok := a.(*mcp.ElicitParams)
	return !ok || form.Message == b.(*mcp.ElicitParams).Message
}

func (c *Call) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed = nil
}

// Fail makes the call fail, whatever the handler returns. It returns false if the call
// fails already.
func (c *Call) Fail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.failed
	c.failed = true
	return !before
}

// Lack stores the reason why Within returned an error that the handler must return. If
// the handler returns a result instead, it may have acted without an answer, or although
// the user refused. Only the first reason is kept.
func (c *Call) Lack(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lacks == "" {
		c.lacks = reason
	}
}

// Lacks returns the reason that was passed to the method Lack, or "" if Lack was not called.
func (c *Call) Lacks() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacks
}

// Wait is called when the function passed to Within has tried to read an answer that has
// not arrived yet.
func (c *Call) Wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = true
}

// Waits reports whether Wait was called in the last run of the handler.
func (c *Call) Waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits
}

// Failed reports whether Fail was called.
func (c *Call) Failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Wrote stores the state that a run of elicit's handler returns, and the digests of the run's
// questions. The keys of the map are the keys of the questions.
func (c *Call) Wrote(state string, wording map[string][16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrote) == maxWritten {
		c.wrote = slices.Delete(c.wrote, 0, 1)
	}
	c.wrote, c.asking = append(c.wrote, written{state, wording}), true
}

// Begin begins the given round. The caller must not change the Round afterwards.
func (c *Call) Begin(round *tripseal.Round) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round, c.wrote, c.asking, c.waits, c.input, c.owed = round, nil, false, false, nil, nil
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

// Keep stores the state and the answers that came in for elicit. The request is the one
// that the handler gets: it has no state and no answers.
func (c *Call) Keep(req mcp.Request, state string, answers mcp.InputResponseMap) {
	in := &input{state: state, answers: answers, params: req.GetParams()}
	target, arguments, promptArgs := targetOf(req)
	in.target, in.arguments, in.promptArgs = target, bytes.Clone(arguments), maps.Clone(promptArgs)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input = in
}

// Input returns the state and the answers that Keep stored, or nothing if Keep was not
// called. ok is false if req is neither the request that was passed to Keep nor a copy
// of it: a tool that calls other tools must not lend them its answers.
func (c *Call) Input(req mcp.Request) (state string, answers mcp.InputResponseMap, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := c.input
	if in == nil {
		return "", nil, true
	}
	if in.params != req.GetParams() && !in.matches(req) {
		return "", nil, false
	}
	return in.state, in.answers, true
}

// matches reports whether a request calls the input's target with the input's arguments.
func (in *input) matches(req mcp.Request) bool {
	target, arguments, promptArgs := targetOf(req)
	return in.target == target && sameValue(in.arguments, arguments) && maps.Equal(in.promptArgs, promptArgs)
}

// sameRequest reports whether a is the same request as b, or a copy of it.
func sameRequest(a, b mcp.Request) bool {
	if a.GetParams() == b.GetParams() {
		return true
	}
	target, arguments, promptArgs := targetOf(a)
	return (&input{target: target, arguments: arguments, promptArgs: promptArgs}).matches(b)
}

// sameValue reports whether a and b are the same JSON value. Their bytes may differ,
// because inner middleware may have written the arguments again.
func sameValue(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	one, err := (&tripseal.Binding{Arguments: a}).ArgumentsDigest()
	if err != nil {
		return false
	}
	other, err := (&tripseal.Binding{Arguments: b}).ArgumentsDigest()
	return err == nil && one == other
}

// targetOf returns the tool, prompt or resource that a request calls, and the
// arguments.
func targetOf(req mcp.Request) (target string, arguments []byte, promptArgs map[string]string) {
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

func (c *Call) opened() *tripseal.Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round
}

// Asking reports whether the last run of elicit's handler asked questions.
func (c *Call) Asking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asking
}

// Wording returns what elicit stored together with this state: a map from the key of each question
// to the question's digest. It returns nil if elicit did not write this state. ok is false if
// elicit asked questions in this round, but wrote another state.
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

// Written reports whether elicit wrote this state, and asked the questions that have these
// digests. It returns true if the token says so, or if the operator waived
// tripseal.ClaimElicit. The call of an older client may run the handler several times, and
// the SDK passes the state from one run to the next without a token. So Written also returns
// true if elicit wrote the state in an earlier run of the same call.
func (c *Call) Written(state string, wording map[string][16]byte) bool {
	if c.isPassedOn(state) {
		return true
	}
	round := c.opened()
	if round == nil || round.First() {
		return false
	}
	return round.Waived()&tripseal.ClaimElicit != 0
}

// isPassedOn reports whether elicit wrote the state earlier in this call of an older
// client. If so, the SDK itself, not the client, passed the state on to this run.
func (c *Call) isPassedOn(state string) bool {
	asked, _ := c.Wording(state)
	return asked != nil && c.Older != nil
}
