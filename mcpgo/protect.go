package mcpgo

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/adapter"
	"github.com/mcpseal/mcpseal/cursor"
)

// Options changes what [Protect] does. Set Principal or AllowAnonymous; the zero value of
// every other field is the safe choice.
type Options struct {
	// Principal tells who is calling, from the context of the request. mcp-go verifies
	// no users: put the verified user into the context with server.WithHTTPContextFunc,
	// WithSSEContextFunc or WithStdioContextFunc, or with HTTP middleware in front of
	// the server. An empty name and an error fail the check, unless the name is empty
	// and AllowAnonymous is set. Nil is allowed with AllowAnonymous only.
	//
	// Older clients have sessions, which mcp-go matches by the session id alone. Check
	// that whoever uses a session (POST, GET or DELETE) is the user that opened it;
	// examples/deploy does.
	Principal func(ctx context.Context) (string, error)
	// AllowAnonymous says that callers without a name are expected: their tokens are
	// bound to nobody, and anyone who gets one can use it.
	AllowAnonymous bool
	// Unsolicited names tools that get the answers of a call even if it has no state,
	// so that nothing was asked. If the call has a state, its answers are checked as usual.
	// Nil means none.
	Unsolicited []string
	// RejectedText is the text of the tool result, marked as an error, that a tool call
	// with a rejected token gets; [StartOver], for example. Set it if the model must
	// learn of rejections: many hosts do not show it protocol errors. The text is the
	// same for every reason. "" means the protocol's error, which the official
	// conformance suite wants.
	RejectedText string
	// Cursors issues the cursors of paged tools. Nil means native cursors under the
	// boundary's keys; such a cursor lives for an hour.
	Cursors cursor.Issuer
	// PlainLists leaves the cursors of the server's lists as mcp-go makes them: readable,
	// and accepted from any client unchecked.
	PlainLists bool
	// Logger gets messages for the server's author and operator. Nil means
	// slog.Default() at the time of each message. Rejections of tokens and cursors go
	// to the boundary's logger.
	Logger *slog.Logger
}

// StartOver is a text for [Options.RejectedText]. It tells a model what to do after a
// token was rejected.
const StartOver = adapter.StartOver

// Protection is a boundary and its options, prepared once for any number of servers.
type Protection struct {
	boundary *mcpseal.Boundary
	policy   mcpseal.Config // the boundary's
	options  Options
	caller   mcpseal.Principal // method value of principal, made once
	lists    cursor.Issuer     // nil if list cursors are not sealed

	unsolicited map[string]bool // true for tools in Options.Unsolicited
	unlisted    adapter.Unlisted
	pagedMu     sync.RWMutex
	paged       map[string]int // how long the arguments of each paged tool may be, with a cursor

	issued recent[[32]byte, struct{}] // the digests of tokens on their way to a client
	pages  recent[any, *cursor.Page]  // opened pages, by the request for them
}

// Prepare returns a Protection, which [Protection.Install] puts on servers. Use both in
// place of [Protect] if a program has several servers. It panics if the boundary is nil,
// or if Options say neither who is calling nor that anonymous callers are expected.
func Prepare(boundary *mcpseal.Boundary, options *Options) *Protection {
	if boundary == nil {
		panic("mcpgo: the boundary is nil; check the error of mcpseal.New")
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
			"add mcpseal.NativeFormat to Config.AlsoOpen")
	}
	if p.options.RejectedText != "" {
		p.logger().Info("mcpgo: rejected tokens of tools are answered with a result in place of the protocol's error, " +
			"so the official scenario input-required-result-tampered-state fails")
	}
	p.unlisted.Expect("mcpseal.Config.ReplayTools", p.policy.ReplayTools)
	p.unlisted.Expect("mcpgo.Options.Unsolicited", p.options.Unsolicited)
	p.options.Unsolicited = slices.Clone(p.options.Unsolicited)
	for _, tool := range p.options.Unsolicited {
		p.unsolicited[tool] = true
		p.logger().Warn("mcpgo: answers that were not asked for reach this tool on its first call", "tool", tool)
	}
	return p
}

// Protect protects srv. Call it once, directly after server.NewMCPServer: middleware that
// is added later runs inside, and sees plaintext. Middleware that was added before, with
// server.WithToolHandlerMiddleware for example, runs outside: it sees tokens that were not
// checked yet, and a state that it returns by itself never reaches the client.
//
// Add your own hooks before Protect, with server.WithHooks. If a hook that could change
// results runs after those of Protect, or if the hooks are replaced later, the server
// refuses requests and logs why.
func Protect(srv *server.MCPServer, boundary *mcpseal.Boundary, options *Options) *Protected {
	return Prepare(boundary, options).Install(srv)
}

// Install protects a server, as [Protect] does. It panics if the server is protected
// already.
func (p *Protection) Install(srv *server.MCPServer) *Protected {
	if p == nil || p.boundary == nil || srv == nil {
		panic("mcpgo: Install needs a server, and a Protection that Prepare returned")
	}
	hooks := srv.GetHooks()
	if hooks == nil {
		hooks = new(server.Hooks)
	}
	i := &installation{p, weak.Make(hooks)}
	if !servers.Add(srv, i) {
		panic("mcpgo: the server is protected already: call Protect or Install once for each server")
	}
	addHooks(hooks)
	server.WithHooks(hooks)(srv)
	srv.Use(i.tool)
	server.WithPromptHandlerMiddleware(i.prompt)(srv)
	server.WithResourceHandlerMiddleware(i.resource)(srv)
	server.WithToolFilter(whileIntact[mcp.Tool](i))(srv)
	server.WithPromptFilter(whileIntact[mcp.Prompt](i))(srv)
	return &Protected{p, srv}
}

// Boundary returns the boundary.
func (p *Protection) Boundary() *mcpseal.Boundary { return p.boundary }

// Protected is a server with a boundary. Only [Protect] and [Protection.Install] make
// one, so a function that takes a Protected cannot be used without protection.
type Protected struct {
	protection *Protection
	server     *server.MCPServer
}

// Server returns the server.
func (p *Protected) Server() *server.MCPServer { return p.server }

// Boundary returns the boundary.
func (p *Protected) Boundary() *mcpseal.Boundary { return p.protection.boundary }

// logger returns the logger for the server's author and operator.
func (p *Protection) logger() *slog.Logger { return mcpseal.Logger(p.options.Logger) }

// principal tells who is calling.
func (p *Protection) principal(ctx context.Context) (string, error) {
	if p.options.Principal == nil {
		return "", nil
	}
	user, err := p.options.Principal(ctx)
	if err == nil && user == "" && !p.options.AllowAnonymous {
		err = errEmptyUser
	}
	return user, err
}

const errEmptyUser = mcpseal.PlainError("Options.Principal returned an empty name: set Options.AllowAnonymous if callers without a name are expected")
