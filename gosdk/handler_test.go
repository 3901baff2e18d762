package gosdk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// olderServer is a protected server for older clients, with its HTTP handler and its log.
type olderServer struct {
	*mcp.Server
	http.Handler
	log book
}

// serveOlder returns a server that takes the user's name from a header, as a server behind a gateway does.
func serveOlder(t testing.TB, server *mcp.Server, options *mcp.StreamableHTTPOptions) *olderServer {
	t.Helper()
	s := &olderServer{Server: server}
	protected := gosdk.Protect(server, boundary(t, &s.log, nil), &gosdk.Options{
		User: byHeader, AllowAnonymous: true, Logger: s.log.logger(),
	})
	s.Handler = protected.Handler(options)
	t.Cleanup(s.closeAll)
	return s
}

func byHeader(_ context.Context, extra *mcp.RequestExtra) (string, error) {
	switch user := extra.Header.Get("X-User"); user {
	case "error":
		return "", errors.New("hush")
	case "panic":
		panic("hush")
	case "long":
		return strings.Repeat("hush", 2000), nil
	case "":
		return strings.TrimPrefix(extra.Header.Get("Authorization"), "Bearer "), nil
	default:
		return user, nil
	}
}

func (s *olderServer) closeAll() {
	for session := range s.Sessions() {
		session.Close()
	}
}

