package gosdk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// olderServer is a server for older clients, with its HTTP handler and its log.
type olderServer struct {
	*mcp.Server
	http.Handler
	log book
}

// serveOlder returns a server that by default takes the user's name from a header, as a server
// behind a gateway does.
func serveOlder(t testing.TB, options gosdk.HandlerOptions) *olderServer {
	t.Helper()
	return serveServer(t, newServer(), options)
}

func serveServer(t testing.TB, server *mcp.Server, options gosdk.HandlerOptions) *olderServer {
	t.Helper()
	s := &olderServer{Server: server}
	if options.Principal == nil {
		options.Principal = byHeader
	}
	options.Logger = s.log.logger()
	s.Handler = gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &options)
	t.Cleanup(s.closeAll)
	return s
}

func byHeader(r *http.Request) (string, error) {
	switch user := r.Header.Get("X-User"); user {
	case "error":
		return "", errors.New("hush")
	case "panic":
		panic("hush")
	default:
		return user, nil
	}
}

func (s *olderServer) closeAll() {
	for session := range s.Sessions() {
		session.Close()
	}
}

// send sends a request of an older client. The parameter session may be "".
func (s *olderServer) send(method, user, session, body string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // otherwise a stream, once open, would stay open
	defer cancel()
	return s.sendContext(ctx, method, user, session, body)
}

func (s *olderServer) sendContext(ctx context.Context, method, user, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if user != "" {
		r.Header.Set("X-User", user)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// begin opens a session, but does not send notifications/initialized.
func (s *olderServer) begin(t testing.TB, user string) string {
	t.Helper()
	w := s.send("POST", user, "", initialize)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("%s gets no session: %d %s", user, w.Code, w.Body)
	}
	return id
}

// open opens a session, and sends notifications/initialized.
func (s *olderServer) open(t testing.TB, user string) string {
	t.Helper()
	id := s.begin(t, user)
	if w := s.send("POST", user, id, initialized); w.Code != http.StatusAccepted {
		t.Fatalf("initialized: %d %s", w.Code, w.Body)
	}
	return id
}

func (s *olderServer) isOpen(user, session string) bool {
	return s.send("POST", user, session, ping).Code == http.StatusOK
}

// A new session of the user must be refused, because there is no room.
func (s *olderServer) refused(t testing.TB, user string) {
	t.Helper()
	w := s.send("POST", user, "", initialize)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("Mcp-Session-Id") != "" {
		t.Errorf("%q: %d %v %s, want 503 with Retry-After", user, w.Code, w.Header(), w.Body)
	}
}

// count returns how many sessions are open. It leaves out the sessions without an id, which the
// SDK makes for single requests of newer clients.
func (s *olderServer) count() (n int) {
	for session := range s.Sessions() {
		if session.ID() != "" {
			n++
		}
	}
	return n
}

func TestASessionOfAnotherUserLooksAsIfItDidNotExist(t *testing.T) {
	for _, owner := range []string{"alice", ""} {
		s := serveOlder(t, gosdk.HandlerOptions{})
		session := s.open(t, owner)
		sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, nil)
		theirs := &olderServer{Server: s.Server, Handler: sdk}
		for _, user := range []string{"alice", "bob", "", "error", "panic"} {
			if user == owner {
				continue
			}
			for _, method := range []string{"POST", "GET", "DELETE"} {
				real, unknown := s.send(method, user, session, ping), s.send(method, user, "UNKNOWN", ping)
				want := theirs.send(method, user, "UNKNOWN", ping)
				for name, got := range map[string]*httptest.ResponseRecorder{"the session": real, "an unknown session": unknown} {
					if describe(got) != describe(want) || got.Code != http.StatusNotFound {
						t.Errorf("%s of %q by %q on %s: %s\nwant %s", method, owner, user, name, describe(got), describe(want))
					}
				}
			}
		}
		if !s.isOpen(owner, session) {
			t.Errorf("the session of %q is gone", owner)
		}
		if log := s.log.String(); strings.Contains(log, "hush") || strings.Contains(log, session) || !strings.Contains(log, "another user's session") {
			t.Errorf("the log says %s", log)
		}
	}
}

