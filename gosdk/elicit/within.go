package elicit

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// Within asks questions in a handler that is registered with the SDK itself, not with this package.
// Any function that the handler calls may call Within. Pass a function that asks questions and
// reads answers, as a handler of [AddTool] does. If Within returns a *[Pending], the handler must
// call ToolResult, PromptResult or ResourceResult on the Pending, and return the result at once.
// The handler runs again when the answers are there. So the code before Within may run more than
// once: do not delete or pay for anything there, for example. The error of Within is the error that
// your function returned, such as a *[RefusedError], or it says that the call cannot go on. Use
// Within if a handler cannot be registered with AddTool, or if many handlers share one question.
//
// Ask questions, read answers and call [Once] only inside the function that you pass to Within.
// After Within has returned, you may still read an answer that has arrived. The client's call fails
// in these cases:
//
//   - After Within has returned, the handler reads a pending answer, asks a question, or
//     calls Once or NotYet.
//   - Within returned a *[Pending], and the handler returns another result.
//   - Your function returned without reading a refusal, and the handler still returns a
//     result.
//
// A handler may call Within several times, one after the other. Each of these calls needs its own
// keys, for its questions and for [Once]: Within fails if an earlier call of Within has used the
// same key. For the same reason, inner middleware must not run such a handler twice. Pass the
// request that the handler got, or a copy of it. The state of the result is for this package only:
// the handler must neither read nor write it.
//
// Within works in every call that came through the middleware of package gosdk. In any
// other call it fails, and the log says why.
func Within(ctx context.Context, req mcp.Request, ask func(*Asker) error) (pending *Pending, err error) {
	passing := passage.From(ctx)
	if passing == nil || !gosdk.Sealed(ctx, req) {
		slog.ErrorContext(ctx, "elicit: Within was called in a call that has not come through the middleware of its server, so its state and "+
			"answers cannot be trusted: call gosdk.Protect on the server, and pass the context and the request that the handler got")
		return nil, internalError()
	}
	returned := false
	defer func() {
		if !returned {
			passing.Fail() // the function ask panicked: if the handler recovers, it must not go on as if it had its answers
		}
	}()
	pending, err = within(ctx, passing, req, ask)
	returned = true
	return pending, err
}

// within does the work of Within, in a call that came through the middleware. If it fails
// for a reason that is in the log, the call fails, whatever the handler returns.
func within(ctx context.Context, passing *passage.Call, req mcp.Request, ask func(*Asker) error) (*Pending, error) {
	by, _ := passing.By.(*gosdk.Protection)
	_, state, answers := inputOf(req)
	if passing.Failed() { // the log says why
		return nil, internalError()
	}
	asker, sameRequest := passing.Within(req, state, answers, func() any { return newAsker(passing, by, req) })
	a := asker.(*Asker)
	if !sameRequest {
		a.log(ctx, "elicit: Within got another request than before: pass the request that the handler got; "+
			"a tool that calls other tools must not pass its context to them")
		passing.Fail()
		return nil, internalError()
	}
	if by != nil && lacksWording(by.Boundary()) {
		a.log(ctx, "elicit: "+noWording)
		passing.Fail()
		return nil, internalError()
	}
	if !a.busy.CompareAndSwap(false, true) {
		a.log(ctx, "elicit: Within is called in two goroutines at once, or inside itself: ask one question after the other; "+
			"or inner middleware runs the handler twice: with Within, run it once")
		passing.Fail()
		return nil, internalError()
	}
	defer a.busy.Store(false)
	a.parts++
	a.part, a.over = a.parts, false
	defer func() { a.part, a.over = 0, !a.own }()
	if a.pended || passing.Owes() {
		a.recordMistake("Within was called after it returned a Pending, or inner middleware ran the handler twice: " +
			"return the result of the Pending at once; with Within, run the handler once")
		a.log(ctx, "elicit: "+a.mistake)
		passing.Fail()
		return nil, internalError()
	}
	pending, err := a.run(ctx, func() error { return ask(a) })
	if pending != nil {
		a.pended = true
		// A handler that was registered with the SDK itself must return the Pending. For a
		// handler of elicit, elicit sends the questions, whatever the handler returns.
		if !a.own {
			passing.Owe(pending.questions)
			pending.passing = passing
		}
	}
	if !a.own {
		a.settle(pending, err)
	}
	return pending, err
}

// settle is called when Within returns, in a handler that was not registered with
// elicit. It records what that handler must return.
func (a *Asker) settle(pending *Pending, err error) {
	if a.asks {
		a.passing.Wait()
	}
	switch {
	case a.mistake != "":
		a.passing.Fail()
	case a.misfit != nil:
		a.passing.Lack("an answer did not fit its question")
	case a.asks && pending == nil:
		a.passing.Lack("the questions could not be sent")
	case err != nil:
		if key, ok := a.unreadRefusal(); ok {
			a.passing.Lack(unread(key))
		}
	}
}

// Pending has the questions that a call sends in place of its result. [Within] returns
// it.
type Pending struct {
	questions mcp.InputRequestMap
	state     string
	passing   *passage.Call // notified when the handler calls ToolResult, PromptResult or ResourceResult; nil in a handler of elicit
}

// take is called by ToolResult, PromptResult and ResourceResult. It returns false if p is nil,
// because then there is no result.
func (p *Pending) take() bool {
	if p != nil && p.passing != nil {
		p.passing.Take()
	}
	return p != nil
}

// ToolResult returns the questions as the result of a tool, or nil if p is nil. Return it
// from the handler of a tool.
func (p *Pending) ToolResult() *mcp.CallToolResult {
	if !p.take() {
		return nil
	}
	return &mcp.CallToolResult{InputRequests: p.questions, RequestState: p.state}
}

// PromptResult returns the questions as the result of a prompt, or nil if p is nil.
// Return it from the handler of a prompt.
func (p *Pending) PromptResult() *mcp.GetPromptResult {
	if !p.take() {
		return nil
	}
	return &mcp.GetPromptResult{InputRequests: p.questions, RequestState: p.state}
}

// ResourceResult returns the questions as the result of a resource, or nil if p is nil.
// Return it from the handler of a resource.
func (p *Pending) ResourceResult() *mcp.ReadResourceResult {
	if !p.take() {
		return nil
	}
	// For older clients the SDK requires Contents even in a result with questions.
	return &mcp.ReadResourceResult{InputRequests: p.questions, RequestState: p.state, Contents: []*mcp.ResourceContents{}}
}
