package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

func newHandler(options HandlerOptions) (*handler, *mcp.Server) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	options.Principal = func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }
	options.Logger = slog.New(slog.DiscardHandler)
	return Handler(func(*http.Request) *mcp.Server { return server }, &options).(*handler), server
}

func post(h http.Handler, user, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/", strings.NewReader(body))
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "*/*", "X-User": user, sessionHeader: session} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func closeAll(server *mcp.Server) {
	for session := range server.Sessions() {
		session.Close()
	}
}

// After all sessions have ended, every list and every count that could grow is empty again.
func TestNothingIsKeptOfASessionThatEnded(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		h, server := newHandler(HandlerOptions{MaxSessions: 20, MaxSessionsPerUser: 3})
		for i := range 200 {
			user := fmt.Sprint("user", i%7)
			if i%7 == 0 {
				user = ""
			}
			id := post(h, user, "", initializeBody).Header().Get(sessionHeader)
			if i%2 == 0 {
				post(h, user, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			}
			post(h, user, "", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`) // this initialize request fails
		}
		if len(h.sessions.byID) == 0 || h.sessions.everyone.count == 0 {
			t.Error("no session was open")
		}
		closeAll(server)
		synctest.Wait()
		s := h.sessions
		if len(s.byID) != 0 || len(s.users) != 0 || s.everyone.count != 0 || s.everyone.spare.Len() != 0 ||
			s.anonymous.count != 0 || s.anonymous.spare.Len() != 0 {
			t.Errorf("%d ids, %d users, %d and %d sessions, %d and %d of them spare", len(s.byID), len(s.users),
				s.everyone.count, s.anonymous.count, s.everyone.spare.Len(), s.anonymous.spare.Len())
		}
	})
}

// The SDK may find an initialize request in a body where this package found none. It then opens
// a session that is not counted. Such a session is closed.
func TestASessionThatWasNotCountedIsClosed(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		h, server := newHandler(HandlerOptions{})
		older := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
		id := post(older, "", "", initializeBody).Header().Get(sessionHeader)
		h.sessions.link(nil, id, server)
		synctest.Wait()
		for range server.Sessions() {
			t.Error("the session is still open")
		}
	})
}

// A deleted session is not counted any more when the answer to the DELETE begins, so that the
// client can open another session at once.
func TestDeletingMakesRoomAtOnce(t *testing.T) {
	h, _ := newHandler(HandlerOptions{})
	for range 200 {
		r := httptest.NewRequest("DELETE", "/", nil)
		r.Header.Set(sessionHeader, post(h, "", "", initializeBody).Header().Get(sessionHeader))
		w := &headerWatch{ResponseRecorder: httptest.NewRecorder(), sessions: h.sessions, counted: -1}
		if h.ServeHTTP(w, r); w.Code != http.StatusNoContent || w.counted != 0 {
			t.Fatalf("%d, with %d sessions when it was sent", w.Code, w.counted)
		}
	}
}

// If initialize fails, the SDK still sends the id of a session. This session is not counted.
func TestASessionThatFailedToInitializeMakesRoom(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		h, server := newHandler(HandlerOptions{MaxSessions: 1})
		server.AddReceivingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler {
			return func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, errors.New("refused") }
		})
		for range 10 {
			w := post(h, "", "", initializeBody)
			synctest.Wait()
			if w.Header().Get(sessionHeader) == "" || h.sessions.everyone.count != 0 || len(h.sessions.byID) != 0 {
				t.Fatalf("%d, %d sessions are counted, %d known", w.Code, h.sessions.everyone.count, len(h.sessions.byID))
			}
		}
	})
}

// headerWatch notes how many sessions are counted when the answer begins.
type headerWatch struct {
	*httptest.ResponseRecorder
	sessions *sessions
	counted  int
}

func (w *headerWatch) WriteHeader(status int) {
	w.sessions.mu.Lock()
	w.counted = w.sessions.everyone.count
	w.sessions.mu.Unlock()
	w.ResponseRecorder.WriteHeader(status)
}

// FuzzSessionBodies sends arbitrary bodies, on a session and without one, and checks that every
// open session is counted.
func FuzzSessionBodies(f *testing.F) {
	for _, body := range []string{
		initializeBody, "[" + initializeBody + "]", "[" + initializeBody + "]{", initializeBody + "}",
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":"x","result":{}}`, "null", "",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		Bubble(t, func(t *testing.T) {
			h, server := newHandler(HandlerOptions{MaxSessions: 2})
			id := post(h, "alice", "", initializeBody).Header().Get(sessionHeader)
			post(h, "bob", "", body)
			post(h, "alice", id, body)
			post(h, "bob", id, body)
			synctest.Wait()
			open := 0
			for session := range server.Sessions() {
				open++
				if h.sessions.byID[session.ID()] == nil {
					t.Error("a session is not counted")
				}
			}
			if open != h.sessions.everyone.count || open > 2 {
				t.Errorf("%d sessions, %d counted", open, h.sessions.everyone.count)
			}
			closeAll(server)
			synctest.Wait()
		})
	})
}

// If reading a body fails, the SDK gets the part that was read, and then the same error, so that
// it can answer the client.
func TestABodyIsPassedOnWithItsError(t *testing.T) {
	h, _ := newHandler(HandlerOptions{HTTP: mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 4}})
	for text, want := range map[string]string{"abc": "abc <nil>", "abcdef": "abcd http: request body too large"} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(text))
		h.readBody(httptest.NewRecorder(), r)
		body, err := io.ReadAll(r.Body)
		if got := fmt.Sprint(string(body), " ", err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
