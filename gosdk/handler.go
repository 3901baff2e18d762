package gosdk

import (
	"context"
	"log/slog"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// firstStateless is the first revision of the protocol that has no sessions.
const firstStateless = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"

	defaultSessions    = 10_000
	defaultPerUser     = 100
	defaultIdleTimeout = 30 * time.Minute

	// retryAfter is the value of the Retry-After header, in seconds. A client gets this
	// header when there is no room for its session.
	retryAfter = "30"
)

// HandlerOptions changes what [Handler] does. The zero value is the safe choice. Set
// Principal if you set [Options].Principal.
//
// The limits apply only to clients of older revisions, because only they have sessions.
// [tripseal.NoLimit] switches a limit off.
type HandlerOptions struct {
	// HTTP has options for the SDK's own handlers. HTTP.SessionTimeout is how long a session lives
	// without a POST: 0 means 30 minutes, and a negative value means no limit. HTTP.Stateless is
	// ignored. The zero value suits most servers.
	HTTP mcp.StreamableHTTPOptions
	// Principal tells who sent an HTTP request. Set it if something other than the SDK's
	// bearer middleware verifies users. It returns "" for a caller without a name. It must
	// return the same name for a user until the session ends. If it fails or panics, the
	// request is refused. Nil means the access token's user, as [TokenUser] names it.
	//
	// Set both HandlerOptions.Principal and Options.Principal, or neither. The two functions
	// must return the same name for a user. If the names differ on a session of an older
	// client, calls on that session can neither ask questions nor use cursors. Different
	// names may mean that HandlerOptions.Principal gives one name to two users. These users
	// share their sessions, so one could answer the other's questions.
	Principal func(*http.Request) (string, error)
	// MaxSessions is how many sessions may be open at once. 0 means 10,000.
	MaxSessions int
	// MaxSessionsPerUser is how many sessions one user may have open at once. 0 means
	// 100. By default the user's name includes the client, so a user with several
	// clients may have that many sessions with each client.
	MaxSessionsPerUser int
	// MaxAnonymousSessions is how many sessions callers without a name may have open at once. All
	// these callers share this one limit. 0 means half of MaxSessions, so that they cannot keep
	// users out. A server without users can set it to MaxSessions.
	MaxAnonymousSessions int
	// Logger gets messages for the server's author and operator. Nil means
	// slog.Default().
	Logger *slog.Logger
}

// Handler serves clients of all protocol revisions at one URL. The SDK's own handler is
// either stateless, as revision 2026-07-28 requires, or stateful, as questions to older
// clients require. This handler has one of each, and chooses by the Mcp-Protocol-Version
// header. The options may be nil. Use Handler in place of mcp.NewStreamableHTTPHandler.
//
// A session of an older client belongs to the user that opened it. For everyone
// else it does not exist: their requests get the same 404 as for an unknown id.
//
// A new session displaces an open session when a limit is reached: the open session then ends. A
// session can be displaced only if the client never sent notifications/initialized on it, and no
// request is running on it. If several sessions can be displaced, the one that was unused for the
// longest time ends. Not every caller can displace every session:
//
//   - A user at their own limit displaces one of their own sessions.
//   - A user below their own limit displaces an anonymous session, or else one of their
//     own, or else any session.
//   - Anonymous callers displace only anonymous sessions.
//
// If no session can be displaced, the client gets status 503 with Retry-After. After the
// client has sent notifications/initialized on a session, the session ends only when it is
// closed, or idle too long. A session is displaced before the SDK checks the new request.
// So a session is displaced even if the SDK then refuses the request, because of its
// Accept or Origin header, for example.
//
// If the server is protected, a DELETE of a session cancels the context of every call
// that is running on the session. This happens before the SDK checks the DELETE, so the
// calls are cancelled even if the SDK refuses the DELETE. Calls that begin after a
// refused DELETE are not affected. A session counts towards the limits until its last
// running handler has returned, even after the session has timed out. A handler stops
// waiting for an answer when the token of the question expires; set a deadline for
// anything else that it waits for. Handler does not limit how many requests a session may
// have open at once. It does not serve the older SSE transport, because that transport
// neither binds sessions to users nor limits them.
func Handler(getServer func(*http.Request) *mcp.Server, options *HandlerOptions) http.Handler {
	var o HandlerOptions
	if options != nil {
		o = *options
	}
	namesUsers := o.Principal != nil
	if !namesUsers {
		o.Principal = tokenUser
	}
	if o.HTTP.SessionTimeout == 0 {
		o.HTTP.SessionTimeout = defaultIdleTimeout
	}
	if o.HTTP.MaxRequestBodyBytes == 0 {
		o.HTTP.MaxRequestBodyBytes = mcp.DefaultMaxRequestBodyBytes
	}
	stateless, stateful := o.HTTP, o.HTTP
	stateless.Stateless, stateful.Stateless = true, false
	return &handler{
		newer:    mcp.NewStreamableHTTPHandler(getServer, &stateless),
		older:    mcp.NewStreamableHTTPHandler(noteServer(getServer), &stateful),
		options:  o,
		sessions: newSessions(o.MaxSessions, o.MaxSessionsPerUser, o.MaxAnonymousSessions),

		namesUsers: namesUsers,
	}
}

