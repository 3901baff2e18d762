package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// receive is the receiving middleware. It passes states, questions and answers to the boundary, and
// the boundary decides what is allowed. If a handler panics, its call fails: the log gets the stack
// and the type of the panic's value, and the client gets only an internal error.
func (p *Protection) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		returned := false
		defer func() {
			if !returned {
				p.logger().ErrorContext(ctx, "gosdk: a handler ended its goroutine with runtime.Goexit, so that its call gets no answer", "method", tripseal.PlainText(method))
			}
		}()
		panicked := tripseal.Guard(func() error {
			if result, err = p.serve(ctx, next, method, req); err != nil {
				_ = err.Error() // if Error panics, on a typed nil for example, Guard recovers; the SDK would not recover
			}
			return nil
		})
		returned = true
		if panicked != nil {
			p.logger().ErrorContext(ctx, "gosdk: a handler panicked", "method", tripseal.PlainText(method),
				"cause", panicked.Error(), "stack", stackOf(panicked))
			return nil, internalError()
		}
		return result, err
	}
}

// stackOf returns the stack of the panic that err reports, or "" if err reports no
// panic.
func stackOf(err error) string {
	part := new(tripseal.PartError)
	errors.As(err, &part)
	return part.Stack()
}

func (p *Protection) serve(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	if isQuestion(method) {
		return nil, p.refuse(ctx, method, swapped)
	}
	if !p.paired.Load() {
		p.pair(ctx, method, req)
	}
	ctx, release := whileOpen(ctx, req)
	defer release()
	if isCarrier(method) {
		return p.serveCarrier(ctx, next, method, req)
	}
	if isList(method) {
		return p.serveList(ctx, next, method, req)
	}
	return p.serveOther(ctx, next, method, req)
}

func (p *Protection) serveCarrier(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	c, ok := readCall(method, req)
	if !ok {
		return nil, p.refuse(ctx, method, "a request of an unknown type was refused")
	}
	if outer := passage.From(ctx); outer != nil && outer.Session == req.GetSession() {
		return nil, p.refuse(ctx, method, "a call came through the middleware twice: Protect is installed twice on one server and must be called once, "+
			"or a handler called its own server with its own context")
	}
	kept := c.keepArguments(p.policy.MaxArguments)
	defer kept.Release()
	result, err := p.serveCall(ctx, next, req, c)
	if err == nil {
		return result, nil
	}
	var rejected *rejectedError
	if method == methodTool && p.options.RejectedText != "" && errors.As(err, &rejected) {
		return rejectedResult(p.options.RejectedText, isOlder(req))
	}
	return nil, bareError(err)
}

// rejectedResult returns the result of a tool that tells the model what to do after a rejection. Newer clients refuse a
// result without a type. The SDK sets the type only of results that come from its own handlers, but it also reads the
// type from JSON.
func rejectedResult(text string, older bool) (mcp.Result, error) {
	result := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	if older {
		return result, nil
	}
	members, err := json.Marshal(result)
	if err != nil {
		return nil, internalError()
	}
	typed := new(mcp.CallToolResult)
	if json.Unmarshal(append([]byte(`{"resultType":"complete",`), members[1:]...), typed) != nil {
		return nil, internalError()
	}
	return typed, nil
}

// openCall holds a call and its round together, so that both take one allocation.
type openCall struct {
	passingCall
	round tripseal.Round
}

// serveCall opens the call's token, runs the handler, and seals the state and the
// questions of its result. For older clients, the method bridge does the same, in as
// many rounds as needed.
func (p *Protection) serveCall(ctx context.Context, next mcp.MethodHandler, req mcp.Request, c call) (mcp.Result, error) {
	if isOlder(req) {
		return p.bridge(ctx, next, req, c)
	}
	o := new(openCall)
	p.begin(&o.passingCall, ctx, req)
	var err error
	if o.round, err = p.open(&o.passingCall, c, c.token); err != nil {
		return nil, err
	}
	inner := req
	if state, answers := p.input(ctx, &o.round, c); c.token != "" || len(c.answers) > 0 {
		inner = o.handOver(&o.round, req, state, answers)
	}
	result, a, err := p.run(&o.passingCall, &o.round, next, inner, c)
	if err != nil {
		return nil, err
	}
	if a.questions != nil {
		return p.sealResult(&o.passingCall, req, c, &o.round, result, a)
	}
	if c.token != "" {
		result = withoutCaching(result)
	}
	return result, nil
}

// input returns the state and the answers that the handler may see. In a first round
// nothing was asked, so answers are dropped, except for tools in Options.Unsolicited.
func (p *Protection) input(ctx context.Context, round *tripseal.Round, c call) (state string, answers mcp.InputResponseMap) {
	accepts := round.Accepts
	if c.token == "" && c.method == methodTool && p.unsolicited[c.target] {
		accepts = func(string, tripseal.Kind) bool { return true }
	}
	state, _ = round.State()
	answers = keep(c.answers, accepts)
	round.Dropped(ctx, len(c.answers)-len(answers))
	return state, answers
}

// run calls the handler. It returns the result, and the questions and state in the
// result. It refuses a result that cannot be read, because such a result could carry a
// state that is not sealed.
func (p *Protection) run(ctx *passingCall, round *tripseal.Round, next mcp.MethodHandler, req mcp.Request, c call) (mcp.Result, asking, error) {
	result, err := next(ctx, c.method, req)
	if misused := p.checkWithin(ctx, c, result, err); misused != nil {
		return nil, asking{}, &ownError{misused}
	}
	if err != nil {
		return nil, asking{}, err
	}
	a, ok := readResult(result)
	if !ok {
		return nil, asking{}, p.refuse(ctx, c.method, "a result that is nil, has a nil in it, or is of an unknown type was refused")
	}
	if a.questions == nil && a.state != "" {
		round.Completed(ctx)
		result = withState(result, "")
	}
	return result, a, nil
}