func describe(w *httptest.ResponseRecorder) string {
	return fmt.Sprintf("%d %v %q", w.Code, w.Header(), w.Body)
}

func TestAPrincipalThatFailsOpensNoSession(t *testing.T) {
	long := func(*http.Request) (string, error) { return strings.Repeat("hush", 2000), nil }
	for _, test := range []struct {
		user      string
		principal func(*http.Request) (string, error)
	}{{"error", nil}, {"panic", nil}, {"long", long}} {
		s := serveOlder(t, gosdk.HandlerOptions{Principal: test.principal})
		w := s.send("POST", test.user, "", initialize)
		if w.Code != http.StatusForbidden || s.count() != 0 || strings.Contains(w.Body.String(), "hush") {
			t.Errorf("%s: %s and %d sessions", test.user, describe(w), s.count())
		}
		if log := s.log.String(); strings.Contains(log, "hush") || !strings.Contains(log, "cause=") {
			t.Errorf("%s: the log says %q", test.user, log)
		}
	}
}

// A session belongs to a user of one issuer. A user with the same id from another issuer cannot
// use it, although the SDK compares only user ids.
func TestTheSameUserIDOfAnotherIssuerIsAnotherUser(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user, issuer, _ := strings.Cut(token, "@")
		return &auth.TokenInfo{UserID: user, Extra: map[string]any{"iss": issuer}, Expiration: time.Now().Add(time.Hour)}, nil
	}
	s.Handler = auth.RequireBearerToken(verify, nil)(gosdk.Handler(func(*http.Request) *mcp.Server { return s.Server },
		&gosdk.HandlerOptions{Logger: s.log.logger()}))
	call := func(token, session, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "*/*", "Authorization": "Bearer " + token, "Mcp-Session-Id": session} {
			r.Header.Set(name, value)
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

func TestAUserAtTheirLimitKeepsNobodyElseOut(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 5, MaxSessionsPerUser: 2})
	first, second := s.open(t, "alice"), s.open(t, "alice")
	s.refused(t, "alice")
	bob := s.open(t, "bob")
	for user, session := range map[string]string{"alice": second, "bob": bob} {
		if !s.isOpen(user, session) {
			t.Errorf("a session of %s is gone", user)
		}
	}
	if !s.isOpen("alice", first) || s.count() != 3 {
		t.Errorf("%d sessions", s.count())
	}
	if log := s.log.String(); !strings.Contains(log, "limit=MaxSessionsPerUser") {
		t.Errorf("the log says %q", log)
	}
}

func TestAnonymousCallersKeepNoUserOut(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 4})
	s.open(t, "")
	s.open(t, "")
	for range 10 {
		s.refused(t, "") // half of MaxSessions is kept for users with a name
	}
	s.open(t, "alice")
	s.open(t, "bob")
	s.refused(t, "carol")
	if log := s.log.String(); strings.Count(log, "limit=") != 1 {
		t.Errorf("a flood of refusals is a flood of log records: %s", log)
	}
}

