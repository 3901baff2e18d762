package gosdk

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// principal tells who is calling.
func (p *Protected) principal(ctx context.Context, req mcp.Request) (string, error) {
	if p.options.Principal != nil {
		principal, err := p.options.Principal(ctx, req)
		if err == nil && principal == "" && !p.options.AllowAnonymous {
			p.Logger().ErrorContext(ctx, "gosdk: the caller has no name", "cause", errNoName.Error())
			err = errNoName
		}
		return principal, err
	}
	info, err := tokenInfo(ctx, req)
	if info == nil && err == nil {
		return "", nil
	}
	principal := ""
	if err == nil {
		principal, err = TokenPrincipal(info)
	}
	if err != nil {
		p.Logger().ErrorContext(ctx, "gosdk: the caller cannot be told from the access token", "cause", err.Error())
	}
	return principal, err
}

// tokenInfo is what the SDK's bearer middleware verified for this request. The
// context does not count: it is that of the connection. Where it alone has a token,
// over the older SSE transport for example, the caller cannot be told.
func tokenInfo(ctx context.Context, req mcp.Request) (*auth.TokenInfo, error) {
	extra := req.GetExtra()
	if extra != nil && (extra.TokenInfo != nil || extra.Header != nil) {
		return extra.TokenInfo, nil
	}
	if auth.TokenInfoFromContext(ctx) != nil {
		return nil, errOpener
	}
	return nil, nil
}

var (
	errNoName   = errors.New("Options.Principal returned an empty name: set Options.AllowAnonymous if callers without one are expected")
	errNobody   = errors.New("nobody is calling, and mcpseal.Config.RequirePrincipal is set")
	errOpener   = errors.New("the access token is that of whoever opened the connection, who need not be who sends this: set Options.Principal")
	errNoUserID = errors.New("the token has no user id: set TokenInfo.UserID in the TokenVerifier, or Options.Principal")
	errNoString = errors.New("TokenInfo.Extra holds an iss or client_id that is not a string: set it to one, or set Options.Principal")
)

// TokenPrincipal is the principal of an access token: the user's id with the
// issuer and the client that the token names ("iss" and "client_id" in Extra),
// since a user id alone is not unique among issuers. It is what [Protect] binds
// states to unless [Options.Principal] is set.
func TokenPrincipal(info *auth.TokenInfo) (string, error) {
	if info.UserID == "" {
		return "", errNoUserID
	}
	buf := appendPart(nil, info.UserID, true)
	for _, name := range []string{"iss", "client_id"} {
		value, present := info.Extra[name]
		text, isText := value.(string)
		if present && !isText {
			return "", errNoString
		}
		buf = appendPart(buf, text, present)
	}
	return string(buf), nil
}

// appendPart frames a part, and tells an absent one from an empty one.
func appendPart(buf []byte, text string, present bool) []byte {
	if !present {
		return append(buf, 0)
	}
	buf = append(buf, 1)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}

// warnAnonymous says once that tokens of an HTTP server are bound to nobody.
func (p *Protected) warnAnonymous(ctx context.Context, req mcp.Request) {
	extra := req.GetExtra()
	if p.options.Principal != nil || p.options.AllowAnonymous || extra == nil || extra.Header == nil || extra.TokenInfo != nil {
		return
	}
	if !p.anonymous.Swap(true) {
		p.Logger().WarnContext(ctx, "gosdk: nobody is authenticated, so states are bound to no user and anybody who "+
			"gets one can use it: add auth.RequireBearerToken, or set Options.Principal, or Options.AllowAnonymous if that is meant")
	}
}

// warnUnbound says once that the sessions of older clients are bound to nobody,
// although their calls have users: whoever has a session's id can answer for its user.
func (p *Protected) warnUnbound(ctx context.Context, req mcp.Request) {
	opener, known := ctx.Value(sessionUserKey{}).(string)
	if !known || opener != "" || p.options.Principal == nil || p.unbound.Load() {
		return
	}
	principal := mcpseal.Principal(func(ctx context.Context) (string, error) { return p.options.Principal(ctx, req) })
	user, err := principal.Identify(ctx)
	if err == nil && user != "" && !p.unbound.Swap(true) {
		p.Logger().ErrorContext(ctx, "gosdk: Options.Principal names a user, but the session is bound to nobody, so that anybody who has its id can "+
			"answer for that user: set HandlerOptions.Principal too")
	}
}