type handler struct {
	newer, older http.Handler
	options      HandlerOptions
	sessions     *sessions
	namesUsers   bool         // true if HandlerOptions.Principal was set
	lastFull     atomic.Int64 // when the log last warned that a limit was reached, in Unix seconds
}

func (h *handler) logger() *slog.Logger {
	return tripseal.Logger(h.options.Logger)
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Revisions are dates such as 2026-07-28, so comparing the texts compares the
	// dates.
	if r.Header.Get(versionHeader) >= firstStateless {
		if h.namesUsers { // the middleware must know that HandlerOptions.Principal is set
			r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, markNamed))
		}
		h.newer.ServeHTTP(w, r)
		return
	}
	if id := r.Header.Get(sessionHeader); id != "" {
		h.serveSession(w, r, id)
		return
	}
	// Only a POST of JSON can open a session. The SDK refuses any other request, so such a
	// request must not displace a session. A POST of JSON may displace a session even if the
	// SDK then refuses the POST because of another header. The sender gains nothing by that,
	// because a POST that the SDK accepts displaces a session too.
	if r.Method == http.MethodPost && isJSON(r) {
		h.openSession(w, r)
		return
	}
	h.older.ServeHTTP(w, r)
}

// openSession serves a POST that names no session. The SDK makes a session for each
// such POST, but keeps the session only if the POST has an initialize request.
func (h *handler) openSession(w http.ResponseWriter, r *http.Request) {
	// A session is counted only after the whole body has been read, so a slow sender takes
	// no room.
	body := h.readBody(w, r)
	var opening *session // nil if the request does not open a session
	if hasMessage(body, "initialize", true) {
		user, ok := h.user(r)
		if !ok {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		if opening = h.admit(w, r, user); opening == nil {
			return
		}
		defer h.sessions.endOpening(opening)
	}
	var server *mcp.Server
	ctx := context.WithValue(r.Context(), serverKey{}, &server)
	if opening != nil { // the SDK derives the context of every call on the session from ctx
		ctx = context.WithValue(ctx, sessionKey{}, &sessionMark{named: h.namesUsers, onSession: true, owner: opening.user, alive: func() context.Context { return h.sessions.aliveOf(opening) }})
	}
	r = r.WithContext(ctx)
	answer := &answer{ResponseWriter: w, before: func(status int) {
		h.sessions.link(opening, w.Header().Get(sessionHeader), server)
		if opening != nil && status < 300 && hasMessage(body, "notifications/initialized", false) { // the batch with the initialize request also has this notification
			h.sessions.markInitialized(opening)
		}
	}}
	defer answer.finish()
	h.older.ServeHTTP(answer, r)
}

// admit counts a new session and returns it. If there is no room, it answers with
// status 503 and returns nil.
func (h *handler) admit(w http.ResponseWriter, r *http.Request, user string) *session {
	opening, limit := h.sessions.open(r.Context(), user)
	if opening == nil {
		h.warnFull(r.Context(), limit)
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "too many sessions", http.StatusServiceUnavailable)
	}
	return opening
}

// warnFull logs that a limit was reached. It logs at most once a minute, because any
// client can cause this warning.
func (h *handler) warnFull(ctx context.Context, limit string) {
	now, last := time.Now().Unix(), h.lastFull.Load()
	if now-last >= 60 && h.lastFull.CompareAndSwap(last, now) {
		h.logger().WarnContext(ctx, "gosdk: a session was refused, because a limit on open sessions was reached", "limit", limit)
	}
}

