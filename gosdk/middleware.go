package gosdk

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// receive is the receiving middleware. It moves fields between the SDK and the
// boundary; what is allowed, the boundary decides.
func (p *Protected) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodTool && method != methodPrompt && method != methodResource {
			return next(ctx, method, req)
		}
		c, ok := readCall(method, req)
		if !ok {
			p.options.Logger.ErrorContext(ctx, "gosdk: a request of an unknown type was refused", "method", method)
			return nil, internalError()
		}
		ctx, ok = p.install.check(ctx)
		if !ok {
			p.options.Logger.ErrorContext(ctx, "gosdk: the middleware is installed twice on one server: "+
				"call Protect once, or install Middleware once; every call is refused until then")
			return nil, internalError()
		}
		result, err := p.serve(ctx, next, req, c)
		if err != nil {
			return result, bare(err)
		}
		p.install.passed()
		return result, nil
	}
}

// serve runs the handler on a request whose token was checked, and seals what
// it asks.
func (p *Protected) serve(ctx context.Context, next mcp.MethodHandler, req mcp.Request, c call) (mcp.Result, error) {
	if c.token == "" {
		inner := req
		switch {
		case len(c.answers) > 0 && !(c.method == methodTool && p.unsolicited[c.target]):
			inner = withInput(req, "", nil) // nobody asked
		case isOlder(req):
			inner = withInput(req, "", c.answers) // a handler may change its params, and bridge needs them
		}
		result, err := next(ctx, c.method, inner)
		if err != nil {
			return result, err
		}
		a := readResult(result)
		if a.questions == nil && a.state == "" {
			return result, nil
		}
		round, err := p.boundary.Open(ctx, p.request(req, c), "")
		if err != nil {
			return nil, wireError(err)
		}
		return p.finish(ctx, next, req, c, &round, result, a)
	}

	round, err := p.boundary.Open(ctx, p.request(req, c), c.token)
	if err != nil {
		return nil, wireError(err)
	}
	state, _ := round.State()
	result, err := next(ctx, c.method, withInput(req, state, solicited(&round, c.answers)))
	if err != nil {
		return result, err
	}
	return p.finish(ctx, next, req, c, &round, uncached(result), readResult(result))
}

// finish makes a result fit for the wire.
func (p *Protected) finish(ctx context.Context, next mcp.MethodHandler, req mcp.Request, c call, round *mcpseal.Round, result mcp.Result, a asking) (mcp.Result, error) {
	if a.questions != nil && !a.sent {
		var err error
		if result, a, err = p.bridge(ctx, next, req, c, round, a); err != nil {
			return nil, err
		}
	}
	if a.questions == nil {
		if a.state != "" {
			p.options.Logger.ErrorContext(ctx, "gosdk: a complete result has a RequestState, which was removed: "+
				"a handler that asks without questions sets InputRequests to an empty map", "method", c.method)
			result = withState(result, "")
		}
		return result, nil
	}
	if err := checkCapabilities(c, a.questions); err != nil {
		return nil, err
	}
	token, err := p.seal(ctx, req, round, a)
	if err != nil {
		return nil, err
	}
	return withState(uncached(result), token), nil
}

// seal returns the token for what a result asks.
func (p *Protected) seal(ctx context.Context, req mcp.Request, round *mcpseal.Round, a asking) (string, error) {
	p.warnAnonymous(ctx, req)
	questions, err := pins(a.questions)
	if err != nil {
		p.options.Logger.ErrorContext(ctx, "gosdk: state not sealed", "cause", err.Error())
		return "", internalError()
	}
	var state *string
	if a.state != "" {
		state = &a.state
	}
	token, err := p.boundary.Seal(ctx, round, state, questions...)
	if err != nil {
		return "", wireError(err)
	}
	return token, nil
}

func (p *Protected) request(req mcp.Request, c call) mcpseal.Request {
	return mcpseal.Request{
		Method:    c.method,
		Target:    c.target,
		Arguments: c.argumentsText(),
		Principal: func(ctx context.Context) (string, error) { return p.principal(ctx, req) },
	}
}

// wireError is the client's view of an error of the boundary.
func wireError(err error) error {
	wire := mcpseal.Wire(err)
	return &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
}

func internalError() error { return wireError(nil) }

// bare returns an error about capabilities as it must go out: unwrapped.
func bare(err error) error {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) && rpc.Code == mcp.CodeMissingRequiredClientCapabilities {
		return rpc
	}
	return err
}
