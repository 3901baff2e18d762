package gosdk

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

const sessionHeader = "Mcp-Session-Id"

// Handler serves clients of all protocol revisions at one URL, as [Protector.Handler] does for several servers.
func (s *Server) Handler(options *mcp.StreamableHTTPOptions) http.Handler {
	return s.protector.Handler(func(*http.Request) *mcp.Server { return s.server }, options)
}

// Handler serves clients of all protocol revisions at one URL, in place of mcp.NewStreamableHTTPHandler, whose handler
// is either stateless, as revision 2026-07-28 requires, or stateful, as questions to older clients require. The options
// may be nil. Stateless in them is ignored, and a SessionTimeout of 0 means 30 minutes.
//
// The servers that getServer returns must be protected. A session of an older client works for the user that opened it
// alone, because its id is sealed, and for 24 hours at most. What stands in front limits how many sessions and calls a
// client may have open.
func (p *Protector) Handler(
	getServer func(*http.Request) *mcp.Server, options *mcp.StreamableHTTPOptions,
) http.Handler {
	var o mcp.StreamableHTTPOptions
	if options != nil {
		o = *options
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 30 * time.Minute
	}
	stateless, stateful := o, o
	stateless.Stateless, stateful.Stateless = true, false
	h := &handler{
		protector: p,
		newer:     mcp.NewStreamableHTTPHandler(getServer, &stateless),
		older:     mcp.NewStreamableHTTPHandler(getServer, &stateful),
	}
	var err error
	if h.handles, err = tripseal.NewHandles(p.boundary, "session", 0); err != nil {
		p.logger().Warn("gosdk: the ids of sessions are not sealed, because the boundary has no keys of its own: " +
			"add tripseal.NativeFormat to Config.AlsoOpen")
	}
	return h
}

type handler struct {
	protector    *Protector
	handles      *tripseal.Handles // nil if the ids of sessions are not sealed
	newer, older http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Mcp-Protocol-Version") >= firstStateless { // revisions are dates, and compare as texts do
		h.newer.ServeHTTP(w, r)
		return
	} else if h.handles == nil {
		h.older.ServeHTTP(w, r)
		return
	}
	asked := tripseal.Principal(func(ctx context.Context) (string, error) {
		return h.protector.user(ctx, &mcp.RequestExtra{Header: r.Header, TokenInfo: auth.TokenInfoFromContext(ctx)})
	})
	name, err := asked.Identify(r.Context()) // before anything shows whether a session exists
	if err == nil && name == "" && h.protector.policy.RequireUser {
		err = errNobody
	}
	if err != nil {
		h.protector.logger().ErrorContext(r.Context(),
			"gosdk: a request was refused, because its sender could not be identified", "cause", err.Error())
	}
	user := func(context.Context) (string, error) { return name, nil }
	session := &sessionWriter{ResponseWriter: w, seal: func(id string) (string, error) {
		return h.handles.Seal(r.Context(), user, id)
	}}
	if texts := r.Header.Values(sessionHeader); len(texts) > 0 {
		session.text = strings.Join(texts, ", ") // two texts are no handle
		if err == nil {
			session.id, err = h.handles.Open(r.Context(), user, session.text)
		}
		if err != nil {
			http.Error(w, "session not found", http.StatusNotFound) // as the SDK answers for an unknown session
			return
		}
		inner := *r
		inner.Header = r.Header.Clone()
		inner.Header.Set(sessionHeader, session.id)
		r = &inner
	}
	if err != nil {
		http.Error(w, "forbidden", http.StatusForbidden)
		return
	}
	h.older.ServeHTTP(session, r)
	if !session.began && w.Header().Get(sessionHeader) != "" { // net/http would send the id as it is
		session.WriteHeader(http.StatusOK)
	}
}

// sessionWriter seals the id of a session in an answer. An answer that repeats the request's id gets the client's own
// text, because clients compare them.
type sessionWriter struct {
	http.ResponseWriter
	seal     func(id string) (text string, err error)
	text, id string // of the request's session; "" if it has none
	began    bool
}

func (w *sessionWriter) WriteHeader(status int) {
	if id := w.Header().Get(sessionHeader); id != "" && !w.began {
		text, err := w.text, error(nil)
		if id != w.id {
			text, err = w.seal(id)
		}
		w.Header().Set(sessionHeader, text)
		if err != nil { // the boundary has logged why
			w.Header().Del(sessionHeader)
			status = http.StatusInternalServerError
		}
	}
	w.began = w.began || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *sessionWriter) Write(p []byte) (int, error) {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}

// FlushError is what [http.ResponseController] calls to flush.
func (w *sessionWriter) FlushError() error {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets [http.ResponseController] find the other methods of the client's writer.
func (w *sessionWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
