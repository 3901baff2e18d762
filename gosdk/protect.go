package gosdk

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk/internal/parts"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// Options changes what [Protect] does. The zero value is the safe choice. Set Principal
// if something other than the SDK verifies your users.
type Options struct {
	// Principal tells who is calling. Set it if something other than the SDK's bearer
	// middleware verifies users. An empty name is an error, unless AllowAnonymous is
	// set. Nil means that the name consists of the access token's user id, issuer and
	// client id.
	//
	// Read the user from req.GetExtra(). It has copies of this request's headers and
	// access token, made when the request arrived: changes by a handler or inner
	// middleware have no effect on them. The params are not copied, so do not read the
	// user from them. The context comes from the request that opened the session or the
	// connection, even if another user now sends requests on it.
	//
	// Principal must return the same name during a whole call. If a call arrives without a
	// token, Principal is not called at once. It is called after the handler has asked
	// questions, and the new token is bound to the name that Principal returns then.
	//
	// Over the older SSE transport GetExtra has neither headers nor token. In front of
	// that transport, check that whoever posts to a session is the user that opened it.
	// With that check in place, set a Principal that takes the user from the context.
	// Without Principal, a connection that was opened with an access token cannot use
	// states and cursors. On any other connection, states and cursors are bound to
	// nobody.
	//
	// With [Handler], set HandlerOptions.Principal too: it binds the sessions of older
	// clients. If only one of the two is set, an error is logged. If they give a user
	// different names, older clients get no questions and cannot use cursors.
	Principal func(ctx context.Context, req mcp.Request) (string, error)
	// AllowAnonymous says that callers without a name are expected: their tokens are
	// bound to nobody, and anyone who gets one can use it. False means that an empty
	// name from Principal is an error, and that the log warns once when an HTTP server
	// authenticates nobody. Set it if callers do not sign in.
	AllowAnonymous bool
	// Unsolicited is a list of tools. If a call of such a tool has no state, the tool still gets
	// the client's answers, although no question was asked. If the call has a state, its answers
	// are checked as usual. Nil means no tools. List a tool here if clients send its answers in the
	// first call.
	Unsolicited []string
	// RejectedText is a text such as [StartOver]. A tool call whose token is rejected gets a tool
	// result with this text, marked as an error. Set it if the model must learn of rejections: many
	// hosts do not show protocol errors to the model. The text is the same for every reason of a
	// rejection. "" means that the call gets the protocol's error, as the official conformance
	// suite requires.
	RejectedText string
	// Cursors issues the cursors of paged tools. Nil means native cursors, sealed with
	// the boundary's keys; such a cursor lives for an hour. Set it to change the
	// lifetime, or to share cursors with another runtime: see package compat/atd.
	Cursors cursor.Issuer
	// PlainLists leaves the cursors of tools/list, prompts/list, resources/list
	// and resources/templates/list as the SDK makes them: readable, and accepted
	// from any client unchecked. Set it only if something else must read these cursors.
	// False means that they are sealed.
	PlainLists bool
	// Logger gets messages for the server's author and operator. Nil means
	// slog.Default() at the time of each message. Rejections of tokens and cursors go
	// to the boundary's logger.
	Logger *slog.Logger
}

// StartOver is a text for [Options.RejectedText]. It tells a model what to do after a
// token was rejected. Use it unless the model needs other words.
const StartOver = adapter.StartOver

// Protection is a boundary with options, prepared once for any number of servers. Make a
// Protection with [Prepare].
type Protection struct {
	boundary *tripseal.Boundary
	policy   tripseal.Config // the config of the boundary
	options  Options
	caller   tripseal.Principal // returns the user of the call that a context belongs to
	lists    cursor.Issuer      // nil if list cursors are not sealed

	receiving, sending mcp.Middleware

	unsolicited map[string]bool // true for tools in Options.Unsolicited
	anonymous   atomic.Bool     // true after the log has warned that nobody is authenticated
	halfNamed   sync.Map        // the errors that warnHalfNamed has logged, by their text
	paired      atomic.Bool     // true if the receiving and the sending middleware are on one server
	unlisted    parts.Unlisted
}

// Prepare returns a Protection, which [Protection.Install] puts on servers. Use both in
// place of [Protect] if a program has several servers, or makes a server for each
// request. Then the common work is done once, and each one-time warning is logged once
// for all servers.
func Prepare(boundary *tripseal.Boundary, options *Options) *Protection {
	p := newProtection(boundary, options)
	p.paired.Store(true) // Install adds the receiving and the sending middleware together
	return p
}

// Install protects a server, as [Protect] does. It panics if the server is
// protected already. Call Install once for each server.
func (p *Protection) Install(server *mcp.Server) *Protected {
	if !p.paired.Load() || server == nil {
		panic("gosdk: Install needs a server, and a Protection that Prepare returned")
	}
	if !installed.Add(server, struct{}{}) {
		panic("gosdk: the server is protected already: call Protect or Install once for each server")
	}
	protected := &Protected{protection: p, server: server}
	server.AddReceivingMiddleware(p.receiving, protected.cutCursors) // in this order
	server.AddSendingMiddleware(p.sending)
	return protected
}

// Boundary returns the boundary that was passed to [Prepare]. Use it to open and seal in
// a handler.
func (p *Protection) Boundary() *tripseal.Boundary { return p.boundary }

