package mcpgo

import (
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
)

// The hooks in this file see what middleware cannot see: the requests and results of
// lists, calls of task tools, and results that did not come from our middleware. Several
// servers may share one Hooks value. So when a server calls one of these hooks, the hook
// looks up the Protection of that server.

// installation is the Protection of one server, with the hooks that the server had when it
// was protected.
type installation struct {
	*Protection
	hooks          weak.Pointer[server.Hooks]
	places         *atomic.Pointer[hookPlaces] // the places of our hooks among the server's hooks
	outer          bool                        // true if the server had middleware for tools or prompts before it was protected
	outerResources bool                        // true if the server had middleware for resources before it was protected
	paged          pagedTools
}

var (
	// The table has only a weak pointer to the installation. The installation has the Options, and
	// they may refer to the server. So with an ordinary pointer, the server would never be
	// garbage-collected. The installation stays in memory because the server's own middleware
	// refers to it.
	servers adapter.Table[server.MCPServer, weak.Pointer[installation]]
	hooked  adapter.Table[server.Hooks, *atomic.Pointer[hookPlaces]] // maps a Hooks value to the places of our hooks in the value
)

// installed returns the installation of the server that a context belongs to. It returns
// nil if that server is not protected.
func installed(ctx context.Context) *installation {
	i, _ := servers.Get(server.ServerFromContext(ctx))
	return i.Value()
}

// addingHooks is held while our hooks are added. If two servers share one Hooks value,
// the second server waits until all our hooks are in it. Otherwise it could serve without
// some of them.
var addingHooks sync.Mutex

// addHooks adds our hooks to h, unless h has them already. It returns the places of our
// hooks.
func addHooks(h *server.Hooks) *atomic.Pointer[hookPlaces] {
	addingHooks.Lock()
	defer addingHooks.Unlock()
	known, ok := hooked.Get(h)
	if !ok {
		known = new(atomic.Pointer[hookPlaces])
		hooked.Add(h, known)
	} else if known.Load().intact(h) {
		return known
	}
	clip(h)
	removeOurs(h)
	addOurs(h)
	clip(h) // a copy that is made later must not share spare capacity either
	places := &hookPlaces{
		request: len(h.OnRequestInitialization) - 1,
		failure: len(h.OnError) - 1,
		session: len(h.OnRegisterSession) - 1,
		lists: [...]int{
			len(h.OnBeforeListTools) - 1, len(h.OnBeforeListPrompts) - 1, len(h.OnBeforeListResources) - 1, len(h.OnBeforeListResourceTemplates) - 1, len(h.OnBeforeListTasks) - 1,
		},
	}
	places.code = places.codeIn(h)
	known.Store(places)
	return known
}

// addOurs adds our hooks to h. The compiler must not inline addOurs, because each inlined copy
// would add hooks with other addresses, and removeOurs would know only the addresses of one copy.
// Without go:noinline, a build with a profile could inline it.
//
//go:noinline
func addOurs(h *server.Hooks) {
	h.OnBeforeAny = append([]server.BeforeAnyHookFunc{recordArrival}, h.OnBeforeAny...)
	h.AddBeforeCallTool(beforeCall)
	h.AddOnError(func(ctx context.Context, _ any, method mcp.MCPMethod, _ any, _ error) {
		// mcp-go calls this hook for a lost notification too. Then the context may belong to a call
		// that still runs, but the method is not tools/call.
		if method == mcp.MethodToolsCall {
			forgetArrival(ctx)
		}
	})
	h.AddAfterCallTool(func(ctx context.Context, _ any, _ *mcp.CallToolRequest, result any) {
		forgetArrival(ctx)
		if r, ok := result.(*mcp.CallToolResult); ok && r != nil && isUnsealed(ctx, mcp.MethodToolsCall, r.NeedsInput(), &r.MultiRoundTripResult) {
			*r = mcp.CallToolResult{IsError: true, Content: []mcp.Content{mcp.NewTextContent(errInternal.Error())}}
		}
	})
	h.AddAfterGetPrompt(func(ctx context.Context, _ any, _ *mcp.GetPromptRequest, r *mcp.GetPromptResult) {
		if r != nil && isUnsealed(ctx, mcp.MethodPromptsGet, r.NeedsInput(), &r.MultiRoundTripResult) {
			*r = mcp.GetPromptResult{Messages: []mcp.PromptMessage{}}
		}
	})
	h.AddAfterReadResource(func(ctx context.Context, _ any, _ *mcp.ReadResourceRequest, r *mcp.ReadResourceResult) {
		if r != nil && isUnsealed(ctx, mcp.MethodResourcesRead, r.NeedsInput(), &r.MultiRoundTripResult) {
			*r = mcp.ReadResourceResult{Contents: []mcp.ResourceContents{}}
		}
	})
	addListHooks(h)
	h.AddOnRegisterSession(stdioBegins)
	h.AddOnRequestInitialization(beforeRequest)
}

