package gosdk

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk/internal/through"
)

// Options changes what [Protect] does. The zero value is the safe choice.
type Options struct {
	// User names the verified user of a request, by its headers and access token. The name must stay the same during a
	// call. "" means nobody, which is an error unless AllowAnonymous is set. Nil means [TokenUsers]: the user of the
	// access token that the SDK's bearer middleware verified. See also [HeaderUsers] and [FirstOf].
	//
	// Over HTTP the context comes from the request that opened the session or the connection, even if another user now
	// sends requests on it. The older SSE transport passes on neither headers nor token: there, check that who posts to
	// a session is the user that opened it, and then take the user from the context.
	User User
	// AllowAnonymous says that callers without a name are expected. Whatever is sealed for them works for everybody
	// without a name who holds it. Without it, and without User, the log warns once if nobody is authenticated over
	// HTTP.
	AllowAnonymous bool
	// Unsolicited names the tools that accept answers in a first call, before they have asked anything. Nil means none.
	Unsolicited []string
	// RejectedText is the text of a tool's result that replaces the protocol's error when the token of a tools/call is
	// rejected, such as [StartOver]. Many hosts do not show protocol errors to the model. "" means the error.
	RejectedText string
	// Cursors issues the cursors of paged tools. Nil means native cursors, which live for an hour. Set it to change the
	// lifetime, or to share cursors with another runtime: see package compat/atd.
	Cursors cursor.Issuer
	// Logger gets messages for the server's operator. Nil means slog.Default() at the time of each message.
	Logger *slog.Logger
}

// StartOver is a text for [Options.RejectedText]. It tells a model what to do after a token was rejected.
const StartOver = adapter.StartOver

// Protect protects a server: from then on, what leaves it is sealed, and what comes back is opened before a handler
// runs. The options may be nil. Call Protect once for each server; with several servers, or a server for each request,
// use [NewProtector].
//
// Middleware that was added before Protect sees plaintext, and middleware that is added later sees tokens. Neither may
// change the questions or the arguments of a call: what the client shows, and what the token is bound to, would differ.
//
// A call of an older client waits while its user is asked. It holds its arguments once, and the handler's state. It
// waits for each question for Config.TTL of the boundary, or URLTTL for a link, for at most MaxRounds rounds, and for
// no longer than MaxFlow. What stands in front of the server limits how many calls a client may have open.
func Protect(server *mcp.Server, boundary *tripseal.Boundary, options *Options) *Server {
	return NewProtector(boundary, options).Protect(server)
}

// Protector is a boundary with options, prepared once for any number of servers. Make one with [NewProtector].
type Protector struct {
	boundary    *tripseal.Boundary
	policy      tripseal.Config // the config of the boundary
	options     Options
	lists       cursor.Issuer
	unsolicited map[string]bool
	caller      tripseal.Principal // names the user of the call that a context belongs to
	unnamed     atomic.Bool        // true after the log has warned that nobody is authenticated
}

// NewProtector prepares the protection of servers. It panics if the boundary is nil.
func NewProtector(boundary *tripseal.Boundary, options *Options) *Protector {
	if boundary == nil {
		panic("gosdk: the boundary is nil; check the error of tripseal.New")
	}
	p := &Protector{boundary: boundary, policy: boundary.Config(), unsolicited: make(map[string]bool)}
	if options != nil {
		p.options = *options
	}
	p.caller = func(ctx context.Context) (string, error) { return p.user(ctx, through.Extra(ctx)) }
	if cursors, ok := p.options.Cursors.(*cursor.Cursors); ok && cursors == nil {
		panic("gosdk: Options.Cursors is nil; check the error of cursor.New")
	}
	p.options.Cursors = adapter.ToolCursors(boundary, p.options.Cursors)
	if p.lists = adapter.ListCursors(boundary); p.lists == nil {
		p.logger().Warn("gosdk: list cursors are not sealed, because the boundary has no keys of its own: " +
			"add tripseal.NativeFormat to Config.AlsoOpen")
	}
	for _, tool := range p.options.Unsolicited {
		p.unsolicited[tool] = true
	}
	return p
}

// Protect protects a server, as the function [Protect] does.
func (p *Protector) Protect(server *mcp.Server) *Server {
	s := &Server{protector: p, server: server}
	server.AddReceivingMiddleware(p.receive, s.cutCursors) // in this order
	server.AddSendingMiddleware(p.send)
	return s
}

// Boundary returns the boundary that was passed to [NewProtector].
func (p *Protector) Boundary() *tripseal.Boundary { return p.boundary }

// Server is a protected server. [Protect] makes one, so a function that takes a Server can only be called for a server
// that is protected.
type Server struct {
	protector *Protector
	server    *mcp.Server
	paged     sync.Map // the *PageOptions of paged tools, by their names
}

// Server returns the SDK's server. Use it to register handlers with the SDK's own functions, such as mcp.AddTool.
func (s *Server) Server() *mcp.Server { return s.server }

// logger returns the logger for the server's operator.
func (p *Protector) logger() *slog.Logger { return tripseal.Logger(p.options.Logger) }
