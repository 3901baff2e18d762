package gosdk

import (
	"context"
	"encoding/binary"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// User names the user of a request: see [Options].User.
type User = func(ctx context.Context, extra *mcp.RequestExtra) (name string, err error)

// TokenUsers names the user of the access token that the SDK's bearer middleware verified, as [TokenUser] does. A
// request without such a token has no user. It is what [Protect] uses by default.
func TokenUsers(ctx context.Context, extra *mcp.RequestExtra) (string, error) {
	switch {
	case extra.TokenInfo != nil:
		return TokenUser(extra.TokenInfo)
	case extra.Header == nil && auth.TokenInfoFromContext(ctx) != nil:
		return "", errOpener
	}
	return "", nil
}

// HeaderUsers names users by the headers of their requests, for [Options.User]. For example, it names the holders of
// opaque access tokens, by a keyed digest that does not reveal the token:
//
//	gosdk.HeaderUsers(wire.SecretUsers(key, "bearer", wire.BearerToken))
func HeaderUsers(users wire.Users) User {
	return func(ctx context.Context, extra *mcp.RequestExtra) (string, error) {
		if extra.Header == nil && ctx.Value(http.ServerContextKey) != nil {
			return "", errNoHeaders
		}
		return users(extra.Header)
	}
}

// FirstOf asks each of the functions in turn, until one returns a name or an error. Use it if requests may carry either
// of two kinds of proof. [TokenUsers] and [HeaderUsers] with [wire.SecretUsers] never name two users alike.
func FirstOf(users ...User) User {
	return func(ctx context.Context, extra *mcp.RequestExtra) (string, error) {
		for _, user := range users {
			if name, err := user(ctx, extra); name != "" || err != nil {
				return name, err
			}
		}
		return "", nil
	}
}

// TokenUser returns the name of an access token's user: the user id with the issuer and the client that the token names
// ("iss" and "client_id" in Extra). A user id alone is not unique among issuers.
func TokenUser(info *auth.TokenInfo) (string, error) {
	if info.UserID == "" {
		return "", errNoUserID
	}
	var room [256]byte // a longer name takes one more allocation
	name := appendPart(room[:0], info.UserID, true)
	for _, claim := range []string{"iss", "client_id"} {
		value, present := info.Extra[claim]
		text, isText := value.(string)
		if present && !isText {
			return "", errNoString
		}
		name = appendPart(name, text, present)
	}
	return string(name), nil
}

// appendPart appends one part of a name, with its length. An absent part and an empty part add different bytes.
func appendPart(name []byte, text string, present bool) []byte {
	if !present {
		return append(name, 0)
	}
	name = binary.BigEndian.AppendUint32(append(name, 1), uint32(len(text)))
	return append(name, text...)
}

// user names the user of a request. It returns "" for nobody, or an error if it cannot tell who is calling.
func (p *Protector) user(ctx context.Context, extra *mcp.RequestExtra) (string, error) {
	if extra == nil {
		extra = &noExtra
	}
	if p.options.User == nil {
		user, err := TokenUsers(ctx, extra)
		overHTTP := extra.Header != nil || ctx.Value(http.ServerContextKey) != nil
		if user == "" && err == nil && overHTTP && !p.options.AllowAnonymous && !p.unnamed.Swap(true) {
			p.logger().WarnContext(ctx, "gosdk: nobody is authenticated, so states, cursors and sessions are bound to no "+
				"user and anybody who gets one can use it: add auth.RequireBearerToken, or set Options.User, or "+
				"Options.AllowAnonymous if that is meant")
		}
		return user, err
	}
	user, err := p.options.User(ctx, extra)
	if err == nil && user == "" && !p.options.AllowAnonymous {
		err = errNobody
	}
	return user, err
}

// noExtra is a request with neither headers nor a token, as over standard input and output.
var noExtra mcp.RequestExtra

// userOf returns the principal of a request, which the boundary asks when something is sealed or opened.
func (p *Protector) userOf(req mcp.Request) tripseal.Principal {
	return func(ctx context.Context) (string, error) { return p.user(ctx, req.GetExtra()) }
}

// These texts are logged as the cause when the reason of a rejection is principal_failed.
const (
	errNobody = tripseal.PlainError("Options.User found no user: " +
		"set Options.AllowAnonymous if callers without a name are expected")
	errOpener = tripseal.PlainError("the access token belongs to the user who opened the connection, " +
		"and another user may have sent this request: set Options.User")
	errNoHeaders = tripseal.PlainError("the transport does not pass on the headers of this request, " +
		"so nothing tells who sent it: set another Options.User")
	errNoUserID = tripseal.PlainError("the token has no user id: " +
		"set TokenInfo.UserID in the TokenVerifier, or Options.User")
	errNoString = tripseal.PlainError("TokenInfo.Extra holds an iss or client_id that is not a string: " +
		"set a string, or set Options.User")
)
