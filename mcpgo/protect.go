package mcpgo

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/mcpgo/internal/passage"
)

// Options changes what [Protect] does. You must set Principal or AllowAnonymous. The zero
// value of every other field is the safe choice.
type Options struct {
	// Principal reads the name of the calling user from the context of the request, and returns it.
	// mcp-go does not verify users: put the verified user into the context with
	// server.WithHTTPContextFunc, WithSSEContextFunc or WithStdioContextFunc, or with HTTP
	// middleware in front of the server. Do not use middleware of mcp-go for this. If you add it
	// after Protect, it runs too late. If you add it before Protect, it does not run for lists. If
	// Principal returns an error, no token or cursor is opened or sealed. An empty name counts as
	// an error, unless AllowAnonymous is set. A nil Principal is allowed only if AllowAnonymous is
	// set.
	//
	// Principal must return the same name during a whole call. If a call arrives without a
	// token, and its handler asks something, the user of the new token is found only after
	// the handler has returned. So if Principal reads something that changes during the
	// call, the new token may belong to the wrong user.
	//
	// Older clients have sessions. mcp-go finds a session by its id alone, and does not
	// check the user. So check that whoever uses a session (POST, GET or DELETE) is the
	// user who opened it, as examples/deploy does.
	Principal func(ctx context.Context) (string, error)
	// AllowAnonymous says that callers without a name are expected: their tokens are
	// bound to nobody, and anyone who gets such a token can use it. False means that an
	// empty name from Principal is an error. Set it if callers do not sign in.
	AllowAnonymous bool
	// Unsolicited has the names of tools that accept answers to questions that were never asked.
	// Such a tool gets the answers of a call that has no state. If a call has a state, its answers
	// are checked as usual. Nil means that there are no such tools. List a tool here if clients
	// send its answers in the first call.
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
	// PlainLists says that the cursors of the server's lists stay as mcp-go makes them:
	// clients can read them, and the server accepts any cursor unchecked. Set it only if
	// something else must read these cursors. False means that they are sealed.
	PlainLists bool
	// Logger gets messages for the server's author and operator. Nil means
	// slog.Default() at the time of each message. Rejections of tokens and cursors are
	// logged by the boundary's logger instead.
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
	caller   tripseal.Principal // the method principal as a value, made once to save allocations
	lists    cursor.Issuer      // nil if list cursors are not sealed

	nobody      atomic.Bool     // true once the log has said that a caller has no name
	unsolicited map[string]bool // true for tools in Options.Unsolicited
	unlisted    adapter.Unlisted
	issued      recent[[32]byte, struct{}] // the digests of the tokens that were sealed last
	pages       recent[any, *cursor.Page]  // the opened cursors of list requests; the key is a weak pointer to the request
}

// Prepare returns a Protection, which [Protection.Install] puts on servers. Use Prepare and
// Install in place of [Protect] if a program has several servers. Prepare panics if the
// boundary is nil, or if neither Options.Principal nor Options.AllowAnonymous is set.
func Prepare(boundary *tripseal.Boundary, options *Options) *Protection {
	if boundary == nil {
		panic("mcpgo: the boundary is nil; check the error of tripseal.New")
	}
	p := &Protection{boundary: boundary, policy: boundary.Config(), unsolicited: make(map[string]bool)}
	if options != nil {
		p.options = *options
	}
	if p.options.Principal == nil && !p.options.AllowAnonymous {
		panic("mcpgo: set Options.Principal, which tells who is calling, or Options.AllowAnonymous if everybody may use everybody's tokens")
	}
	p.caller = p.principal
	if cursors, ok := p.options.Cursors.(*cursor.Cursors); ok && cursors == nil {
		panic("mcpgo: Options.Cursors is nil; check the error of cursor.New")
	}
	p.options.Cursors = adapter.ToolCursors(boundary, p.options.Cursors)
	if p.options.PlainLists {
		p.logger().Warn("mcpgo: list cursors are not sealed, because Options.PlainLists is set")
	} else if p.lists = adapter.ListCursors(boundary); p.lists == nil {
		p.logger().Warn("mcpgo: list cursors are not sealed, because the boundary has no keys of its own: " +
			"add tripseal.NativeFormat to Config.AlsoOpen")
	}
	if p.options.RejectedText != "" {
		p.logger().Info("mcpgo: rejected tokens of tools are answered with a result in place of the protocol's error, " +
			"so the official scenario input-required-result-tampered-state fails")
	}
	p.unlisted.Expect("tripseal.Config.ReplayTools", p.policy.ReplayTools)
	p.unlisted.Expect("mcpgo.Options.Unsolicited", p.options.Unsolicited)
	p.options.Unsolicited = slices.Clone(p.options.Unsolicited)
	for _, tool := range p.options.Unsolicited {
		p.unsolicited[tool] = true
		p.logger().Warn("mcpgo: this tool gets answers to questions that nobody asked, on its first call", "tool", tool)
	}
	return p
}

