package mcpgo

import (
	"bytes"
	"context"
	"errors"
	"maps"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// tool is the middleware for calls of tools.
func (i *installation) tool(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := callOfTool(&req)
		c.arguments, c.unknown = i.boundTo(ctx, &req.Params)
		result, err := serve(i, ctx, &c, func(ctx context.Context) (*mcp.CallToolResult, error) {
			c.handOver(&req.Params.MultiRoundTripParams)
			if c.copies {
				own, ok := deepCopy(req.Params.Arguments)
				if c.uncopied = !ok; ok {
					req.Params.Arguments = own
				}
				req.Params.RawArguments = bytes.Clone(req.Params.RawArguments)
			}
			return next(ctx, req)
		})
		if _, rejected := err.(rejectedError); rejected && i.options.RejectedText != "" {
			return mcp.NewToolResultError(i.options.RejectedText), nil
		}
		return result, err
	}
}

// prompt is the middleware for requests for prompts.
func (i *installation) prompt(next server.PromptHandlerFunc) server.PromptHandlerFunc {
	return func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		c := callOfPrompt(&req)
		return serve(i, ctx, &c, func(ctx context.Context) (*mcp.GetPromptResult, error) {
			c.handOver(&req.Params.MultiRoundTripParams)
			if c.copies {
				req.Params.Arguments = maps.Clone(req.Params.Arguments)
			}
			return next(ctx, req)
		})
	}
}

// resource is the middleware for requests for resources. The handlers of resources cannot
// ask questions, so they have no state. If a client sends answers or a state, they are
// checked all the same.
func (i *installation) resource(next server.ResourceHandlerFunc) server.ResourceHandlerFunc {
	return func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if i.outerResources { // outer middleware may call the handler twice, and each call may change the arguments
			if own, ok := deepCopy(req.Params.Arguments); ok {
				req.Params.Arguments = own
			}
		}
		c := callOfResource(&req)
		return serve(i, ctx, &c, func(ctx context.Context) ([]mcp.ResourceContents, error) {
			c.handOver(&req.Params.MultiRoundTripParams)
			return next(ctx, req)
		})
	}
}

// serve serves a call. If the handler panics, the call fails with an internal error, which
// tells the client nothing. The type of the panic's value and the stack are logged.
func serve[R any](i *installation, ctx context.Context, c *call, handler func(context.Context) (R, error)) (result R, err error) {
	returned := false
	defer func() {
		if !returned {
			i.logger().ErrorContext(ctx, "mcpgo: a handler ended its goroutine with runtime.Goexit, so that its call gets no answer", "method", c.method)
		}
	}()
	panicked := tripseal.Guard(func() error {
		if result, err = serveCall(i, ctx, c, handler); err != nil {
			tryError(err)
		}
		return nil
	})
	returned = true
	if panicked != nil {
		part := new(tripseal.PartError)
		errors.As(panicked, &part)
		i.logger().ErrorContext(ctx, "mcpgo: a handler panicked", "method", c.method, "cause", panicked.Error(), "stack", part.Stack())
		var none R
		return none, errInternal
	}
	return result, err
}

// tryError calls those methods of an error that mcp-go calls later. Such a method may panic, for
// example if the error is a typed nil. Here the panic is recovered; later, nothing would recover
// it.
func tryError(err error) {
	_ = err.Error()
	errors.Is(err, context.Canceled)
	errors.Is(err, context.DeadlineExceeded)
	errors.As(err, new(mcp.URLElicitationRequiredError))
	errors.As(err, new(*mcp.URLElicitationRequiredError))
}