// Protected is a server with a boundary. Only [Protect] and [Protection.Install] make
// one, so a function that takes a Protected can only be called for a protected server.
// Pass a Protected to [AddPagedTool] and to the functions of package elicit.
type Protected struct {
	protection *Protection
	server     *mcp.Server
	paged      pagedTools
}

// Server returns the protected server. Use it to register handlers with the SDK's own
// functions, such as mcp.AddTool.
func (p *Protected) Server() *mcp.Server { return p.server }

// Boundary returns the boundary that protects the server. Use it to read the settings of
// the boundary.
func (p *Protected) Boundary() *tripseal.Boundary { return p.protection.boundary }

// installed has the servers that Install has protected.
var installed parts.Table[mcp.Server, struct{}]

// Protect installs the middleware on a server. Call it once for each server. Middleware
// that is added later runs first: so before you call Protect, add the middleware that
// must see plaintext, and after Protect, add the middleware that must see tokens.
//
// Middleware that is added after Protect gets questions that are sealed already, and must not
// change them: nothing compares what the client shows with what was sealed, so the answer to a
// reworded question would count as an answer to the original one. For the same reason, middleware
// on the sending side must not change questions that go to older clients.
func Protect(server *mcp.Server, boundary *tripseal.Boundary, options *Options) *Protected {
	return Prepare(boundary, options).Install(server)
}

// Middleware returns the receiving and the sending middleware without installing them,
// for a server that decides itself in which order its middleware runs. Install both on
// the same server. A server with only the sending middleware is not protected: it
// refuses to ask older clients, but newer clients get its states in plaintext.
func Middleware(boundary *tripseal.Boundary, options *Options) (receiving, sending mcp.Middleware) {
	p := newProtection(boundary, options)
	return p.receiving, p.sending
}

func newProtection(boundary *tripseal.Boundary, options *Options) *Protection {
	if boundary == nil {
		panic("gosdk: the boundary is nil; check the error of tripseal.New")
	}
	p := &Protection{boundary: boundary, policy: boundary.Config(), unsolicited: make(map[string]bool)}
	if options != nil {
		p.options = *options
	}
	p.caller, p.receiving, p.sending = p.callerOfContext, p.receive, p.send
	if cursors, ok := p.options.Cursors.(*cursor.Cursors); ok && cursors == nil {
		panic("gosdk: Options.Cursors is nil; check the error of cursor.New")
	}
	p.options.Cursors = adapter.ToolCursors(boundary, p.options.Cursors)
	if p.options.PlainLists {
		p.logger().Warn("gosdk: list cursors are not sealed, because Options.PlainLists is set")
	} else {
		p.lists = adapter.ListCursors(boundary)
		if p.lists == nil {
			p.logger().Warn("gosdk: list cursors are not sealed, because the boundary has no keys of its own: " +
				"add tripseal.NativeFormat to Config.AlsoOpen")
		}
	}
	p.unlisted.Expect("tripseal.Config.ReplayTools", p.policy.ReplayTools)
	p.unlisted.Expect("gosdk.Options.Unsolicited", p.options.Unsolicited)
	for _, tool := range p.options.Unsolicited {
		p.unsolicited[tool] = true
		p.logger().Warn("gosdk: this tool gets answers to questions that nobody asked, on its first call", "tool", tool)
	}
	return p
}

// logger returns the logger for the server's author and operator.
func (p *Protection) logger() *slog.Logger { return tripseal.Logger(p.options.Logger) }

func init() {
	passage.LoggerOf = func(protection any) *slog.Logger { return protection.(*Protection).logger() }
	passage.ProtectionOf = func(protected any) any { return protected.(*Protected).protection }
	passage.CheckCapabilities = func(req mcp.Request, questions mcp.InputRequestMap) error {
		c, _ := anyCall(req)
		return checkCapabilities(req, c, questions)
	}
}

// The receiving and the sending middleware have the same type, so an author may swap
// them by mistake. An author may also install them on two different servers. The code
// below detects both mistakes.

const swapped = "the two halves of the middleware are swapped, so nothing is sealed: install them as Middleware returns them, receiving and sending"

// isQuestion reports whether a method asks the client a question. Only servers send such
// a method.
func isQuestion(method string) bool {
	switch method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		return true
	}
	return false
}

// pair sets p.paired if the sending middleware is on this server too. To find out, it
// sends a ping on the session of an older client: the sending middleware catches that
// ping. Until p.paired is set, the server neither serves older clients nor asks them
// anything.
func (p *Protection) pair(ctx context.Context, method string, req mcp.Request) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || session == nil || method != "initialize" && !isOlder(req) {
		return
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, pairKey{}, p))
	cancel() // makes the ping fail at once if the sending middleware does not catch it
	if errors.Is(session.Ping(ctx, nil), errCaught) {
		p.paired.Store(true)
	}
}

// catches reports whether a message is the ping that p.pair sends. The sending middleware
// does not pass this ping on to the client.
func (p *Protection) catches(ctx context.Context, method string) bool {
	return method == "ping" && ctx.Value(pairKey{}) == any(p)
}

type pairKey struct{}

var errCaught = errors.New("gosdk: both halves of the middleware are on this server")
