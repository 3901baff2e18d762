package gosdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// Alice is asked on her session, and Bob, who has the id of the session, answers. If he is not
// refused, the log has an error that says what to do.
func TestNobodyAnswersForAnotherInSilence(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		user, issuer, _ := strings.Cut(token, "/")
		return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour), Extra: map[string]any{"iss": issuer}}, nil
	}
	ofHeader := func(_ context.Context, req mcp.Request) (string, error) {
		return req.GetExtra().Header.Get("X-User"), nil
	}
	for name, c := range map[string]struct {
		named   bool // Options.Principal names the caller
		nobodys bool // Options.Principal returns "", and AllowAnonymous is set
		bearer  bool
		handler func(func(*http.Request) *mcp.Server, *book) http.Handler
		says    string // the error in the log, or "" if there is none
		refuses bool   // the call is refused before anybody is asked
	}{
		"the SDK's handler": {named: true, says: "serve it with gosdk.Handler", handler: func(get func(*http.Request) *mcp.Server, _ *book) http.Handler {
			return mcp.NewStreamableHTTPHandler(get, nil)
		}},
		"the SDK's handler, two issuers": {bearer: true, says: "serve it with gosdk.Handler", handler: func(get func(*http.Request) *mcp.Server, _ *book) http.Handler {
			return mcp.NewStreamableHTTPHandler(get, nil)
		}},
		"ours, without a principal": {named: true, says: "set HandlerOptions.Principal too", handler: func(get func(*http.Request) *mcp.Server, b *book) http.Handler {
			return gosdk.Handler(get, &gosdk.HandlerOptions{Logger: b.logger()})
		}},
		"ours, with one that names nobody": {named: true, refuses: true, says: "make it name the same users as Options.Principal", handler: func(get func(*http.Request) *mcp.Server, b *book) http.Handler {
			return gosdk.Handler(get, &gosdk.HandlerOptions{Logger: b.logger(), Principal: func(r *http.Request) (string, error) { return r.Header.Get("X-Usr"), nil }})
		}},
		"ours, with a coarser one": {named: true, refuses: true, says: "make both return the same name for a user", handler: func(get func(*http.Request) *mcp.Server, b *book) http.Handler {
			return gosdk.Handler(get, &gosdk.HandlerOptions{Logger: b.logger(), Principal: func(*http.Request) (string, error) { return "tenant-7", nil }})
		}},
		"ours, where a call is nobody's": {named: true, nobodys: true, refuses: true, says: "make both return the same name for a user", handler: func(get func(*http.Request) *mcp.Server, b *book) http.Handler {
			return gosdk.Handler(get, &gosdk.HandlerOptions{Logger: b.logger(), Principal: func(*http.Request) (string, error) { return "tenant-7", nil }})
		}},
		"ours": {named: true, handler: func(get func(*http.Request) *mcp.Server, b *book) http.Handler {
			return gosdk.Handler(get, &gosdk.HandlerOptions{Logger: b.logger(), Principal: func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil }})
		}},
		"ours, two issuers": {bearer: true, handler: func(get func(*http.Request) *mcp.Server, b *book) http.Handler {
			return gosdk.Handler(get, &gosdk.HandlerOptions{Logger: b.logger()})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b, server := &book{}, newServer()
			options := &gosdk.Options{Logger: b.logger()}
			if c.named {
				options.Principal = ofHeader
			}
			if c.nobodys {
				options.Principal, options.AllowAnonymous = func(context.Context, mcp.Request) (string, error) { return "", nil }, true
			}
			gosdk.Protect(server, boundary(t, b, func(config *tripseal.Config) { config.RequireUser, config.TTL = !c.nobodys, 2*time.Second }), options)
			addSteps(server, "steps", 1)
			handler := c.handler(func(*http.Request) *mcp.Server { return server }, b)
			if c.bearer {
				handler = auth.RequireBearerToken(verify, nil)(handler)
			}
			web := httptest.NewServer(handler)
			defer web.Close()
			defer func() {
				for session := range server.Sessions() {
					session.Close()
				}
			}()
			send := func(user, session, body string) *http.Response {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", "application/json, text/event-stream")
				r.Header.Set("X-User", user)
				r.Header.Set("Authorization", "Bearer alice/"+user) // bob's token has the user name alice too, but it is from another issuer
				if session != "" {
					r.Header.Set("Mcp-Session-Id", session)
				}
				response, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				return response
			}
			opened := send("alice", "", strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1))
			id := opened.Header.Get("Mcp-Session-Id")
			opened.Body.Close()
			send("alice", id, initialized).Body.Close()
			called := send("alice", id, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"steps","arguments":{}}}`)
			defer called.Body.Close()
			asked, answered := false, false
			for lines := bufio.NewScanner(called.Body); lines.Scan(); {
				data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
				if !ok || !bytes.Contains(data, []byte("elicitation/create")) {
					continue
				}
				asked = true
				var question struct{ ID json.RawMessage }
				if err := json.Unmarshal(data, &question); err != nil {
					t.Fatal(err)
				}
				result := send("bob", id, `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"action":"accept","content":{"value":"bob"}}}`)
				answered = result.StatusCode < 300
				result.Body.Close()
			}
			if asked == c.refuses || answered != (c.says != "" && !c.refuses) {
				t.Errorf("alice was asked: %v; bob answered: %v", asked, answered)
			}
			if c.says != "" && (!strings.Contains(b.String(), c.says) || !strings.Contains(b.String(), "level=ERROR")) || c.says == "" && strings.Contains(b.String(), "level=ERROR") {
				t.Errorf("the log: %s", b)
			}
		})
	}
}

// A handler connects to another server in memory, with the context of a call on alice's session.
// That server names its callers in its own way: the name need not be that of the session's
// owner.
func TestAServerBehindAnotherIsNotHeldToItsSessions(t *testing.T) {
	b, inner, outer := &book{}, newServer(), newServer()
	gosdk.Protect(inner, boundary(t, b, nil), &gosdk.Options{
		Logger:    b.logger(),
		Principal: func(context.Context, mcp.Request) (string, error) { return "gateway", nil },
	})
	addSteps(inner, "steps", 1)
	outer.AddTool(&mcp.Tool{Name: "gateway", InputSchema: object}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		clientSide, serverSide := mcp.NewInMemoryTransports()
		if _, err := inner.Connect(ctx, serverSide, nil); err != nil {
			return nil, err
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "gateway", Version: "1"}, answering()).Connect(ctx, clientSide, nil)
		if err != nil {
			return nil, err
		}
		defer session.Close()
		return session.CallTool(ctx, &mcp.CallToolParams{Name: "steps"})
	})
	s := serveServer(t, outer, gosdk.HandlerOptions{})
	answer := s.send(http.MethodPost, "alice", s.open(t, "alice"), `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"gateway","arguments":{}}}`)
	if !strings.Contains(answer.Body.String(), "done after 1") || strings.Contains(b.String(), "level=ERROR") {
		t.Errorf("%d %s\n%s", answer.Code, answer.Body, b)
	}
}

// If a tenant owns the session and alice would own the cursor, the call gets no cursor:
// HandlerOptions.Principal and Options.Principal must return the same name.
func TestACursorIsRefusedWhereTheSessionHasAnotherName(t *testing.T) {
	for owner, refused := range map[string]bool{"alice": false, "tenant-7": true} {
		b := &book{}
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
		protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{
			Logger:    b.logger(),
			Principal: func(_ context.Context, r mcp.Request) (string, error) { return r.GetExtra().Header.Get("X-User"), nil },
		})
		addSteps(server, "steps", 1)
		gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) {
			return []int{1}, new(int), nil
		}, nil)
		s := serveServer(t, server, gosdk.HandlerOptions{Principal: func(*http.Request) (string, error) { return owner, nil }})
		id := s.open(t, "alice")
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`,
			`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"pages","arguments":{}}}`,
		} {
			answer := s.send(http.MethodPost, "alice", id, body).Body.String()
			if strings.Contains(answer, "nextCursor\":") == refused || refused && !strings.Contains(b.String(), "make both return the same name for a user") {
				t.Errorf("owned by %s: %s\n%s", owner, answer, b)
			}
		}
	}
}