// serveSession serves a request on a session. It identifies the sender before it
// looks for the session, so that the answer does not reveal whether the session exists.
func (h *handler) serveSession(w http.ResponseWriter, r *http.Request, id string) {
	user, ok := h.user(r)
	if !ok {
		noSession(w)
		return
	}
	used, initialized := h.sessions.beginRequest(id, user)
	if used == nil {
		if h.sessions.exists(id) {
			h.logger().WarnContext(r.Context(), "gosdk: a request on another user's session was refused")
		}
		noSession(w)
		return
	}
	defer h.sessions.endRequest(used)
	answer := &answer{ResponseWriter: w}
	switch {
	case r.Method == http.MethodDelete:
		h.sessions.stopCalls(used) // the SDK waits for the session's calls before it ends the session
		defer h.sessions.allowCalls(used)
		answer.before = func(status int) {
			if status < 300 {
				h.sessions.end(used)
			}
		}
	case r.Method == http.MethodPost && !initialized && hasMessage(h.readBody(w, r), "notifications/initialized", false):
		answer.before = func(status int) {
			if status < 300 {
				h.sessions.markInitialized(used)
			}
		}
	default:
		h.older.ServeHTTP(w, r)
		return
	}
	h.older.ServeHTTP(answer, r)
	answer.finish()
}

// noSession answers as the SDK does for an unknown session.
func noSession(w http.ResponseWriter) { http.Error(w, "session not found", http.StatusNotFound) }

// user returns the name of whoever sent a request. If HandlerOptions.Principal fails, ok
// is false and the log says why.
func (h *handler) user(r *http.Request) (user string, ok bool) {
	principal := tripseal.Principal(func(context.Context) (string, error) { return h.options.Principal(r) })
	user, err := principal.Identify(r.Context())
	if err == nil {
		return user, true
	}
	level, attributes := slog.LevelError, []any{"cause", err.Error()}
	if stack := stackOf(err); stack != "" {
		attributes = append(attributes, "stack", stack)
	} else if r.Context().Err() == context.Canceled {
		level = slog.LevelWarn // the client cancelled the request
	}
	h.logger().Log(r.Context(), level, "gosdk: a request was refused, because its sender could not be identified", attributes...)
	return "", false
}

// tokenUser returns the user of the access token that the SDK's bearer middleware
// verified, or "" if there is no such token.
func tokenUser(r *http.Request) (string, error) {
	info := auth.TokenInfoFromContext(r.Context())
	if info == nil {
		return "", nil
	}
	return TokenUser(info)
}

type (
	serverKey  struct{}
	sessionKey struct{}
)

// sessionMark is what [Handler] tells the middleware about a request. It is stored in
// the context of the call.
type sessionMark struct {
	named     bool   // true if HandlerOptions.Principal is set; that function then decides who owns a session
	onSession bool   // true if the request is on a session of an older client
	owner     string // the name of the user who opened the session; "" for a user without a name

	alive func() context.Context // returns a context that is done when the session ends; nil for a request without a session
}

// whileOpen returns a context for serving a request. The context is done as soon as the
// session of the request ends. If the request has no headers, whileOpen ignores the
// sessionMark in the context, as markIn does.
func whileOpen(ctx context.Context, req mcp.Request) (context.Context, context.CancelFunc) {
	mark, ok := ctx.Value(sessionKey{}).(*sessionMark)
	if !ok || mark.alive == nil || req.GetExtra() == nil || req.GetExtra().Header == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(mark.alive(), cancel)
	return ctx, func() {
		detach()
		cancel()
	}
}

// markNamed is the mark of requests without a session, if HandlerOptions.Principal is set.
var markNamed = &sessionMark{named: true}

// noteServer wraps getServer, so that openSession learns which server getServer returned.
// openSession puts a pointer to a variable into the request's context, with the key
// serverKey. The wrapper stores the server in that variable.
func noteServer(getServer func(*http.Request) *mcp.Server) func(*http.Request) *mcp.Server {
	return func(r *http.Request) *mcp.Server {
		server := getServer(r)
		if variable, ok := r.Context().Value(serverKey{}).(**mcp.Server); ok {
			*variable = server
		}
		return server
	}
}

func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == "application/json"
}