// removeOurs removes our hooks from h, so that none of them runs twice. h may already have some of
// our hooks for two reasons: h is a copy of the hooks of a protected server, or the author changed
// h after we had added our hooks to it.
func removeOurs(h *server.Hooks) {
	fields := reflect.ValueOf(h).Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		if field.Kind() != reflect.Slice {
			continue
		}
		others := reflect.MakeSlice(field.Type(), 0, field.Len()) // a new slice, because another Hooks value may share the old slice
		for j := range field.Len() {
			if hook := field.Index(j); !ourCode()[hook.Pointer()] {
				others = reflect.Append(others, hook)
			}
		}
		if others.Len() < field.Len() {
			field.Set(others)
		}
	}
}

// ourCode has the addresses of the code of all our hooks.
var ourCode = sync.OnceValue(func() map[uintptr]bool {
	h, code := new(server.Hooks), make(map[uintptr]bool)
	addOurs(h)
	fields := reflect.ValueOf(h).Elem()
	for i := range fields.NumField() {
		for j := range fields.Field(i).Len() {
			code[fields.Field(i).Index(j).Pointer()] = true
		}
	}
	return code
})

// clip removes the spare capacity of the slices in h. Copies of a Hooks value may share the
// memory of their slices, so without clip, adding a hook to one copy could overwrite a
// hook of another copy.
func clip(h *server.Hooks) {
	fields := reflect.ValueOf(h).Elem()
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() == reflect.Slice {
			field.SetCap(field.Len())
		}
	}
}

// beforeRequest refuses every request if our hooks were changed.
func beforeRequest(ctx context.Context, _, _ any) error {
	i := installed(ctx)
	if i == nil {
		return nil
	}
	if !i.intact(ctx) {
		return i.refuse(ctx, "", hooksChanged)
	}
	return nil
}

const hooksChanged = "a hook was added after Protect, or a hook of Protect was removed: states and cursors could leave in plaintext. " +
	"Give your hooks to server.NewMCPServer with server.WithHooks, and call Protect after that"

// hookPlaces has the places of our hooks among the hooks of a server, and the addresses
// of their code.
type hookPlaces struct {
	request int    // the index of our hook in OnRequestInitialization
	failure int    // the index of our hook in OnError
	session int    // the index of our hook in OnRegisterSession
	lists   [5]int // the index of our hook in each of the five fields OnBeforeListTools, OnBeforeListPrompts, and so on
	code    [18]uintptr
}

// intact reports whether our hooks are still at the places where they were added.
func (p *hookPlaces) intact(h *server.Hooks) bool { return p.codeIn(h) == p.code }

