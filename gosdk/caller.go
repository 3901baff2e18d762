package gosdk

import (
	"context"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// caller is who sent a request, as it arrived. Handlers and middleware further in
// share the request's memory, and may change it before anything is sealed.
type caller struct {
	request   mcp.Request // for Options.Principal alone; nil where that is nil
	hasHeader bool
	hasToken  bool
	onSession bool // of an older client, over HTTP
	token     tokenName
}

func (p *Protected) callerOf(req mcp.Request) (c caller) {
	extra := req.GetExtra()
	if p.options.Principal != nil {
		c.request = withExtra(req, copyExtra(extra))
	}
	if extra == nil {
		return c
	}
	c.hasHeader = extra.Header != nil
	c.onSession = extra.Header.Get(sessionHeader) != "" && isOlder(req)
	if extra.TokenInfo != nil {
		c.hasToken, c.token = true, nameOf(extra.TokenInfo)
	}
	return c
}

// as returns the principal for a boundary or an issuer of cursors.
func (p *Protected) as(c *caller) mcpseal.Principal {
	return func(ctx context.Context) (string, error) { return p.principal(ctx, c) }
}

// callerOfContext tells who sent the call that a context belongs to. One function
// serves all calls: a principal for each would be an allocation that most do not need.
func (p *Protected) callerOfContext(ctx context.Context) (string, error) {
	call := passage.From(ctx)
	return p.principal(call.Context, call.Caller.(*caller))
}

// callerIn returns who sent the call that a handler's context belongs to.
func (p *Protected) callerIn(ctx context.Context, req mcp.Request) mcpseal.Principal {
	passing := passage.From(ctx)
	if passing == nil || passing.By != any(p) || passing.Session != req.GetSession() {
		return func(context.Context) (string, error) { return "", errNotPassed }
	}
	c := passing.Caller.(*caller)
	p.warnUsers(ctx, c)
	return p.as(c)
}

const errNotPassed = mcpseal.PlainError("the call has not come through its server's own middleware, or a middleware further in replaced its context or session")

// passing is a call on its way to the handler, in one allocation.
type passing struct {
	passage.Call
	caller caller
}

func (p *Protected) begin(call *passing, ctx context.Context, req mcp.Request) {
	call.caller = p.callerOf(req)
	call.Context, call.By, call.Session, call.Caller = ctx, p, req.GetSession(), &call.caller
}

// withExtra returns the request with another Extra. The caller's request is left
// alone.
func withExtra(req mcp.Request, extra *mcp.RequestExtra) mcp.Request {
	switch r := req.(type) {
	case *mcp.CallToolRequest:
		return setExtra(*r, extra)
	case *mcp.GetPromptRequest:
		return setExtra(*r, extra)
	case *mcp.ReadResourceRequest:
		return setExtra(*r, extra)
	case *mcp.ListToolsRequest:
		return setExtra(*r, extra)
	case *mcp.ListPromptsRequest:
		return setExtra(*r, extra)
	case *mcp.ListResourcesRequest:
		return setExtra(*r, extra)
	case *mcp.ListResourceTemplatesRequest:
		return setExtra(*r, extra)
	}
	return req
}

func setExtra[P mcp.Params](r mcp.ServerRequest[P], extra *mcp.RequestExtra) mcp.Request {
	r.Extra = extra
	return &r
}

func copyExtra(extra *mcp.RequestExtra) *mcp.RequestExtra {
	if extra == nil {
		return nil
	}
	copied := *extra
	copied.Header = extra.Header.Clone()
	if extra.TokenInfo != nil {
		copied.TokenInfo = &auth.TokenInfo{
			Scopes: slices.Clone(extra.TokenInfo.Scopes), Expiration: extra.TokenInfo.Expiration,
			UserID: extra.TokenInfo.UserID, Extra: copyClaims(extra.TokenInfo.Extra),
		}
	}
	return &copied
}

// copyClaims copies what JSON makes. A verifier's own types are shared.
func copyClaims(claims map[string]any) map[string]any {
	claims = maps.Clone(claims)
	for name, value := range claims {
		claims[name] = copyClaim(value)
	}
	return claims
}

func copyClaim(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyClaims(v)
	case []any:
		v = slices.Clone(v)
		for i := range v {
			v[i] = copyClaim(v[i])
		}
		return v
	case []string:
		return slices.Clone(v)
	}
	return value
}