// send sends a request of an older client, with as many session headers as there are texts.
func (s *olderServer) send(method, user, body string, sessions ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // otherwise a stream, once open, would stay open
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if user != "" {
		r.Header.Set("X-User", user)
	}
	for _, session := range sessions {
		r.Header.Add("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// open opens a session, and sends notifications/initialized.
func (s *olderServer) open(t testing.TB, user string) string {
	t.Helper()
	w := s.send("POST", user, initialize)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || !strings.HasPrefix(id, "mh1.") {
		t.Fatalf("%s gets no session: %d %s", user, w.Code, w.Body)
	}
	if w := s.send("POST", user, initialized, id); w.Code != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", w.Code, w.Body)
	}
	return id
}

func (s *olderServer) isOpen(user, session string) bool {
	return s.send("POST", user, ping, session).Code == http.StatusOK
}

// count returns how many sessions are open. It leaves out the sessions without an id, which the SDK makes for single
// requests of newer clients.
func (s *olderServer) count() (n int) {
	for session := range s.Sessions() {
		if session.ID() != "" {
			n++
		}
	}
	return n
}

// inner returns the SDK's own id of the only session.
func (s *olderServer) inner() (id string) {
	for session := range s.Sessions() {
		id = session.ID()
	}
	return id
}

func TestASessionOfAnotherUserLooksAsIfItDidNotExist(t *testing.T) {
	for _, owner := range []string{"alice", ""} {
		s := serveOlder(t, newServer(), nil)
		session := s.open(t, owner)
		want := describe(s.send("POST", owner, ping, "UNKNOWN"))
		for _, user := range []string{"alice", "bob", "", "error", "panic"} {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				sent := [][]string{{s.inner()}, {session + "A"}, {session[:len(session)-1]}, {session, session}, {session, s.inner()}}
				if user != owner {
					sent = append(sent, []string{session})
				}
				for _, ids := range sent {
					if got := s.send(method, user, ping, ids...); describe(got) != want || got.Code != http.StatusNotFound {
						t.Errorf("%s of %q by %q with %d headers: %s\nwant %s", method, owner, user, len(ids), describe(got), want)
					}
				}
			}
		}
		if !s.isOpen(owner, session) {
			t.Errorf("the session of %q is gone", owner)
		}
		if log := s.log.String(); strings.Contains(log, "hush") || strings.Contains(log, session) || !strings.Contains(log, "reason=user") {
			t.Errorf("the log says %s", log)
		}
		if w := s.send("DELETE", owner, "", session); w.Code != http.StatusNoContent || s.isOpen(owner, session) {
			t.Errorf("the owner cannot end it: %s", describe(w))
		}
	}
}

func describe(w *httptest.ResponseRecorder) string {
	return fmt.Sprintf("%d %v %q", w.Code, w.Header(), w.Body)
}

func TestAUserThatCannotBeIdentifiedOpensNoSession(t *testing.T) {
	for _, user := range []string{"error", "panic", "long"} {
		s := serveOlder(t, newServer(), nil)
		w := s.send("POST", user, initialize)
		if w.Code != http.StatusForbidden || s.count() != 0 || strings.Contains(w.Body.String(), "hush") {
			t.Errorf("%s: %s and %d sessions", user, describe(w), s.count())
		}
		if log := s.log.String(); strings.Contains(log, "hush") || !strings.Contains(log, "cause=") {
			t.Errorf("%s: the log says %q", user, log)
		}
	}
}

// A session belongs to a user of one issuer. A user with the same id from another issuer cannot use it, although the SDK
// compares only user ids.
func TestTheSameUserIDOfAnotherIssuerIsAnotherUser(t *testing.T) {
	s := &olderServer{Server: newServer()}
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user, issuer, _ := strings.Cut(token, "@")
		return &auth.TokenInfo{UserID: user, Extra: map[string]any{"iss": issuer}, Expiration: time.Now().Add(time.Hour)}, nil
	}
	protected := gosdk.Protect(s.Server, boundary(t, &s.log, nil), &gosdk.Options{Logger: s.log.logger()})
	s.Handler = auth.RequireBearerToken(verify, nil)(protected.Handler(nil))
	t.Cleanup(s.closeAll)
	call := func(token, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "*/*", "Authorization": "Bearer " + token} {
			r.Header.Set(name, value)
		}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	session := call("alice@one", "", initialize).Header().Get("Mcp-Session-Id")
	for token, want := range map[string]int{"alice@one": 200, "alice@two": 404, "bob@one": 404} {
		if w := call(token, session, ping); w.Code != want {
			t.Errorf("%s: %s, want %d", token, describe(w), want)
		}
	}
	if w := call("@one", "", initialize); w.Code != http.StatusForbidden || !strings.Contains(s.log.String(), "no user id") {
		t.Errorf("a token without a user: %s, and the log says %s", describe(w), &s.log)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	for _, test := range []struct {
		timeout, idle time.Duration
		want          int
	}{
		{0, 29 * time.Minute, 1},
		{0, 31 * time.Minute, 0},
		{time.Hour, 59 * time.Minute, 1},
		{time.Hour, 61 * time.Minute, 0},
	} {
		t.Run(fmt.Sprint(test.timeout, " after ", test.idle), func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				s := serveOlder(t, newServer(), &mcp.StreamableHTTPOptions{SessionTimeout: test.timeout})
				session := s.open(t, "alice")
				time.Sleep(test.idle / 2)
				if !s.isOpen("alice", session) { // this request also keeps the session open
					t.Error("the session ended too early")
				}
				time.Sleep(test.idle)
				synctest.Wait()
				if s.count() != test.want || s.isOpen("alice", session) != (test.want == 1) {
					t.Errorf("%d sessions, want %d", s.count(), test.want)
				}
				s.closeAll()
				synctest.Wait()
			})
		})
	}
}

// TestClientsOfBothRevisionsWorkAtOneURL uses the SDK's own client, which fails if the id of its session changes.
func TestClientsOfBothRevisionsWorkAtOneURL(t *testing.T) {
	server := newServer()
	addSteps(server, "steps", 3)
	s := serveOlder(t, server, nil)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	for version, sessions := range map[string]int{revision2026: 0, revision2025: 1} {
		client := dial(t, web.URL, "alice", answering(), version)
		if got, err := callTool(t, client, &mcp.CallToolParams{Name: "steps"}); err != nil || text(got) != "done after 3" {
			t.Errorf("%s: %q, %v", version, text(got), err)
		}
		if s.count() != sessions {
			t.Errorf("%s: %d sessions", version, s.count())
		}
		if err := client.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	if s.count() != 0 {
		t.Errorf("%d sessions at the end", s.count())
	}
}

func TestAServerOfItsOwnForEachRequest(t *testing.T) {
	var mu sync.Mutex
	var servers []*mcp.Server
	s := &olderServer{}
	protector := gosdk.NewProtector(boundary(t, &s.log, nil), &gosdk.Options{User: byHeader, Logger: s.log.logger()})
	s.Handler = protector.Handler(func(*http.Request) *mcp.Server {
		mu.Lock()
		defer mu.Unlock()
		server := newServer()
		addSteps(server, "steps", 1)
		protector.Protect(server)
		servers = append(servers, server)
		return server
	}, nil)
	t.Cleanup(func() {
		for _, server := range servers {
			(&olderServer{Server: server}).closeAll()
		}
	})
	alice := s.open(t, "alice")
	if !s.isOpen("alice", alice) || s.isOpen("bob", alice) {
		t.Error("the session is not alice's alone")
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	asked, err := callTool(t, dial(t, web.URL, "alice", raw(), revision2026), &mcp.CallToolParams{Name: "steps"})
	if err != nil {
		t.Fatal(err)
	}
	for user, done := range map[string]bool{"alice": true, "bob": false} {
		answer := &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted}
		if _, err := callTool(t, dial(t, web.URL, user, raw(), revision2026), answer); (err == nil) != done {
			t.Errorf("%s: %v", user, err)
		}
	}
}

func TestAServerWithoutSessionIDsIsServed(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{GetSessionID: func() string { return "" }})
	s := serveOlder(t, server, nil)
	for _, body := range []string{initialize, initialized, ping} {
		if w := s.send("POST", "alice", body); w.Code >= 300 || w.Header().Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %s", body, describe(w))
		}
	}
}

