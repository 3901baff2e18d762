package gosdk

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// principal tells who is calling.
func (p *Protected) principal(ctx context.Context, c *caller) (string, error) {
	if p.options.Principal != nil {
		principal, err := p.options.Principal(ctx, c.request)
		if err == nil && principal == "" && !p.options.AllowAnonymous {
			p.Logger().ErrorContext(ctx, "gosdk: the caller has no name", "cause", errNoName.Error())
			err = errNoName
		}
		return principal, err
	}
	principal, err := c.tokenPrincipal(ctx)
	if err != nil {
		p.Logger().ErrorContext(ctx, "gosdk: the caller cannot be told from the access token", "cause", err.Error())
	}
	return principal, err
}

// tokenPrincipal is whom the SDK's bearer middleware verified for this request, ""
// for nobody. The context does not count: it is that of the connection. Where it
// alone has a token, over the older SSE transport for example, the caller cannot be
// told.
func (c *caller) tokenPrincipal(ctx context.Context) (string, error) {
	switch {
	case c.hasToken:
		return c.token.principal()
	case !c.hasHeader && auth.TokenInfoFromContext(ctx) != nil:
		return "", errOpener
	}
	return "", nil
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
	name := nameOf(info)
	return name.principal()
}

// tokenName is what names the user of an access token.
type tokenName struct {
	user   string
	issuer claim
	client claim
}

type claim struct {
	value   any
	present bool
}

func nameOf(info *auth.TokenInfo) (n tokenName) {
	n.user = info.UserID
	n.issuer.value, n.issuer.present = info.Extra["iss"]
	n.client.value, n.client.present = info.Extra["client_id"]
	return n
}

func (n *tokenName) principal() (string, error) {
	if n.user == "" {
		return "", errNoUserID
	}
	buf := appendPart(nil, n.user, true)
	for _, c := range []claim{n.issuer, n.client} {
		text, isText := c.value.(string)
		if c.present && !isText {
			return "", errNoString
		}
		buf = appendPart(buf, text, c.present)
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

// warnUsers says once what is wrong with the users that states and cursors are bound
// to.
func (p *Protected) warnUsers(ctx context.Context, c *caller) {
	p.warnHalfNamed(ctx)
	if p.options.Principal != nil || p.options.AllowAnonymous || !c.hasHeader || c.hasToken {
		return
	}
	if !p.anonymous.Swap(true) {
		p.Logger().WarnContext(ctx, "gosdk: nobody is authenticated, so states are bound to no user and anybody who "+
			"gets one can use it: add auth.RequireBearerToken, or set Options.Principal, or Options.AllowAnonymous if that is meant")
	}
}

// warnHalfNamed says once that [Handler] and [Protect] were not both told how to name
// users: sessions are then bound to one name, states and cursors to another.
func (p *Protected) warnHalfNamed(ctx context.Context) {
	ofSessions, known := ctx.Value(namesUsersKey{}).(bool)
	ofCalls := p.options.Principal != nil
	if !known || ofSessions == ofCalls || p.halfNamed.Swap(true) {
		return
	}
	if ofCalls {
		p.Logger().ErrorContext(ctx, "gosdk: Options.Principal is set and HandlerOptions.Principal is not, so the sessions of older clients are bound to "+
			"the access token's user or to nobody, and whoever shares that can answer for another user: set HandlerOptions.Principal too")
		return
	}
	p.Logger().ErrorContext(ctx, "gosdk: HandlerOptions.Principal is set and Options.Principal is not, so states and cursors are bound to "+
		"the access token's user or to nobody, and whoever shares that can use them: set Options.Principal too")
}
