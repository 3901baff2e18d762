package gosdk

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// Users names the users of a server. It makes a user's name from the user's HTTP requests. Set both
// of its methods in the options, because both return the same name for a user:
//
//	users := gosdk.BearerUsers(key)
//	gosdk.Options{Principal: users.Principal}
//	gosdk.HandlerOptions{Principal: users.HTTPPrincipal}
//
// Make a Users with [BearerUsers], [VerifiedUsers] or [FirstOf]. The methods of the zero
// value always fail.
type Users struct {
	// name returns the name of the user who sent a request with these headers and this verified
	// token. It returns "" if that user has no name. Each kind of Users begins its names with a
	// different byte, so that two kinds never return the same name.
	name func(http.Header, *auth.TokenInfo) (string, error)
}

// Principal names the user of a call. Set it as [Options].Principal. It fails if a call
// over HTTP comes without headers, as with the older SSE transport: anybody may have sent
// that call. Without HTTP, as over stdio, the caller has no name.
func (u Users) Principal(ctx context.Context, req mcp.Request) (string, error) {
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil {
		if ctx.Value(http.ServerContextKey) != nil || auth.TokenInfoFromContext(ctx) != nil {
			return "", errNoHeaders
		}
		if extra == nil {
			extra = new(mcp.RequestExtra)
		}
	}
	return u.of(extra.Header, extra.TokenInfo)
}

// HTTPPrincipal names the user of an HTTP request. Set it as [HandlerOptions].Principal.
func (u Users) HTTPPrincipal(r *http.Request) (string, error) {
	return u.of(r.Header, auth.TokenInfoFromContext(r.Context()))
}

func (u Users) of(header http.Header, info *auth.TokenInfo) (string, error) {
	if u.name == nil {
		return "", errNoKind
	}
	return u.name(header, info)
}

// VerifiedUsers names the user of the access token that the SDK's bearer middleware verified.
// [TokenUser] returns the same name, and [Protect] and [Handler] use it by default. A request
// without such a token has no user. Use VerifiedUsers with [FirstOf].
func VerifiedUsers() Users {
	return Users{func(_ http.Header, info *auth.TokenInfo) (string, error) {
		if info == nil {
			return "", nil
		}
		return TokenUser(info)
	}}
}

// BearerUsers names the holder of an access token, for servers that know a user only by
// the opaque token in the Authorization header. The name is a digest under the key: it
// does not reveal the token, and nobody without the key can guess a token and test the
// guess. A request without the header has no user: [Options].AllowAnonymous says whether
// that is allowed. The header must have the word Bearer and one token of at most 16 KiB:
// any other header is an error, and so are two headers.
//
// BearerUsers does not verify the token: something in front of the server must reject tokens that
// are not valid. Otherwise a client can invent tokens, and is a new user with each token. Such a
// client evades the limits on the sessions of one user and of callers without a name.
//
// A client that refreshes its token becomes another user: its states and cursors are
// rejected (with the reason "user"). A client of an older revision also loses its
// session. If clients refresh their tokens too often, name users by something that does
// not change, such as the subject that introspection of the token returns.
//
// The key must be the same on all replicas, and must not change: otherwise everybody
// would become another user. So do not use a key of the ring, because those keys rotate.
// Make a key with the command "tripseal keys new --print" and read it with
// [tripseal.ParseKey]. A server that uses [tripseal.Ephemeral] can use
// [tripseal.GenerateKey]. BearerUsers panics without a key.
func BearerUsers(key tripseal.Key) Users {
	if key == (tripseal.Key{}) {
		panic("gosdk: BearerUsers needs a key; check the error of tripseal.ParseKey")
	}
	// Derive the new secret from the key's text, because only package tripseal can read
	// the key's bytes.
	secret, err := hkdf.Key(sha256.New, []byte(key.Reveal()), nil, infoBearer, sha256.Size)
	if err != nil {
		panic("gosdk: cannot derive the key of BearerUsers")
	}
	return Users{func(header http.Header, _ *auth.TokenInfo) (string, error) {
		token, err := bearerToken(header)
		if token == "" || err != nil {
			return "", err
		}
		digest := hmac.New(sha256.New, secret)
		digest.Write([]byte(token))
		return bearerPrefix + base64.RawURLEncoding.EncodeToString(digest.Sum(nil)), nil
	}}
}

const (
	infoBearer   = "tripseal/1 bearer user"
	bearerPrefix = "bearer:" // differs from the names of VerifiedUsers, which begin with the byte 1

	maxBearerToken = 16 << 10
)

// FirstOf returns a Users that asks each of the given Users in turn, until one returns a
// name or an error. So in the example below, a verified token without a user id is an
// error: after this error, FirstOf does not ask BearerUsers. Two kinds of Users never
// return the same name. Use FirstOf if requests may carry either of two kinds of proof.
//
//	users := gosdk.FirstOf(gosdk.VerifiedUsers(), gosdk.BearerUsers(key))
//
// FirstOf panics if it is given no Users, or a zero value.
func FirstOf(kinds ...Users) Users {
	if len(kinds) == 0 || slices.ContainsFunc(kinds, func(u Users) bool { return u.name == nil }) {
		panic("gosdk: FirstOf needs Users that BearerUsers, VerifiedUsers or FirstOf returned")
	}
	kinds = slices.Clone(kinds)
	return Users{func(header http.Header, info *auth.TokenInfo) (string, error) {
		for _, kind := range kinds {
			if name, err := kind.name(header, info); name != "" || err != nil {
				return name, err
			}
		}
		return "", nil
	}}
}

// bearerToken returns the token in the Authorization header, or "" if there is no such
// header.
func bearerToken(header http.Header) (string, error) {
	values := header.Values("Authorization")
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", errTwoHeaders
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.TrimLeft(token, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", errNoBearer
	case len(token) > maxBearerToken:
		return "", errLongToken
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errNoBearer
	}
	return token, nil
}

// These texts are logged as the cause when the reason of a rejection is
// principal_failed. None of them repeats the header.
const (
	errNoKind     = tripseal.PlainError("the zero gosdk.Users names nobody: make it with BearerUsers, VerifiedUsers or FirstOf")
	errNoHeaders  = tripseal.PlainError("the transport does not pass on the headers of this request, so nothing tells who sent the request: serve with gosdk.Handler, or set another Options.Principal")
	errTwoHeaders = tripseal.PlainError("the request has more than one Authorization header")
	errNoBearer   = tripseal.PlainError("the Authorization header is not of the form: Bearer TOKEN")
	errLongToken  = tripseal.PlainError("the token in the Authorization header is longer than 16 KiB")
)
