package gosdk

import (
	"context"
	"encoding/binary"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// principal returns the name of the caller, or "" if the caller has no name. It returns
// an error if it cannot tell who is calling.
func (p *Protection) principal(ctx context.Context, c *caller) (principal string, err error) {
	if p.options.Principal == nil {
		principal, err = c.tokenUser(ctx)
	} else if principal, err = p.options.Principal(ctx, c.request); err == nil && principal == "" && !p.options.AllowAnonymous {
		err = errNoName
	}
	if err == nil {
		err = p.checkOwner(ctx, c, principal)
	}
	if err != nil {
		return "", err
	}
	return principal, nil
}

// checkOwner returns an error if the caller's name, from Options.Principal, is not the name
// of the session's owner, from HandlerOptions.Principal. Different names may mean that
// HandlerOptions.Principal gives one name to two users. These users share their sessions,
// so one could answer the other's questions.
func (p *Protection) checkOwner(ctx context.Context, c *caller, principal string) error {
	mark, ok := c.markIn(ctx)
	switch {
	case !ok || !mark.named || !mark.onSession || mark.owner == principal:
		return nil
	case mark.owner == "":
		return errNobodys
	case p.options.Principal != nil:
		return errOtherName
	}
	return nil // the names differ because Options.Principal is not set, which warnHalfNamed has logged
}

// markIn returns the mark that [Handler] put on the request. It ignores the mark if the request has
// no headers. Such a request may come from a handler that connects to another server in memory, and
// passes on the context of its own call. The mark in that context is not for the other server.
func (c *caller) markIn(ctx context.Context) (mark *sessionMark, ok bool) {
	if c.hasHeader {
		mark, ok = ctx.Value(sessionKey{}).(*sessionMark)
	}
	return mark, ok
}

// tokenUser returns the user that the SDK's bearer middleware verified for this request,
// or "" if there is none. It does not use the token in the context, because that token
// is from the request that opened the connection. If only the context has a token, as
// over the older SSE transport, tokenUser fails: it cannot tell who is calling.
func (c *caller) tokenUser(ctx context.Context) (string, error) {
	switch {
	case c.hasToken:
		return c.token.principal()
	case !c.hasHeader && auth.TokenInfoFromContext(ctx) != nil:
		return "", errOpener
	}
	return "", nil
}

// These texts are logged as the cause when the reason of a rejection is
// principal_failed.
const (
	errNoName    = tripseal.PlainError("Options.Principal returned an empty name: set Options.AllowAnonymous if callers without one are expected")
	errNobody    = tripseal.PlainError("nobody is calling, and tripseal.Config.RequireUser is set")
	errNobodys   = tripseal.PlainError("the caller has a name, but HandlerOptions.Principal named nobody when the session was opened: make it name the same users as Options.Principal")
	errOtherName = tripseal.PlainError("Options.Principal gives the caller another name than HandlerOptions.Principal gave the owner of the session: make both return the same name for a user")
	errOpener    = tripseal.PlainError("the access token belongs to the user who opened the connection, and another user may have sent this request: set Options.Principal")
	errNoUserID  = tripseal.PlainError("the token has no user id: set TokenInfo.UserID in the TokenVerifier, or Options.Principal")
	errNoString  = tripseal.PlainError("TokenInfo.Extra holds an iss or client_id that is not a string: set a string, or set Options.Principal")
)

// TokenUser returns the name of an access token's user: the user id with the
// issuer and the client that the token names ("iss" and "client_id" in Extra). A user
// id alone is not unique among issuers. [Protect] binds states to this name unless
// [Options.Principal] is set. Use TokenUser in your own Principal, to name the users of
// some requests as Protect does.
func TokenUser(info *auth.TokenInfo) (string, error) {
	name := nameOf(info)
	return name.principal()
}

// tokenName has the parts of an access token that name its user.
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
	var room [256]byte // a longer name takes one more allocation
	buf := appendPart(room[:0], n.user, true)
	for _, c := range []claim{n.issuer, n.client} {
		text, isText := c.value.(string)
		if c.present && !isText {
			return "", errNoString
		}
		buf = appendPart(buf, text, c.present)
	}
	return string(buf), nil
}