// codeIn returns the addresses of the hooks at the places where ours must be. Among the hooks that
// can change a result, ours must be the last. Among the hooks that run before a call, ours must be
// the last too, because a later one could turn the call into a task. Among the hooks that run
// before any request, ours must be the first, because an earlier one could change what arrived.
// Among all other hooks, hooks of the author may follow ours, so p has the index of ours.
func (p *hookPlaces) codeIn(h *server.Hooks) [18]uintptr {
	return [...]uintptr{
		codeAt(h.OnRequestInitialization, p.request), codeAt(h.OnBeforeAny, 0),
		codeAt(h.OnError, p.failure), codeAt(h.OnRegisterSession, p.session),
		codeAt(h.OnBeforeListTools, p.lists[0]), codeAt(h.OnBeforeListPrompts, p.lists[1]), codeAt(h.OnBeforeListResources, p.lists[2]),
		codeAt(h.OnBeforeListResourceTemplates, p.lists[3]), codeAt(h.OnBeforeListTasks, p.lists[4]),
		codeAt(h.OnBeforeCallTool, len(h.OnBeforeCallTool)-1),
		codeAt(h.OnAfterCallTool, len(h.OnAfterCallTool)-1), codeAt(h.OnAfterGetPrompt, len(h.OnAfterGetPrompt)-1),
		codeAt(h.OnAfterReadResource, len(h.OnAfterReadResource)-1), codeAt(h.OnAfterListTools, len(h.OnAfterListTools)-1),
		codeAt(h.OnAfterListPrompts, len(h.OnAfterListPrompts)-1), codeAt(h.OnAfterListResources, len(h.OnAfterListResources)-1),
		codeAt(h.OnAfterListResourceTemplates, len(h.OnAfterListResourceTemplates)-1), codeAt(h.OnAfterListTasks, len(h.OnAfterListTasks)-1),
	}
}

// codeAt returns the address of the code of a hook, or 0 if there is no such hook.
func codeAt[F any](hooks []F, index int) uintptr {
	if index < 0 || index >= len(hooks) {
		return 0
	}
	return reflect.ValueOf(hooks[index]).Pointer()
}

// intact reports whether the server still has the hooks that it had when it was protected.
// If server.WithHooks is applied later, it replaces all hooks. For a copy of the server, intact
// returns false too: a copy has our middleware, but our hooks do not know the copy.
func (i *installation) intact(ctx context.Context) bool {
	srv := server.ServerFromContext(ctx)
	if srv == nil || installed(ctx) != i {
		return false
	}
	h := srv.GetHooks()
	return h != nil && h == i.hooks.Value() && i.places.Load().intact(h)
}

const hooksLost = "the hooks of Protect are gone, because server.WithHooks was applied after it, or the server got other hooks by assignment: set them before. " +
	"Or the server is a copy of the one that Protect got: use a pointer to it"

// whileIntact returns the tools or prompts of a server, or none if our hooks are gone: without the
// hooks nothing seals the cursors of lists, and task tools would get states that nobody checked.
func whileIntact[T any](i *installation, ctx context.Context, items []T) []T {
	if i.intact(ctx) {
		return items
	}
	i.refuse(ctx, "", hooksLost)
	return nil
}

// beforeCall decides whether a call runs as a task, and refuses arguments that are too long for a
// paged tool. Our middleware would be too late: before mcp-go calls middleware, it acts on
// Params.Task and checks the arguments.
func beforeCall(ctx context.Context, _ any, req *mcp.CallToolRequest) {
	if i := installed(ctx); i != nil {
		if i.decideTask(ctx, req); req.Params.Task != nil {
			forgetArrival(ctx)
		}
		i.refuseLong(ctx, &req.Params)
	}
}