func TestASessionThatNeverInitializedMakesRoom(t *testing.T) {
	t.Run("of the same user, the oldest first", func(t *testing.T) {
		s := serveOlder(t, gosdk.HandlerOptions{MaxSessionsPerUser: 3})
		bob := s.begin(t, "bob")
		kept := s.open(t, "alice")
		oldest, newer := s.begin(t, "alice"), s.begin(t, "alice")
		s.begin(t, "alice")
		if s.isOpen("alice", oldest) || !s.isOpen("alice", newer) || !s.isOpen("alice", kept) || !s.isOpen("bob", bob) {
			t.Error("another session than the oldest of the user had to go")
		}
		if s.count() != 4 {
			t.Errorf("%d sessions", s.count())
		}
	})
	t.Run("of nobody before that of a user", func(t *testing.T) {
		s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 3})
		own, bob, nobody := s.begin(t, "alice"), s.begin(t, "bob"), s.begin(t, "")
		s.open(t, "alice")
		if s.isOpen("", nobody) || !s.isOpen("alice", own) || !s.isOpen("bob", bob) {
			t.Error("another session than the anonymous one had to go")
		}
		s.open(t, "bob") // bob displaces his own session, although alice's session is older
		if s.isOpen("bob", bob) || !s.isOpen("alice", own) {
			t.Error("another session than the user's own had to go")
		}
		s.open(t, "carol")
		if s.isOpen("alice", own) {
			t.Error("a user who has none to give up finds no room")
		}
		s.refused(t, "dave")
	})
	t.Run("but a user's not for nobody", func(t *testing.T) {
		s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 2})
		alice, bob := s.begin(t, "alice"), s.begin(t, "bob")
		s.refused(t, "")
		if !s.isOpen("alice", alice) || !s.isOpen("bob", bob) {
			t.Error("a user's session is gone")
		}
	})
}

func TestAnInitializedSessionIsNeverDisplaced(t *testing.T) {
	messages := map[string]string{
		"alone":      initialized,
		"in a batch": `[` + ping + `,` + initialized + `]`,
		"escaped":    strings.Replace(initialized, "initialized", `\u0069nitialized`, 1),
	}
	for name, message := range messages {
		t.Run(name, func(t *testing.T) {
			s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 2, MaxAnonymousSessions: 2})
			kept := s.begin(t, "")
			if w := s.send("POST", "", kept, message); w.Code >= 300 {
				t.Fatal(describe(w))
			}
			for range 20 {
				s.begin(t, "")
			}
			s.open(t, "alice")
			s.refused(t, "bob")
			s.refused(t, "")
			if !s.isOpen("", kept) || s.count() != 2 {
				t.Errorf("displaced; %d sessions", s.count())
			}
		})
	}
}

func TestOnlyTheNotificationInitializes(t *testing.T) {
	for name, message := range map[string]string{
		"another method": `{"jsonrpc":"2.0","method":"notifications/roots/list_changed","params":{"_meta":{"x":"notifications/initialized"}}}`,
		"a call":         ping,
		"refused":        `{"jsonrpc":"2.0","id":7,"method":"notifications/initialized"}`,
		"malformed":      "{" + initialized,
	} {
		t.Run(name, func(t *testing.T) {
			s := serveOlder(t, gosdk.HandlerOptions{MaxSessionsPerUser: 1})
			session := s.begin(t, "alice")
			s.send("POST", "alice", session, message)
			s.begin(t, "alice")
			if s.isOpen("alice", session) {
				t.Error("it counts as initialized")
			}
		})
	}
}

// Some clients never send notifications/initialized, but use their session. Such a session is
// not displaced while a request runs on it.
func TestASessionInUseIsNotDisplaced(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessionsPerUser: 2})
	started, finish := make(chan bool), make(chan bool)
	s.AddTool(&mcp.Tool{Name: "slow", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		started <- true
		<-finish
		return &mcp.CallToolResult{}, nil
	})
	busy, idle := s.begin(t, "alice"), s.begin(t, "alice")
	answer := make(chan *httptest.ResponseRecorder)
	go func() {
		answer <- s.send("POST", "alice", busy, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}`)
	}()
	<-started
	s.open(t, "alice")
	s.refused(t, "alice")
	close(finish)
	if w := <-answer; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"result"`) {
		t.Errorf("the call ended as %s", describe(w))
	}
	if s.isOpen("alice", idle) || !s.isOpen("alice", busy) {
		t.Error("the session in use was displaced")
	}
	s.open(t, "alice")
	if s.isOpen("alice", busy) {
		t.Error("a session that is no longer in use stays")
	}
}

