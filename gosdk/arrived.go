package gosdk

import (
	"context"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/parts"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// passingCall is a call on its way to the handler, together with its caller. One allocation
// suffices for both.
type passingCall struct {
	passage.Call
	caller caller
}

func (p *Protection) begin(call *passingCall, ctx context.Context, req mcp.Request) {
	call.caller = p.callerOf(req)
	call.Context, call.By, call.Session, call.Caller = ctx, p, req.GetSession(), &call.caller
}

// handOver begins a round, and returns the request that the handler gets. If package elicit wrote
// the state, handOver leaves the state and the answers out of that request: only elicit gets them,
// with Call.Input.
func (call *passingCall) handOver(round *tripseal.Round, req mcp.Request, state string, answers mcp.InputResponseMap) mcp.Request {
	call.Begin(round)
	if _, elicited := round.Elicit(); !elicited {
		return withInput(req, state, answers)
	}
	inner := withInput(req, "", nil)
	call.Keep(inner, state, answers)
	return inner
}

// caller tells who sent a request. Its fields are copied when the request arrives,
// because handlers and inner middleware may change the request before anything is
// sealed.
type caller struct {
	request   mcp.Request // the request that Options.Principal gets; nil if that option is not set
	hasHeader bool
	hasToken  bool
	onSession bool // true if the request is on an older client's session over HTTP
	token     tokenName
}

func (p *Protection) callerOf(req mcp.Request) (c caller) {
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

// withExtra returns a copy of the request with this Extra in place of its own.
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

// copyClaims returns a copy of an access token's claims. It copies maps and slices
// of the types that JSON decodes to, and a []string. It does not copy values of other
// types, which only a token verifier's own code makes.
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

// keepArguments replaces the call's arguments with a copy, and returns the copy. From then on, the
// call's arguments are valid only until the copy is released. If there are no arguments, or if they
// are longer than the limit and so cannot be digested, keepArguments copies nothing and returns
// nil.
func (c *call) keepArguments(limit int) (kept *parts.Arguments) {
	switch {
	case len(c.arguments) == 0 && len(c.promptArgs) == 0 || len(c.arguments) > limit:
		return nil
	case c.method == methodPrompt:
		kept = parts.CopyStrings(c.promptArgs)
	default:
		kept = parts.CopyArguments(c.arguments)
	}
	c.arguments = kept.Text()
	return kept
}