// decideTask decides whether a call runs as a task. If the call must not run as a task, decideTask
// sets Params.Task to nil. mcp-go looks for the tool only later, and the tool may be replaced
// before that. If Params.Task were still set, mcp-go could run the call as a task. If the call may
// run as a task, decideTask removes its state and its answers: mcp-go calls the handlers of task
// tools without any middleware, so nothing would check them.
func (i *installation) decideTask(ctx context.Context, req *mcp.CallToolRequest) {
	if req.Params.Task == nil {
		return
	}
	if !supportsTasks(ctx, req.Params.Name) {
		req.Params.Task = nil
		return
	}
	if req.Params.RequestState != "" || len(req.Params.InputResponses) > 0 {
		req.Params.MultiRoundTripParams = mcp.MultiRoundTripParams{}
		i.logger().WarnContext(ctx, "mcpgo: a state or answers were dropped: a call that runs as a task carries none", "tool", tripseal.PlainText(req.Params.Name))
	}
}

// supportsTasks reports whether mcp-go runs a call of a tool as a task if the client asks for
// that. For an ordinary tool that does not support tasks, mcp-go ignores this wish.
func supportsTasks(ctx context.Context, name string) bool {
	tool := toolOf(ctx, name)
	if tool == nil {
		return true
	}
	return runsAsTask(tool)
}

// runsAsTask reports whether calls of a tool can run as tasks.
func runsAsTask(tool *mcp.Tool) bool {
	e := tool.Execution
	return e != nil && (e.TaskSupport == mcp.TaskSupportOptional || e.TaskSupport == mcp.TaskSupportRequired)
}

// toolOf returns the ordinary tool that mcp-go calls for a name, or nil if there is none. If the
// session and the server both have a tool of this name, mcp-go calls the session's tool.
func toolOf(ctx context.Context, name string) *mcp.Tool {
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithTools); ok {
		if own, ok := session.GetSessionTools()[name]; ok {
			return &own.Tool
		}
	}
	if srv := server.ServerFromContext(ctx); srv != nil {
		if registered := srv.GetTool(name); registered != nil {
			return &registered.Tool
		}
	}
	return nil
}

// isUnsealed reports whether a result asks for input or has a state, and our middleware did
// not seal it. Such a result must not be sent. A hook that runs after a call cannot make the
// call fail, so if isUnsealed returns true, the hook replaces the result.
func isUnsealed(ctx context.Context, method mcp.MCPMethod, asks bool, r *mcp.MultiRoundTripResult) bool {
	if !asks && r.RequestState == "" && len(r.InputRequests) == 0 {
		return false
	}
	i := installed(ctx)
	if i == nil {
		return false
	}
	if asks && r.RequestState != "" && i.issued.has(digest(r.RequestState)) {
		return false // outer middleware may send one result several times, so the digest stays
	}
	i.refuse(ctx, string(method), "a result was replaced, because its state or questions were not sealed: a hook, or middleware that was added before Protect, "+
		"must not ask, and must not send an old result again. Call Protect directly after server.NewMCPServer, and ask from a tool or a prompt")
	return true
}

// digest returns the SHA-256 of a token. The conversion []byte(token) would allocate, so
// digest copies a token of usual length into an array on the stack.
func digest(token string) [32]byte {
	var room [1 << 10]byte
	return sha256.Sum256(append(room[:0], token...))
}

// refuse logs the reason for the operator. It returns an error that tells the client nothing
// about the reason.
func (p *Protection) refuse(ctx context.Context, method, reason string) error {
	p.logger().ErrorContext(ctx, "mcpgo: "+reason, "method", tripseal.PlainText(method))
	return errInternal
}

// errInternal is the error that a client gets if something fails in the server. mcp-go
// sends the text of a handler's error unchanged, with the code -32603, so this text tells
// nothing about the failure.
var errInternal = errors.New(tripseal.Wire(nil).Message)

// registered yields the names in Config.ReplayTools and Options.Unsolicited for which an ordinary
// tool is registered. It does not use the list that the client gets, because hooks may have changed
// the list.
func (i *installation) registered(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, name := range slices.Concat(i.policy.ReplayTools, i.options.Unsolicited) {
			if toolOf(ctx, name) != nil && !yield(name) {
				return
			}
		}
	}
}