// Protect protects srv. Call it once, directly after server.NewMCPServer. Middleware runs inside
// the protection, and sees plaintext, if you add it after Protect. Middleware runs outside the
// protection if you added it before Protect, with server.WithToolHandlerMiddleware for example.
// Such outer middleware sees tokens that are not checked yet. If outer middleware returns a state
// of its own, this state never reaches the client.
//
// mcp-go has the arguments of a tool call in two forms. Params.RawArguments is the text that the
// client sent. Params.Arguments is the value that mcp-go decoded from this text. A hook or outer
// middleware may change one form or both. Then the token is bound to three things: the text that
// arrived, and both forms as they are after the change. So the change must be the same in every
// round. Together, as a JSON array, the three may have at most Config.MaxArguments bytes. mcpgo
// does not make the two forms agree. If RawArguments is not empty, a typed handler reads only
// RawArguments, and does not see a change that is only in Arguments.
//
// If a hook or outer middleware puts values into Arguments, no other call may use these values,
// because mcpgo reads them without your locks. The values should be of type string, bool, float64,
// []string, []any or map[string]any. The handler must not change a value of any other type in
// place. If a value of any other type contains U+FFFD, the handler cannot ask. The handler may get
// a copy of the arguments, so a hook or outer middleware may not see what the handler writes into
// them.
//
// mcp-go chooses the handler of a call before middleware runs. So outer middleware must not change
// the name of a tool or prompt: the token would be bound to the changed name. Change a name in a
// hook instead.
//
// Add your own hooks before Protect, with server.WithHooks. If a hook that could change
// results is added after Protect, or if hooks are replaced or removed after Protect, the
// server refuses requests and logs why.
func Protect(srv *server.MCPServer, boundary *tripseal.Boundary, options *Options) *Protected {
	return Prepare(boundary, options).Install(srv)
}

// Install protects a server, as [Protect] does. It panics if the server is protected
// already. Call it directly after server.NewMCPServer.
func (p *Protection) Install(srv *server.MCPServer) *Protected {
	if p == nil || p.boundary == nil || srv == nil {
		panic("mcpgo: Install needs a server, and a Protection that Prepare returned")
	}
	hooks := srv.GetHooks()
	if hooks == nil {
		hooks = new(server.Hooks)
	}
	i := &installation{
		Protection: p, hooks: weak.Make(hooks), places: addHooks(hooks),
		outer: hasMiddleware(srv, "tool", "prompt"), outerResources: hasMiddleware(srv, "resource"),
	}
	if !servers.Add(srv, weak.Make(i)) {
		panic("mcpgo: the server is protected already: call Protect or Install once for each server")
	}
	server.WithHooks(hooks)(srv)
	srv.Use(i.tool)
	server.WithPromptHandlerMiddleware(i.prompt)(srv)
	server.WithResourceHandlerMiddleware(i.resource)(srv)
	server.WithToolFilter(i.shownTools)(srv)
	server.WithPromptFilter(func(ctx context.Context, prompts []mcp.Prompt) []mcp.Prompt { return whileIntact(i, ctx, prompts) })(srv)
	return &Protected{i, srv}
}

// Boundary returns the boundary that was passed to [Prepare]. Use it to open and seal in
// a handler.
func (p *Protection) Boundary() *tripseal.Boundary { return p.boundary }

// Protected is a server with a boundary. Only [Protect] and [Protection.Install] make
// one, so a function that takes a Protected can only be called for a protected server.
// Pass a Protected to [AddPagedTool].
type Protected struct {
	protection *installation
	server     *server.MCPServer
}

// Server returns the protected server. Use it to register handlers that do not need the
// Protected.
func (p *Protected) Server() *server.MCPServer { return p.server }

// Boundary returns the boundary that protects the server. Use it to read the settings of
// the boundary.
func (p *Protected) Boundary() *tripseal.Boundary { return p.protection.boundary }

// logger returns the logger for the server's author and operator.
func (p *Protection) logger() *slog.Logger { return tripseal.Logger(p.options.Logger) }

// principal returns the name of the user who is calling, or "" if the caller has no name.
func (p *Protection) principal(ctx context.Context) (string, error) {
	if p.options.Principal == nil {
		return "", nil
	}
	user, err := p.options.Principal(ctx)
	if err == nil && user == "" {
		if !p.options.AllowAnonymous {
			return "", errEmptyUser
		}
		if !p.nobody.Swap(true) {
			p.logger().WarnContext(ctx, "mcpgo: Options.Principal found no user, so a state or cursor is bound to nobody, and anybody who gets it can use it: "+
				"if this caller had a user, put the user into the context before any middleware runs")
		}
	}
	return user, err
}

// arrivedUser returns the user in the context that our middleware got. Inner middleware, or the
// handler of another tool, may have put another user into ctx. If only ctx has a user,
// arrivedUser fails, because tokens and cursors would be bound to nobody.
func (p *Protection) arrivedUser(ctx context.Context) (string, error) {
	user, err := p.principal(passage.From(ctx).Context)
	if user == "" && err == nil {
		if inner, err := p.principal(ctx); inner != "" || err != nil {
			return "", errInnerUser
		}
	}
	return user, err
}

const errInnerUser = tripseal.PlainError("middleware that was added after Protect put the user into the context, and Options.Principal did not find a user before: " +
	"put the user there earlier, with server.WithHTTPContextFunc for example")

const errEmptyUser = tripseal.PlainError("Options.Principal returned an empty name: set Options.AllowAnonymous if callers without a name are expected")