// appendPart appends one part of a name, with its length. An absent part and an empty
// part add different bytes.
func appendPart(buf []byte, text string, present bool) []byte {
	if !present {
		return append(buf, 0)
	}
	buf = append(buf, 1)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}

// warnUsers logs, once for each problem, that states, cursors or sessions are bound to
// nobody, or that states and sessions have different names for one user.
func (p *Protection) warnUsers(ctx context.Context, c *caller) {
	p.warnHalfNamed(ctx, c)
	if p.options.Principal != nil || p.options.AllowAnonymous || c.hasToken || !c.overHTTP(ctx) {
		return
	}
	if !p.anonymous.Swap(true) {
		p.logger().WarnContext(ctx, "gosdk: nobody is authenticated, so states and cursors are bound to no user and anybody who "+
			"gets one can use it: add auth.RequireBearerToken, or set Options.Principal, or Options.AllowAnonymous if that is meant")
	}
}

// overHTTP reports whether a request came over HTTP. The older SSE transport passes no
// headers on, but its context comes from the HTTP request that opened the stream.
func (c *caller) overHTTP(ctx context.Context) bool {
	return c.hasHeader || ctx.Value(http.ServerContextKey) != nil
}

// warnHalfNamed logs an error if a user has one name in states and cursors, and another name in the
// sessions of older clients. It logs each such error only once.
func (p *Protection) warnHalfNamed(ctx context.Context, c *caller) {
	mark, ofHandler := c.markIn(ctx)
	ofCalls := p.options.Principal != nil
	problem := ""
	switch {
	case !ofHandler && c.onSession && (ofCalls || c.token.issuer.present || c.token.client.present):
		problem = "an older client is not served by gosdk.Handler, so its session is bound to the access token's user id or to nobody, and users with the same UserID " +
			"can answer for each other: serve it with gosdk.Handler"
	case ofHandler && ofCalls && !mark.named:
		problem = "Options.Principal is set and HandlerOptions.Principal is not, so the sessions of older clients are bound to " +
			"the access token's user or to nobody, and users with the same UserID can answer for each other: set HandlerOptions.Principal too"
	case ofHandler && !ofCalls && mark.named:
		problem = "HandlerOptions.Principal is set and Options.Principal is not, so states and cursors are bound to " +
			"the access token's user or to nobody, and users with the same UserID can use each other's: set Options.Principal too"
	}
	if problem == "" {
		return
	}
	if _, said := p.halfNamed.LoadOrStore(problem, nil); !said {
		p.logger().ErrorContext(ctx, "gosdk: "+problem)
	}
}

// principalOf returns a function for a boundary or an issuer of cursors. That function
// returns the name of this caller.
func (p *Protection) principalOf(c *caller) tripseal.Principal {
	return func(ctx context.Context) (string, error) { return p.principal(ctx, c) }
}

// callerOfContext returns the name of whoever sent the call that a context belongs to.
// One function serves all calls, because a function for each call would be one more
// allocation.
func (p *Protection) callerOfContext(ctx context.Context) (string, error) {
	call := passage.From(ctx)
	return p.principal(call.Context, call.Caller.(*caller))
}

// callerIn returns a function that names the sender of a call. The context is that of the call's
// handler. The returned function fails if the call did not come through the middleware of this
// Protection, or if the request is on another session than the call.
func (p *Protection) callerIn(ctx context.Context, req mcp.Request) tripseal.Principal {
	passing := passage.From(ctx)
	if passing == nil || passing.By != any(p) || passing.Session != req.GetSession() {
		return func(context.Context) (string, error) { return "", errNotPassed }
	}
	c := passing.Caller.(*caller)
	p.warnUsers(ctx, c)
	return p.principalOf(c)
}

const errNotPassed = tripseal.PlainError("the call has not come through its server's own middleware, or inner middleware replaced its context or session")
