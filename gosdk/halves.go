package gosdk

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The middleware has two halves, of one type, which an author may install swapped, or
// on two servers. Either must not go unnoticed.

const swapped = "the two halves of the middleware are swapped, so nothing is sealed: install them as Middleware returns them, receiving and sending"

// isQuestion reports whether only servers send this method.
func isQuestion(method string) bool {
	switch method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		return true
	}
	return false
}

// pair finds out whether the sending half is on the server of an older client's
// session too, with a ping that it catches. A server that does not know that its
// halves are together neither serves such a client nor asks it anything.
func (p *Protected) pair(ctx context.Context, method string, req mcp.Request) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil || method != "initialize" && !isOlder(req) {
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, pairKey{}, p))
	cancel() // a ping that nobody catches need not arrive
	if errors.Is(session.Ping(ctx, nil), errCaught) {
		p.paired.Store(true)
	}
}

// catches reports whether the sending half has got such a ping.
func (p *Protected) catches(ctx context.Context, method string) bool {
	return method == "ping" && ctx.Value(pairKey{}) == any(p)
}

type pairKey struct{}

var errCaught = errors.New("gosdk: both halves of the middleware are on this server")
