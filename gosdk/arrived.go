package gosdk

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// passing holds a call on its way to the handler and its caller, so that both take one
// allocation.
type passing struct {
	passage.Call
	caller caller
}

func (p *Protection) begin(call *passing, ctx context.Context, req mcp.Request) {
	call.caller = p.callerOf(req)
	call.Context, call.By, call.Session, call.Caller = ctx, p, req.GetSession(), &call.caller
}

// handOver begins a round, and returns the request as the handler may see it. If elicit
// wrote the state, that request has no state and no answers: only elicit gets them,
// from the Call.
func (call *passing) handOver(round *mcpseal.Round, req mcp.Request, state string, answers mcp.InputResponseMap) mcp.Request {
	call.Begin(round)
	if !passage.Worded(round) {
		return withInput(req, state, answers)
	}
	inner := withInput(req, "", nil)
	call.Keep(inner, state, answers)
	return inner
}

// caller is who sent a request. It is a copy made when the request arrives, because
// handlers and inner middleware may change the request before anything is sealed.
type caller struct {
	request   mcp.Request // what Options.Principal gets; nil if that option is not set
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

// withExtra returns a copy of the request with another Extra.
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

// copyClaims returns a copy of an access token's claims. It copies values of the types
// that JSON decodes to. Values of other types, which only a token verifier's own code
// makes, are not copied.
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

// keptArguments is a copy of a call's arguments, made when they arrive, because handlers
// and inner middleware may change the arguments before anything is sealed.
type keptArguments struct{ text []byte }

var keptPool = sync.Pool{New: func() any { return new(keptArguments) }}

// maxKept is the size of the largest copy whose memory is reused, in bytes.
const maxKept = 64 << 10

// keepArguments replaces the call's arguments with a copy, which is valid until release
// is called. If there are no arguments, or more than most bytes, which is too long to
// be digested, it copies nothing and returns nil.
func (c *call) keepArguments(most int) *keptArguments {
	if len(c.arguments) == 0 && len(c.promptArgs) == 0 || len(c.arguments) > most {
		return nil
	}
	kept := keptPool.Get().(*keptArguments)
	if c.method == methodPrompt {
		kept.text = appendStrings(kept.text[:0], c.promptArgs)
	} else {
		kept.text = append(kept.text[:0], c.arguments...)
	}
	c.arguments = kept.text
	return kept
}

func (k *keptArguments) release() {
	if k == nil || cap(k.text) > maxKept {
		return
	}
	clear(k.text)
	keptPool.Put(k)
}

// appendStrings appends a prompt's arguments as a JSON object, in any order: the digest
// does not depend on the order.
func appendStrings(dst []byte, members map[string]string) []byte {
	dst = append(dst, '{')
	for name, value := range members {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = appendString(append(appendString(dst, name), ':'), value)
	}
	return append(dst, '}')
}

// appendString appends a JSON string. Bytes that are not UTF-8 stay as they are, so
// that the digest refuses the text.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
