package gosdk

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// What follows is for packages that build on a protected server, such as elicit.

// Server returns the server.
func (p *Protected) Server() *mcp.Server { return p.server }

// Boundary returns the boundary.
func (p *Protected) Boundary() *mcpseal.Boundary { return p.boundary }

// Logger returns what the author or operator is told with.
func (p *Protected) Logger() *slog.Logger { return p.options.Logger }

// Vouch has the middleware vouch for calls of a tool, a prompt or a resource:
// within them [Protected.Vouches] is true. An empty target means all of the
// method.
func (p *Protected) Vouch(method, target string) {
	p.vouched.mu.Lock()
	defer p.vouched.mu.Unlock()
	next := map[carrier]bool{{method, target}: true}
	if old := p.vouched.carriers.Load(); old != nil {
		maps.Copy(next, *old)
	}
	p.vouched.carriers.Store(&next)
}

// Vouches says whether the state and the answers of the call that ctx belongs to
// have passed this middleware.
func (p *Protected) Vouches(ctx context.Context) bool {
	by, _ := ctx.Value(vouchKey{}).(*Protected)
	return by == p
}

// CheckCapabilities returns the -32021 of the protocol for questions that the
// client of a request has not declared it can answer, or nil.
func (p *Protected) CheckCapabilities(req mcp.Request, questions mcp.InputRequestMap) error {
	var c call
	for _, method := range []string{methodTool, methodPrompt, methodResource} {
		if read, ok := readCall(method, req); ok {
			c = read
		}
	}
	return checkCapabilities(req, c, questions)
}

type vouchKey struct{}

type carrier struct{ method, target string }

// vouchedCalls is which calls are vouched for. It is read for every call.
type vouchedCalls struct {
	mu       sync.Mutex
	carriers atomic.Pointer[map[carrier]bool]
}

// vouch marks the context of a call that is to be vouched for.
func (p *Protected) vouch(ctx context.Context, c *call) context.Context {
	carriers := p.vouched.carriers.Load()
	if carriers == nil || !(*carriers)[carrier{c.method, c.target}] && !(*carriers)[carrier{c.method, ""}] {
		return ctx
	}
	return context.WithValue(ctx, vouchKey{}, p)
}
