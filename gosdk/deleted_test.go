package gosdk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

// A DELETE of a session cancels the calls of the session. The SDK waits for these calls before
// it ends the session. If they were not cancelled and one of them asked a question, that
// call would wait until the token of the question expires.
func TestDeletingASessionEndsItsCalls(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{})
	protectOlder(t, s)
	running, ended := make(chan struct{}), make(chan error, 1)
	s.AddTool(&mcp.Tool{Name: "asks", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(running)
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			t.Error("the call goes on without its session")
		}
		_, err := req.Session.Elicit(ctx, form("too late?"))
		ended <- err
		return nil, err
	})
	session := s.open(t, "alice")
	go s.send("POST", "alice", session, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"asks","arguments":{}}}`)
	<-running
	if w := s.send("DELETE", "bob", session, ""); w.Code != http.StatusNotFound {
		t.Errorf("another user deletes the session: %d", w.Code)
	}
	select {
	case err := <-ended:
		t.Fatalf("another user ended the call: %v", err)
	default:
	}
	if w := s.send("DELETE", "alice", session, ""); w.Code >= 300 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if err := <-ended; err == nil || s.count() != 0 {
		t.Errorf("the question was answered: %v; %d sessions", err, s.count())
	}
}

// waitingWork returns a channel, and a function that a handler calls. The function closes the
// channel and waits until the call is cancelled. It fails the test if the call is not cancelled.
func waitingWork(t *testing.T) (running chan struct{}, work func(context.Context) error) {
	running = make(chan struct{})
	return running, func(ctx context.Context) error {
		close(running)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Second):
			t.Error("the call goes on without its session")
			return errors.New("not cancelled")
		}
	}
}

func protectOlder(t *testing.T, s *olderServer) {
	gosdk.Protect(s.Server, boundary(t, &s.log, nil), &gosdk.Options{Logger: s.log.logger(), AllowAnonymous: true,
		Principal: func(_ context.Context, req mcp.Request) (string, error) {
			return req.GetExtra().Header.Get("X-User"), nil
		}})
}

func callOf(tool string) string {
	return `{"jsonrpc":"2.0","id":"` + tool + `","method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

// deleteWith sends a DELETE of a session for the user alice, and adds one header. It returns the
// status, which is 500 if the handler panics.
func (s *olderServer) deleteWith(session, name, value string) (status int) {
	r := httptest.NewRequest("DELETE", "/", nil)
	for name, value := range map[string]string{"X-User": "alice", "Mcp-Session-Id": session, name: value} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	defer func() {
		if recover() != nil {
			status = http.StatusInternalServerError
		}
	}()
	s.ServeHTTP(w, r)
	return w.Code
}

// If the SDK refuses a DELETE of a session, the session still works: only the SDK decides
// whether a session ends.
func TestASessionWorksAfterARefusedDelete(t *testing.T) {
	server := newServer()
	s := &olderServer{Server: server}
	t.Cleanup(s.closeAll)
	handler := gosdk.Handler(func(r *http.Request) *mcp.Server {
		if r.Header.Get("X-Panic") != "" {
			panic("no server")
		}
		return server
	}, &gosdk.HandlerOptions{Principal: byHeader, Logger: s.log.logger(), HTTP: mcp.StreamableHTTPOptions{CrossOriginProtection: http.NewCrossOriginProtection()}})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer one")
		}
		auth.RequireBearerToken(verify, nil)(handler).ServeHTTP(w, r)
	})
	protectOlder(t, s)
	server.AddTool(&mcp.Tool{Name: "works", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond): // waits a little, because a cancellation would come from another goroutine
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it works"}}}, nil
		}
	})
	running, work := waitingWork(t)
	server.AddTool(&mcp.Tool{Name: "waits", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, work(ctx)
	})
	session := s.open(t, "alice")
	for _, refused := range []struct {
		name, value string
		want        int
	}{
		{"Mcp-Protocol-Version", "1999-01-01", http.StatusBadRequest},
		{"Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		{"Authorization", "Bearer two", http.StatusForbidden},
		{"X-Panic", "yes", http.StatusInternalServerError},
	} {
		for range 2 {
			// In some releases of the SDK, a DELETE does not call getServer. Then nothing panics,
			// and the session ends.
			if status := s.deleteWith(session, refused.name, refused.value); status == http.StatusNoContent && refused.name == "X-Panic" {
				session = s.open(t, "alice")
			} else if status != refused.want {
				t.Fatalf("%s: %s: %d, want %d", refused.name, refused.value, status, refused.want)
			}
			if w := s.send("POST", "alice", session, callOf("works")); !strings.Contains(w.Body.String(), "it works") {
				t.Errorf("after a DELETE refused for %s: %s", refused.name, describe(w))
			}
		}
	}
	go s.send("POST", "alice", session, callOf("waits"))
	<-running
	if w := s.send("DELETE", "alice", session, ""); w.Code != http.StatusNoContent || s.count() != 0 {
		t.Errorf("%s, and %d sessions", describe(w), s.count())
	}
}