// A displaced session counts towards the limits until its handlers have returned, because it
// takes memory until then.
func TestASessionCountsUntilItsHandlersReturn(t *testing.T) {
	gosdk.Bubble(t, func(t *testing.T) {
		s := serveOlder(t, gosdk.HandlerOptions{MaxSessionsPerUser: 1})
		finish := make(chan bool)
		s.AddTool(&mcp.Tool{Name: "slow", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			<-finish
			return &mcp.CallToolResult{}, nil
		})
		session := s.begin(t, "alice")
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s.sendContext(gone, "POST", "alice", session, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}`)
		s.refused(t, "alice")
		s.refused(t, "alice")
		if s.isOpen("alice", session) {
			t.Error("the session that had to make room still answers")
		}
		close(finish)
		synctest.Wait()
		s.open(t, "alice")
		if s.count() != 1 {
			t.Errorf("%d sessions", s.count())
		}
		s.closeAll()
		synctest.Wait()
	})
}

func TestAnEndedSessionMakesRoom(t *testing.T) {
	for name, end := range map[string]func(*olderServer, string){
		"by its client": func(s *olderServer, session string) { s.send("DELETE", "alice", session, "") },
		"by the server": func(s *olderServer, _ string) { s.closeAll() },
	} {
		t.Run(name, func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 1})
				for range 3 {
					session := s.open(t, "alice")
					s.refused(t, "bob")
					end(s, session)
					synctest.Wait()
					if w := s.send("POST", "alice", session, ping); w.Code != http.StatusNotFound {
						t.Errorf("an ended session answers %s", describe(w))
					}
				}
				s.open(t, "bob")
				s.closeAll()
				synctest.Wait()
			})
		})
	}
}

func TestOnlyASessionTakesRoom(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 1, HTTP: mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 1000}})
	failing := strings.Replace(initialize, `"params"`, `"param"`, 1)
	requests := func(step string) {
		t.Helper()
		for body, want := range map[string]int{
			ping: 200, initialized: 202, "": 400, "[]": 400, "{": 400, "garbage": 400, "null": 400,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:    200,
			`{"jsonrpc":"2.0","method":"initialize"}`:           0,
			`{"jsonrpc":"2.0","id":1,"result":"initialize"}`:    202,
			`[` + initialize + `,{"jsonrpc":"2.0"}]`:            400,
			`{"x":"` + strings.Repeat("initialize", 200) + `"}`: 413,
		} {
			w := s.send("POST", "alice", "", body)
			if w.Code != want && want != 0 || w.Header().Get("Mcp-Session-Id") != "" {
				t.Errorf("%s: %.50s: %s, want %d", step, body, describe(w), want)
			}
		}
		for _, method := range []string{"GET", "DELETE", "PUT"} {
			if w := s.send(method, "alice", "", initialize); w.Code != 400 && w.Code != 405 {
				t.Errorf("%s: %s: %s", step, method, describe(w))
			}
		}
	}
	for range 3 {
		requests("empty")
		s.send("POST", "alice", "", failing) // this request takes room until it has failed
	}
	session := s.begin(t, "alice")
	requests("full")
	if !s.isOpen("alice", session) {
		t.Error("a request that opens no session displaced one")
	}
	plain := httptest.NewRequest("POST", "/", strings.NewReader(initialize))
	plain.Header.Set("Content-Type", "text/plain") // a web page of another origin may send this type
	plain.Header.Set("X-User", "bob")
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, plain); w.Code != http.StatusUnsupportedMediaType || !s.isOpen("alice", session) {
		t.Errorf("text/plain: %s, or a session displaced", describe(w))
	}
}

// A session is counted only after the whole body of its request has arrived, so a slow sender takes
// no room.
func TestASlowBodyTakesNoRoom(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 1})
	body, write := io.Pipe()
	r := httptest.NewRequest("POST", "/", body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "*/*")
	r.Header.Set("X-User", "mallory")
	done := make(chan bool)
	go func() {
		s.ServeHTTP(httptest.NewRecorder(), r)
		close(done)
	}()
	io.WriteString(write, initialize[:50]) // returns when the handler has read these bytes
	s.open(t, "alice")
	write.CloseWithError(io.ErrUnexpectedEOF)
	<-done
	if s.count() != 1 {
		t.Errorf("%d sessions", s.count())
	}
}

func TestConcurrentInitializesStayWithinTheLimits(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 10, MaxSessionsPerUser: 3})
	var most atomic.Int32
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			for n := int32(s.count()); ; {
				if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
					break
				}
			}
			return next(ctx, method, req)
		}
	})
	var group sync.WaitGroup
	for i := range 8 {
		user := []string{"", "alice", "bob", "carol"}[i%4]
		group.Go(func() {
			for j := range 30 {
				w := s.send("POST", user, "", initialize)
				id := w.Header().Get("Mcp-Session-Id")
				switch {
				case w.Code == http.StatusServiceUnavailable:
				case w.Code != http.StatusOK || id == "":
					t.Error(describe(w))
				case j%3 == 0:
					s.send("POST", user, id, initialized)
				case j%3 == 1:
					s.send("DELETE", user, id, "")
				}
			}
		})
	}
	group.Wait()
	if most.Load() > 10 || s.count() > 10 || most.Load() == 0 {
		t.Errorf("%d sessions at once, %d at the end", most.Load(), s.count())
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
		{tripseal.NoLimit, 1000 * time.Hour, 1},
	} {
		t.Run(fmt.Sprint(test.timeout, " after ", test.idle), func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 1, HTTP: mcp.StreamableHTTPOptions{SessionTimeout: test.timeout}})
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
				if test.want == 0 {
					s.open(t, "bob")
				}
				s.closeAll()
				synctest.Wait()
			})
		})
	}
}

func TestNewerRevisionsNeedNoSession(t *testing.T) {
	var asked atomic.Int32
	principal := func(*http.Request) (string, error) { asked.Add(1); return "alice", nil }
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 1, Principal: principal})
	s.open(t, "alice")
	s.refused(t, "alice")
	before := asked.Load()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	session := dial(t, web.URL, "alice", nil, revision2026)
	if _, err := session.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if s.count() != 1 || asked.Load() != before {
		t.Errorf("%d sessions, and the principal was asked for %d times", s.count(), asked.Load()-before)
	}
}

func TestNoLimitSwitchesALimitOff(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: tripseal.NoLimit, MaxSessionsPerUser: tripseal.NoLimit})
	for range 150 {
		s.begin(t, "alice")
		s.begin(t, "")
	}
	if s.count() != 300 {
		t.Errorf("%d sessions", s.count())
	}
}

// If a server gives a second session the id of an open session, both sessions are closed.
// Otherwise the SDK would hand one user's session to the other.
func TestASessionIDThatIsNotUniqueServesNobody(t *testing.T) {
	gosdk.Bubble(t, func(t *testing.T) {
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{GetSessionID: func() string { return "same" }})
		s := serveServer(t, server, gosdk.HandlerOptions{MaxSessions: 1, MaxSessionsPerUser: 1})
		two := serveServer(t, server, gosdk.HandlerOptions{MaxSessions: 2})
		s.open(t, "alice")
		s.refused(t, "bob")
		s.closeAll()
		synctest.Wait()
		two.open(t, "alice")
		two.send("POST", "bob", "", initialize)
		synctest.Wait()
		if two.isOpen("alice", "same") || two.isOpen("bob", "same") || two.count() != 0 {
			t.Errorf("%d sessions of one name", two.count())
		}
		two.open(t, "alice")
		two.closeAll()
		synctest.Wait()
	})
}

func TestAServerOfItsOwnForEachRequest(t *testing.T) {
	var mu sync.Mutex
	var servers []*mcp.Server
	s := &olderServer{}
	s.Handler = gosdk.Handler(func(*http.Request) *mcp.Server {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, newServer())
		return servers[len(servers)-1]
	}, &gosdk.HandlerOptions{Principal: byHeader, MaxSessions: 2, Logger: s.log.logger()})
	t.Cleanup(func() {
		for _, server := range servers {
			(&olderServer{Server: server}).closeAll()
		}
	})
	displaced, kept := s.begin(t, "alice"), s.open(t, "alice")
	s.open(t, "bob")
	if s.isOpen("alice", displaced) || !s.isOpen("alice", kept) {
		t.Error("the wrong session was displaced")
	}
	s.refused(t, "bob")
	if w := s.send("DELETE", "alice", kept, ""); w.Code != http.StatusNoContent {
		t.Error(describe(w))
	}
	s.open(t, "bob")
}

func TestAServerWithoutSessionIDsIsServed(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{GetSessionID: func() string { return "" }})
	s := serveServer(t, server, gosdk.HandlerOptions{MaxSessions: 1})
	for range 3 {
		for _, body := range []string{initialize, initialized, ping} {
			if w := s.send("POST", "alice", "", body); w.Code >= 300 {
				t.Errorf("%s: %s", body, describe(w))
			}
		}
	}
}

// The test tries to open 20,000 anonymous sessions (fewer in a short run or with the race
// detector). It sends notifications/initialized for half of those that open. Only as many stay open
// as the limit allows.
func TestAFloodOfAnonymousSessionsTakesBoundedMemory(t *testing.T) {
	flood, limit := 20_000, 1000
	if testing.Short() {
		flood, limit = 2000, 100
	}
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: limit})
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	client := web.Client()
	send := func(session, body string) (id string) {
		r, err := http.NewRequest("POST", web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		io.Copy(io.Discard, response.Body)
		return response.Header.Get("Mcp-Session-Id")
	}
	alice := s.open(t, "alice")
	before := liveHeap()
	for i := range flood {
		if id := send("", initialize); id != "" && i%2 == 0 {
			send(id, initialized)
		}
	}
	client.CloseIdleConnections()
	// A session takes less than 20 KB; a flood without a limit took 289 MB.
	if grown, most := liveHeap()-before, int64(limit)*40<<10+8<<20; grown > most {
		t.Errorf("the heap has grown by %d KB, want at most %d", grown>>10, most>>10)
	}
	if n := s.count(); n > limit/2+1 {
		t.Errorf("%d sessions are open", n)
	}
	if !s.isOpen("alice", alice) {
		t.Error("a user's session was displaced")
	}
	s.open(t, "bob")
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// The context of an older client's call comes from the request that opened the session. That is
// why Options.Principal must look at the call's own request. The test uses the SDK's own
// handler, because it lets bob call on alice's session.
func TestAnOlderClientsContextIsThatOfItsOpener(t *testing.T) {
	type userKey struct{}
	var fromContext, fromExtra atomic.Value
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), &gosdk.Options{Principal: func(ctx context.Context, req mcp.Request) (string, error) {
		fromContext.Store(ctx.Value(userKey{}))
		user := req.GetExtra().Header.Get("X-User")
		fromExtra.Store(user)
		return user, nil
	}})
	sdk := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s := &olderServer{Server: server, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sdk.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get("X-User"))))
	})}
	t.Cleanup(s.closeAll)
	session := s.open(t, "alice")
	s.send("POST", "bob", session, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"steps","requestState":"ms1.x"}}`)
	if fromContext.Load() != "alice" || fromExtra.Load() != "bob" {
		t.Errorf("the context says %v, the request's header %v", fromContext.Load(), fromExtra.Load())
	}
}

// Over the older SSE transport, neither the context nor the request tells who sent a message.
// That is why this transport needs its own check in front of it.
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

// Revision 2025-03-26 has batches, so one request can open a session and also send
// notifications/initialized. Such a session is not displaced.
func TestASessionThatABatchInitializedIsNotDisplaced(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{MaxSessions: 2, MaxAnonymousSessions: 2})
	batch := "[" + strings.Replace(initialize, "2025-06-18", "2025-03-26", 1) + "," + initialized + "]"
	w := s.send("POST", "alice", "", batch)
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || id == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	s.open(t, "alice")
	s.refused(t, "bob")
	if !s.isOpen("alice", id) {
		t.Error("it was displaced")
	}
}
