package gosdk

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/gosdk/internal/through"
)

// receive is the receiving middleware. It passes states, questions and answers to the boundary, and the boundary
// decides what is allowed. If a handler panics, its call fails: the log gets the stack and the type of the panic's
// value, and the client gets only an internal error.
func (p *Protector) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		panicked := tripseal.Guard(func() error {
			if result, err = p.serve(ctx, next, method, req); err != nil {
				_ = err.Error() // if Error panics, on a typed nil for example, Guard recovers; the SDK would not
			}
			return nil
		})
		if panicked == nil {
			return result, err
		}
		var part *tripseal.PartError
		errors.As(panicked, &part)
		p.logger().ErrorContext(ctx, "gosdk: a handler panicked", "method", tripseal.PlainText(method),
			"cause", panicked.Error(), "stack", part.Stack())
		return nil, sdkError(tripseal.Wire(nil))
	}
}

func (p *Protector) serve(
	ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request,
) (result mcp.Result, err error) {
	switch method {
	case methodTool, methodPrompt, methodResource:
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		return p.serveList(ctx, next, method, req)
	default:
		return p.serveOther(ctx, next, method, req)
	}
	c, ok := readCall(req)
	if !ok {
		return nil, p.refuse(ctx, method, "a request without params or of an unknown type was refused")
	}
	if isOlder(req) {
		result, err = p.serveOlder(ctx, next, req, &c)
	} else {
		result, err = p.serveCall(ctx, next, req, &c)
	}
	if err == nil {
		return result, nil
	}
	var own *ownError
	switch {
	case !errors.As(err, &own):
		return nil, err
	case own.rejected && method == methodTool && p.options.RejectedText != "":
		return rejectedResult(p.options.RejectedText, isOlder(req))
	}
	return nil, own.seen // without what the SDK has wrapped around it
}

// openCall is a call on its way to the handler, in one allocation.
type openCall struct {
	through.Call
	round tripseal.Round
	asks  asking
	room  [2]tripseal.Question // more than two questions take an allocation
}

// serveCall opens the token of a call, runs the handler, and seals the state and the questions of its result. In a
// first round without answers there is nothing to open, so a call that never asks costs next to nothing.
func (p *Protector) serveCall(
	ctx context.Context, next mcp.MethodHandler, req mcp.Request, c *call,
) (mcp.Result, error) {
	o := &openCall{Call: p.begin(ctx, req, c)}
	opened := c.token != "" || len(c.answers) > 0
	inner := req
	if opened {
		if err := p.open(o, &o.round, c, c.token); err != nil {
			return nil, err
		}
		state, answers := p.input(&o.Call, &o.round, c)
		inner = withInput(req, state, answers)
	}
	result, err := next(o, c.method, inner)
	if err != nil {
		return nil, err
	}
	var ok bool
	o.asks, ok = readResult(result)
	switch a := &o.asks; {
	case !ok:
		return nil, p.refuse(ctx, c.method, "a result that is nil or of an unknown type was refused")
	case a.questions == nil:
		return p.complete(ctx, c, result, a), nil
	case !a.sent:
		return nil, p.refuse(ctx, c.method, "a result asks, but the SDK would send it as complete: questions must come "+
			"from the handler, not from inner middleware")
	}
	if !opened {
		if err := p.open(o, &o.round, c, ""); err != nil {
			return nil, err
		}
	}
	questions, err := pin(o.asks.questions, o.room[:0])
	if err != nil {
		return nil, p.refuse(ctx, c.method, err.Error())
	}
	if err := checkDeclared(req.GetSession(), c.meta, o.asks.questions); err != nil {
		return nil, err
	}
	var state *string
	if o.asks.state != "" {
		state = &o.asks.state
	}
	token, err := p.boundary.Seal(o, &o.round, state, questions...)
	if err != nil {
		return nil, clientError(err)
	}
	return withState(uncached(result), token), nil
}

// begin returns the context of a call.
func (p *Protector) begin(ctx context.Context, req mcp.Request, c *call) through.Call {
	return through.Call{
		Context: ctx, Session: req.GetSession(), Extra: req.GetExtra(),
		Arrival: elicit.Arrival{Method: c.method, Target: c.target, Logger: p.options.Logger},
	}
}

// open opens a token, or begins a first round if there is none. The context tells who is calling.
func (p *Protector) open(ctx context.Context, round *tripseal.Round, c *call, token string) (err error) {
	if *round, err = p.boundary.Open(ctx, c.request(p.caller), token); err != nil {
		return clientError(err)
	}
	return nil
}

// input returns the state and the answers that the handler may see. In a first round nothing was asked, so answers are
// dropped, except for tools in Options.Unsolicited. What package elicit wrote, and the answers to it, reach package
// elicit alone.
func (p *Protector) input(ctx *through.Call, round *tripseal.Round, c *call) (string, mcp.InputResponseMap) {
	if state, ok := round.Elicit(); ok {
		ctx.Arrival.State, ctx.Arrival.Answers = state, answersOf(c.answers)
		asked := 0
		for q := range round.Asked {
			if answer, ok := c.answers[q.Key]; ok && q.Kind.Takes(kindOfAnswer(answer)) {
				asked++
			}
		}
		round.Dropped(ctx, len(c.answers)-asked)
		return "", nil
	}
	state, _ := round.State()
	answers := keep(c.answers, round, c.token == "" && c.method == methodTool && p.unsolicited[c.target])
	round.Dropped(ctx, len(c.answers)-len(answers))
	return state, answers
}

// complete returns a result without questions. Its state would never come back, and everybody could read it.
func (p *Protector) complete(ctx context.Context, c *call, result mcp.Result, a *asking) mcp.Result {
	if c.token != "" {
		result = uncached(result)
	}
	if a.state == "" {
		return result
	}
	p.logger().ErrorContext(ctx, "gosdk: a complete result has a state, which was removed: to send a state without "+
		"questions, set an InputRequests that is empty and not nil", "method", c.method)
	return withState(result, "")
}

// clientError returns the error that the client gets for an error of the boundary.
func clientError(err error) error {
	return &ownError{sdkError(tripseal.Wire(err)), errors.Is(err, tripseal.ErrRejected)}
}

// ownError marks an error of this package. The SDK wraps an error of the sending middleware, which must reach the
// client as it is.
type ownError struct {
	seen     error // what the client gets
	rejected bool  // true for a rejected token, so that Options.RejectedText may replace the error
}

func (e *ownError) Error() string { return e.seen.Error() }

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
		return nil, err
	}
	typed := new(mcp.CallToolResult)
	return typed, json.Unmarshal(append([]byte(`{"resultType":"complete",`), members[1:]...), typed)
}