// checkWithin refuses what a handler returned if the handler got questions or an error
// from elicit.Within, and did not return them. Such a handler may have acted although the
// user was not asked.
func (p *Protection) checkWithin(ctx *passingCall, c call, result mcp.Result, err error) error {
	failure := err
	if r, ok := result.(*mcp.CallToolResult); ok && r != nil && err == nil {
		failure = r.GetError() // the SDK turns an error of a typed tool into a result
	}
	if ctx.Failed() {
		return internalError() // elicit has logged why
	}
	if isPending(ctx, failure) {
		return p.refuse(ctx, c.method, "the handler returned the error of an answer that is not there yet: "+
			"return this error from the function that is passed to elicit.Within, and from the handler the result of the Pending")
	}
	if why := ctx.Lacks(); failure == nil && why != "" {
		return p.refuse(ctx, c.method, why+", and the handler went on after elicit.Within failed: return the error of elicit.Within")
	}
	if !ctx.Owes() {
		return nil
	}
	if err != nil {
		// The SDK has not sent the questions yet, so this error is the handler's own, not
		// the SDK's error about an answer that does not fit.
		return err
	}
	if a, _ := readResult(result); a.questions != nil || failure != nil && ctx.Taken() {
		return nil
	}
	return p.refuse(ctx, c.method, "elicit asked a question, but the result of the handler does not ask it: "+
		"a handler that calls elicit.Within must return the result of its Pending at once")
}

// isPending reports whether a handler's error is ErrPending, the error for an answer
// that is not there yet. A handler may also have copied only the text of ErrPending
// into an error of its own. That text counts only while an answer is pending: at any
// other time, the error may quote a text that a client sent.
func isPending(ctx *passingCall, failure error) bool {
	return errors.Is(failure, passage.ErrPending) ||
		failure != nil && ctx.Waits() && strings.Contains(failure.Error(), passage.ErrPending.Error())
}

// sealResult returns a copy of a result with questions. The copy has a token in place
// of the state.
func (p *Protection) sealResult(asked *passingCall, req mcp.Request, c call, round *tripseal.Round, result mcp.Result, a asking) (mcp.Result, error) {
	ctx := asked.Context
	if !a.sent {
		return nil, p.refuse(ctx, c.method, "a result asks, but the SDK would send it as complete: questions must come from the handler, "+
			"not from inner middleware")
	}
	var room [4]tripseal.Question // more than four questions take an allocation
	questions, err := p.pinQuestions(&asked.Call, c, a, room[:0])
	if err != nil {
		return nil, err
	}
	if err := checkCapabilities(req, c, a.questions); err != nil {
		return nil, err
	}
	if meta := result.GetMeta(); len(meta) > 0 {
		if err := p.checkWritable(ctx, c.method, meta); err != nil {
			return nil, err
		}
	}
	token, err := p.seal(asked, round, a.state, questions)
	if err != nil {
		return nil, err
	}
	return withState(withoutCaching(result), token), nil
}

func (p *Protection) open(of *passingCall, c call, token string) (tripseal.Round, error) {
	round, err := p.boundary.Open(of, tripseal.Request{
		Method:    c.method,
		Target:    c.target,
		Arguments: c.arguments,
		Principal: p.caller,
	}, token)
	if err != nil {
		return tripseal.Round{}, wireError(err)
	}
	return round, nil
}

func (p *Protection) seal(of *passingCall, round *tripseal.Round, text string, questions []tripseal.Question) (string, error) {
	p.warnUsers(of, &of.caller)
	var state *string
	if text != "" {
		state = &text
	}
	token, err := p.boundary.Seal(of, round, state, questions...)
	if err != nil {
		return "", wireError(err)
	}
	return token, nil
}

// refuse logs the reason for the operator, and returns an internal error that tells the
// client nothing.
func (p *Protection) refuse(ctx context.Context, method, reason string) error {
	p.logger().ErrorContext(ctx, "gosdk: "+reason, "method", method)
	return internalError()
}

// wireError returns the error that the client gets for an error of the boundary.
func wireError(err error) error {
	wire := tripseal.Wire(err)
	seen := &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
	if errors.Is(err, tripseal.ErrRejected) {
		return &rejectedError{seen}
	}
	return seen
}

// rejectedError is the error that the client gets for a rejected token. It has a type
// of its own, so that serveCarrier can replace it with Options.RejectedText.
type rejectedError struct{ seen *jsonrpc.Error }

func (e *rejectedError) Error() string { return e.seen.Error() }
func (e *rejectedError) Unwrap() error { return e.seen }

func internalError() error { return wireError(nil) }

// bareError returns the error to send to the client. If the SDK wrapped an error of the
// sending middleware, bareError returns that error without the wrapping.
func bareError(err error) error {
	var own *ownError
	if errors.As(err, &own) {
		err = own.Unwrap()
	}
	if rejected, ok := err.(*rejectedError); ok {
		return rejected.seen
	}
	return err
}

// ownError marks an error that is not about an answer of the client. If the sending
// middleware returns an ownError, the SDK wraps it: bareError finds it inside.
type ownError struct{ err error }

func (e *ownError) Error() string { return e.err.Error() }
func (e *ownError) Unwrap() error { return e.err }