// serveCall opens the call's token, runs the handler, and seals the state and the
// questions of its result. For older clients mcp-go calls serveCall again for each round.
func serveCall[R any](i *installation, ctx context.Context, c *call, handler func(context.Context) (R, error)) (result R, err error) {
	var none R
	if other := installed(ctx); server.ServerFromContext(ctx) == nil || other != nil && other != i {
		return none, i.refuse(ctx, c.method, "middleware that was added before Protect must pass on the context that it got, or one that is derived from it")
	}
	if !i.intact(ctx) {
		return none, i.refuse(ctx, c.method, hooksLost)
	}
	kept := c.copyArguments(i.policy.MaxArguments)
	defer kept.Release()
	of := &passage.Call{Context: ctx, Server: server.ServerFromContext(ctx)}
	// A handler may keep its context after the call. Without the next line, this context would keep
	// the arguments in memory.
	defer func() { of.Round = tripseal.Round{} }()
	of.Round, err = i.boundary.Open(of, tripseal.Request{Method: c.method, Target: c.target, Arguments: c.arguments, Principal: i.caller}, c.token)
	if err != nil {
		if c.unknown && c.token != "" {
			i.refuse(ctx, c.method, arrivalUnknown)
		}
		return none, wireError(err)
	}
	if len(c.answers) > 0 && sharesStdio(ctx) { // another client may have answered
		return none, i.refuse(ctx, c.method, stdioShared)
	}
	c.declared = declaredBy(ctx)
	older := !mcp.IsModernProtocol(server.RequestProtocolVersion(ctx))
	if older && c.token != "" && of.Round.First() {
		return none, rejectedError{} // Config.AskAgain is not for a client that has answered already: mcp-go would ask it again and again
	}
	c.older = older && c.declared != (adapter.Capabilities{})
	c.copies = i.outer || c.older
	// If PinsWording returns true, gosdk/elicit wrote the state, on a server of the official
	// SDK. This handler must not get such a state.
	if !adapter.PinsWording(&of.Round) {
		c.state, _ = of.Round.State()
		of.State = c.state
	}
	c.kept = i.keepAnswers(ctx, &of.Round, c)
	if result, err = handler(of); err != nil {
		return none, err
	}
	a, ok := readResult(result)
	switch {
	case !ok:
		return none, i.refuse(ctx, c.method, "a handler returned neither a result nor an error")
	case !a.asks && a.questions:
		return none, i.refuse(ctx, c.method, "a result has questions, but mcp-go would send it as complete: set ResultType to mcp.ResultTypeInputRequired, "+
			"as server.InputRequestBuilder does")
	case !a.asks && a.state != "":
		of.Round.Completed(ctx)
		return withState(result, ""), nil
	case !a.asks:
		return result, nil
	}
	token, err := i.seal(of, c, result, &a)
	if err != nil {
		return none, err
	}
	return withState(result, token), nil
}

// seal seals the state and the questions of a result, and returns the token.
func (i *installation) seal(of *passage.Call, c *call, result any, a *asking) (string, error) {
	if c.task {
		return "", i.refuse(of.Context, c.method, "a tool that runs as a task cannot ask: mcp-go would lose its questions")
	}
	if c.unknown {
		return "", i.refuse(of.Context, c.method, arrivalUnknown)
	}
	if err := checkWritableBeside(result); err != nil {
		return "", i.refuse(of.Context, c.method, "the _meta or the content of a result that asks cannot be written as JSON: "+err.Error())
	}
	questions, err := i.questions(of.Context, c.declared, questionsOf(result))
	if err != nil {
		return "", err
	}
	var state *string
	if a.state != "" {
		state = &a.state
	}
	token, err := i.boundary.Seal(of, &of.Round, state, questions...)
	if err != nil {
		return "", wireError(err)
	}
	if c.uncopied && c.older {
		return "", i.refuse(of.Context, c.method, "the arguments contain themselves, so an older client cannot be asked: the handler has no copy of them for the next round")
	}
	if len(questions) > 0 && sharesStdio(of.Context) { // a second connection may have begun while Seal ran
		return "", i.refuse(of.Context, c.method, stdioShared)
	}
	i.issued.put(digest(token), struct{}{}) // for the function isUnsealed, which runs after the call
	return token, nil
}

const arrivalUnknown = "nothing tells what the client sent, so this call cannot ask, and a token that is bound to arguments is rejected: middleware that was added before Protect must pass on " +
	"the context of the same call while this call runs, and must not change Params.Task"

// wireError returns the error that the client may see when the boundary returned err.
// mcp-go sends the text of this error to the client. The error matches
// [tripseal.ErrRejected] if a token was rejected.
func wireError(err error) error {
	if errors.Is(err, tripseal.ErrRejected) {
		return rejectedError{}
	}
	return errors.New(tripseal.Wire(err).Message)
}

// rejectedError is the error that the client gets if its token is rejected.
type rejectedError struct{}

func (rejectedError) Error() string        { return rejectedText }
func (rejectedError) Is(target error) bool { return target == tripseal.ErrRejected }

var rejectedText = tripseal.Wire(tripseal.ErrRejected).Message