// If only HandlerOptions.Principal tells users apart, states and cursors are bound to nobody. The log has an error.
func TestStatesThatAreNobodysBesideNamedSessionsAreSaid(t *testing.T) {
	b, server := &book{}, newServer()
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	addSteps(server, "steps", 1)
	byHeader := func(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil }
	web := httptest.NewServer(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{Logger: b.logger(), Principal: byHeader}))
	t.Cleanup(web.Close)
	if _, err := callTool(t, dial(t, web.URL, "alice", raw(), revision2026), &mcp.CallToolParams{Name: "steps"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "level=ERROR") || !strings.Contains(b.String(), "set Options.Principal too") {
		t.Errorf("the log: %s", b)
	}
}

// An older client cannot subscribe with subscriptions/listen. No older revision has
// subscriptions, and in some releases of the SDK a session with a subscription never ends.
func TestAnOlderClientCannotListen(t *testing.T) {
	server := newServer()
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	addSteps(server, "steps", 1)
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{MaxSessions: 1, MaxAnonymousSessions: 1})
	send := func(method, session, body string) *httptest.ResponseRecorder {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // otherwise a session that listens would block the test
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	const listen = `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}`
	for range 3 {
		id := send(http.MethodPost, "", initialize).Header().Get("Mcp-Session-Id")
		if answer := send(http.MethodPost, id, listen); !strings.Contains(answer.Body.String(), "-32601") {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		if answer := send(http.MethodDelete, id, ""); answer.Code != http.StatusNoContent {
			t.Fatalf("the session does not end: %d %s", answer.Code, answer.Body)
		}
	}
}

// A newer client has no session, even if it sends an Mcp-Session-Id header. Such a header must
// not make the log report a wrong error in place of the right one.
func TestAStraySessionHeaderHidesNoError(t *testing.T) {
	for _, stray := range []bool{false, true} {
		b, server := &book{}, newServer()
		gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{
			Logger:    b.logger(),
			Principal: func(_ context.Context, r mcp.Request) (string, error) { return r.GetExtra().Header.Get("X-User"), nil },
		})
		addSteps(server, "t", 1)
		handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{Logger: b.logger()})
		send := func(body string, headers map[string]string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("X-User", "alice")
			for name, value := range headers {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w
		}
		if stray {
			send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
				`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`,
				map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "t", "Mcp-Session-Id": "x"})
		}
		id := send(initialize, nil).Header().Get("Mcp-Session-Id")
		send(initialized, map[string]string{"Mcp-Session-Id": id})
		send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t"}}`, map[string]string{"Mcp-Session-Id": id}) // this client cannot be asked
		if log := b.String(); !strings.Contains(log, "set HandlerOptions.Principal too") || strings.Contains(log, "serve it with gosdk.Handler") {
			t.Errorf("with a stray header %v, the log: %s", stray, log)
		}
	}
}
