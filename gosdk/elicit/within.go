package elicit

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// Within asks inside a handler that is registered with the SDK itself, in whatever
// function the handler calls. The function ask asks as a handler of [AddTool] does. If
// Within returns a *[Pending], return that as the handler's result at once. The handler
// runs again when the answers are there, so do nothing before Within that must not be
// done twice. An error is that of ask, such as a *[RefusedError], or says that the call
// cannot go on.
//
// A handler may call Within several times, one after the other: all its questions are one conversation, and
// their keys must differ: a key that an earlier call of Within asked under is refused. So
// inner middleware must not run such a handler twice. The request is the one that the handler got. The state of
// the result is elicit's: the handler neither reads nor writes it.
//
// It works wherever the call came through the middleware of package gosdk. Anywhere
// else it fails, and the log says why.
func Within(ctx context.Context, req mcp.Request, ask func(*Asker) error) (*Pending, error) {
	passing := passage.From(ctx)
	if passing == nil || !gosdk.Sealed(ctx, req) {
		slog.ErrorContext(ctx, "elicit: Within was called in a call that has not come through the middleware of its server, so its state and "+
			"answers cannot be trusted: call gosdk.Protect on the server, and pass the context and the request that the handler got")
		return nil, internalError()
	}
	by, _ := passing.By.(*gosdk.Protection)
	_, state, answers := inputOf(req)
	asker, part := passing.Within(req, state, answers, func() any { return newAsker(passing, by, req) })
	a := asker.(*Asker)
	if by != nil && lacksWording(by.Boundary()) {
		a.log(ctx, "elicit: "+noWording)
		return nil, internalError()
	}
	if !a.busy.CompareAndSwap(false, true) {
		a.log(ctx, "elicit: Within is called in two goroutines at once, or inside itself: ask one question after the other; "+
			"or inner middleware runs the handler twice: with Within, run it once")
		return nil, internalError()
	}
	defer a.busy.Store(false)
	if passing.Pended() {
		a.wrong("Within was called after it returned a Pending, or inner middleware ran the handler twice: " +
			"return the result of the Pending at once; with Within, run the handler once")
		a.log(ctx, "elicit: "+a.mistake)
		return nil, internalError()
	}
	a.part = part
	defer func() { a.part = 0 }()
	pending, err := a.run(ctx, func() error { return ask(a) })
	if pending != nil {
		passing.Pend()
		pending.passing = passing
	}
	return pending, err
}

// Pending is what a call sends instead of its result, because it asks.
type Pending struct {
	questions mcp.InputRequestMap
	state     string
	passing   *passage.Call // waits for the handler to take the result; nil if it need not, or has
}

// take returns whether there is a result, and notes that the handler has it.
func (p *Pending) take() bool {
	if p != nil && p.passing != nil {
		p.passing.Take()
		p.passing = nil
	}
	return p != nil
}

// ToolResult returns the result of a tool that asks. It is nil for a nil Pending, and so
// are the other two.
func (p *Pending) ToolResult() *mcp.CallToolResult {
	if !p.take() {
		return nil
	}
	return &mcp.CallToolResult{InputRequests: p.questions, RequestState: p.state}
}

// PromptResult returns the result of a prompt that asks.
func (p *Pending) PromptResult() *mcp.GetPromptResult {
	if !p.take() {
		return nil
	}
	return &mcp.GetPromptResult{InputRequests: p.questions, RequestState: p.state}
}

// ResourceResult returns the result of a resource that asks.
func (p *Pending) ResourceResult() *mcp.ReadResourceResult {
	if !p.take() {
		return nil
	}
	// For older clients the SDK wants contents even of a result that asks.
	return &mcp.ReadResourceResult{InputRequests: p.questions, RequestState: p.state, Contents: []*mcp.ResourceContents{}}
}