// A DELETE cancels the session's calls, and the SDK waits until they have ended. If a second DELETE
// is refused during this wait, the calls stay cancelled. This includes a call that has not reached
// the middleware yet.
func TestARefusedDeleteRevivesNoCallOfADeletedSession(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{})
	protectOlder(t, s)
	stopped, lateEnded := make(chan struct{}), make(chan struct{})
	first, work := waitingWork(t)
	s.AddTool(&mcp.Tool{Name: "first", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		err := work(ctx)
		close(stopped)
		<-lateEnded // do not return earlier: some releases of the SDK cancel all calls when they cannot send one call's result
		return nil, err
	})
	_, late := waitingWork(t)
	s.AddTool(&mcp.Tool{Name: "late", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		defer close(lateEnded)
		return nil, late(ctx)
	})
	held, release := make(chan struct{}), make(chan struct{})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { // runs before the middleware of Protect
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok && call.Params.Name == "late" {
				close(held)
				<-release
			}
			return next(ctx, method, req)
		}
	})
	session := s.open(t, "alice")
	go s.send("POST", "alice", session, callOf("first"))
	<-first
	go s.send("POST", "alice", session, callOf("late"))
	<-held
	deleted := make(chan int)
	go func() { deleted <- s.send("DELETE", "alice", session, "").Code }()
	<-stopped // the DELETE has cancelled the first call, and now waits for both calls
	if status := s.deleteWith(session, "Mcp-Protocol-Version", "1999-01-01"); status != http.StatusBadRequest {
		t.Errorf("%d", status)
	}
	close(release)
	if status := <-deleted; status != http.StatusNoContent {
		t.Errorf("%d", status)
	}
}

// A DELETE of a session cancels calls of every method, because the SDK waits for all of them
// before it ends the session.
func TestDeletingASessionEndsACallOfAnyMethod(t *testing.T) {
	for method, params := range map[string]string{
		"completion/complete":              `,"params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}}`,
		"tools/list":                       "",
		"prompts/get":                      `,"params":{"name":"p"}`,
		"resources/read":                   `,"params":{"uri":"file:///x"}`,
		"resources/subscribe":              `,"params":{"uri":"file:///x"}`,
		"logging/setLevel":                 `,"params":{"level":"info"}`,
		"ping":                             "",
		"acme/plain":                       `,"params":{"query":"q"}`,
		"notifications/roots/list_changed": "",
	} {
		t.Run(method, func(t *testing.T) {
			s := serveOlder(t, gosdk.HandlerOptions{})
			var calls int
			addMethod[*plainParams](t, s.Server, "acme/plain", &plainResult{}, &calls)
			running, work := waitingWork(t)
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, called string, req mcp.Request) (mcp.Result, error) {
					if called == method {
						return nil, work(ctx)
					}
					return next(ctx, called, req)
				}
			})
			protectOlder(t, s)
			session := s.open(t, "alice")
			id := `"id":7,`
			if strings.HasPrefix(method, "notifications/") {
				id = ""
			}
			go s.send("POST", "alice", session, `{"jsonrpc":"2.0",`+id+`"method":"`+method+`"`+params+`}`)
			<-running
			if w := s.send("DELETE", "alice", session, ""); w.Code != http.StatusNoContent || s.count() != 0 {
				t.Errorf("%s, and %d sessions", describe(w), s.count())
			}
		})
	}
}

// A handler may pass the context of its call when it connects to another server in memory, and may
// keep this connection. A DELETE of the handler's session does not cancel later calls on the
// connection.
func TestDeletingASessionEndsNoCallOfAnotherServer(t *testing.T) {
	other := newServer()
	other.AddTool(&mcp.Tool{Name: "works", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
			return &mcp.CallToolResult{}, nil
		}
	})
	gosdk.Protect(other, boundary(t, &book{}, nil), nil)
	s := serveOlder(t, gosdk.HandlerOptions{})
	protectOlder(t, s)
	var inner *mcp.ClientSession
	s.AddTool(&mcp.Tool{Name: "connects", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		clientSide, serverSide := mcp.NewInMemoryTransports()
		if _, err := other.Connect(ctx, serverSide, nil); err != nil {
			return nil, err
		}
		var err error
		inner, err = revision.Connect(context.WithoutCancel(ctx), mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil), clientSide, revision2025)
		return &mcp.CallToolResult{}, err
	})
	session := s.open(t, "alice")
	if w := s.send("POST", "alice", session, callOf("connects")); w.Code != http.StatusOK || inner == nil {
		t.Fatal(describe(w))
	}
	t.Cleanup(func() { inner.Close() })
	if w := s.send("DELETE", "alice", session, ""); w.Code != http.StatusNoContent {
		t.Error(describe(w))
	}
	if _, err := callTool(t, inner, &mcp.CallToolParams{Name: "works"}); err != nil {
		t.Errorf("the call of the other server: %v", err)
	}
}