// An older client cannot subscribe with subscriptions/listen: no older revision has it, and in some releases of the SDK
// a session with a subscription never ends.
func TestAnOlderClientCannotListen(t *testing.T) {
	s := serveOlder(t, newServer(), nil)
	const listen = `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`
	id := s.open(t, "alice")
	if answer := s.send("POST", "alice", listen, id); !strings.Contains(answer.Body.String(), "-32601") {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	if answer := s.send("DELETE", "alice", "", id); answer.Code != http.StatusNoContent {
		t.Fatalf("the session does not end: %d %s", answer.Code, answer.Body)
	}
}

// The context of an older client's call comes from the request that opened the session. That is why Options.User must
// look at the call's own headers. The test uses the SDK's own handler, because it lets bob call on alice's session.
func TestAnOlderClientsContextIsThatOfItsOpener(t *testing.T) {
	type userKey struct{}
	var fromContext, fromExtra atomic.Value
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), &gosdk.Options{User: func(ctx context.Context, extra *mcp.RequestExtra) (string, error) {
		fromContext.Store(ctx.Value(userKey{}))
		fromExtra.Store(extra.Header.Get("X-User"))
		return extra.Header.Get("X-User"), nil
	}})
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s := &olderServer{Server: server, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sdk.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get("X-User"))))
	})}
	t.Cleanup(s.closeAll)
	session := s.send("POST", "alice", initialize).Header().Get("Mcp-Session-Id")
	s.send("POST", "bob", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"steps","requestState":"ms1.x"}}`, session)
	if fromContext.Load() != "alice" || fromExtra.Load() != "bob" {
		t.Errorf("the context says %v, the request's header %v", fromContext.Load(), fromExtra.Load())
	}
}

// Over the older SSE transport, neither the context nor the request tells who sent a message. That is why this
// transport needs its own check in front of it.
func TestTheOlderSSETransportKnowsOnlyTheOpener(t *testing.T) {
	seen := make(chan string, 10)
	server := newServer()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			user := "nobody"
			if info := auth.TokenInfoFromContext(ctx); info != nil {
				user = info.UserID
			}
			seen <- fmt.Sprint(user, " ", req.GetExtra() != nil && req.GetExtra().Header != nil)
			return next(ctx, method, req)
		}
	})
	sse := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(auth.RequireBearerToken(byName, nil)(sse))
	t.Cleanup(web.Close)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	get, _ := http.NewRequestWithContext(ctx, "GET", web.URL, nil)
	stream, err := (&http.Client{Transport: bearer("alice")}).Do(get)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	var endpoint string
	for lines := bufio.NewScanner(stream.Body); endpoint == "" && lines.Scan(); {
		endpoint, _ = strings.CutPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(lines.Text(), "data: ") {
			endpoint = ""
		}
	}
	response, err := (&http.Client{Transport: bearer("bob")}).Post(web.URL+endpoint, "application/json", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if got := <-seen; got != "alice false" {
		t.Errorf("bob's message came as %s", got)
	}
}
