package gosdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// If Options.Principal returns "", nothing is sealed unless AllowAnonymous is set. All callers may
// have the name "" by mistake, for example if an authentication middleware is in the wrong place.
func TestAnEmptyNameIsRefusedUnlessExpected(t *testing.T) {
	for _, expected := range []bool{false, true} {
		user := ""
		b := &book{}
		server := listServer(150, "", 0)
		tool := addSteps(server, "steps", 1)
		gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{
			Principal:      func(context.Context, mcp.Request) (string, error) { return user, nil },
			AllowAnonymous: expected, Logger: b.logger(),
		})
		session := connect(t, server, raw(), revision2026)
		asked, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
		if (err == nil) != expected || err != nil && wire(err) != internal {
			t.Errorf("expected %v: sealed for nobody: %v", expected, err)
		}
		if _, err := session.ListTools(t.Context(), nil); (err == nil) != expected {
			t.Errorf("expected %v: a cursor for nobody: %v", expected, err)
		}
		if said := strings.Contains(b.String(), "set Options.AllowAnonymous"); said == expected {
			t.Errorf("expected %v: the log: %s", expected, b)
		}
		user = "alice"
		if asked == nil {
			if asked, err = callTool(t, session, &mcp.CallToolParams{Name: "steps"}); err != nil {
				t.Fatal(err)
			}
			user = ""
		}
		runs := len(tool.log())
		_, err = callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: asked.RequestState, InputResponses: accepted})
		if wire(err) != invalidState || len(tool.log()) != runs {
			t.Errorf("expected %v: somebody's token and nobody's call, or the reverse: %v", expected, err)
		}
	}
}

func TestAnonymousCallersThatAreExpectedAreNoWarning(t *testing.T) {
	b := &book{}
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{AllowAnonymous: true, Logger: b.logger()})
	if _, err := callTool(t, dial(t, serve(t, server, nil), "x", raw(), revision2026), &mcp.CallToolParams{Name: "steps"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "nobody is authenticated") {
		t.Errorf("the log: %s", b)
	}
}

// If no caller over HTTP is authenticated, the log says so once. It also says so if a server
// authenticates users in its own way, but does not set Options.Principal.
func TestAnHTTPServerThatAuthenticatesNobodySaysSoOnce(t *testing.T) {
	for name, handler := range map[string]func(func(*http.Request) *mcp.Server) http.Handler{
		"ours": func(get func(*http.Request) *mcp.Server) http.Handler { return gosdk.Handler(get, nil) },
		"the SDK's": func(get func(*http.Request) *mcp.Server) http.Handler {
			return mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
		},
		"SSE":     func(get func(*http.Request) *mcp.Server) http.Handler { return mcp.NewSSEHandler(get, nil) },
		"no HTTP": nil,
	} {
		for what, send := range map[string]func(*mcp.ClientSession) error{
			"a state": func(session *mcp.ClientSession) error {
				_, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
				return err
			},
			"a list cursor": func(session *mcp.ClientSession) error {
				page, err := session.ListTools(t.Context(), nil)
				if err == nil && page.NextCursor == "" {
					err = errors.New("there is one page")
				}
				return err
			},
		} {
			for _, expected := range []bool{false, true} {
				b := &book{}
				server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
				gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), AllowAnonymous: expected})
				addSteps(server, "steps", 1)
				addSteps(server, "others", 1)
				var session *mcp.ClientSession
				switch {
				case handler == nil:
					session = connect(t, server, answering(), revision2025)
				default:
					web := httptest.NewServer(handler(func(*http.Request) *mcp.Server { return server }))
					t.Cleanup(web.Close)
					var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: web.URL}
					if name == "SSE" {
						transport = &mcp.SSEClientTransport{Endpoint: web.URL}
					}
					var err error
					if session, err = mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, answering()).Connect(t.Context(), transport, nil); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					if err := send(session); err != nil {
						t.Fatal(name, what, err)
					}
				}
				session.Close()
				want := 1
				if handler == nil || expected {
					want = 0
				}
				if said := strings.Count(b.String(), "nobody is authenticated"); said != want {
					t.Errorf("%s, %s, anonymous callers expected: %v: said %d times: %s", name, what, expected, said, b)
				}
			}
		}
	}
}

// An access token is refused if its iss or client_id is not a string. Such a value must not count
// as absent.
func TestAnIssuerOrClientThatIsNoStringIsRefused(t *testing.T) {
	for _, name := range []string{"iss", "client_id"} {
		for _, value := range []any{5, nil, []string{"a"}, map[string]any{}, true} {
			info := &auth.TokenInfo{UserID: "u", Extra: map[string]any{name: value}, Expiration: time.Now().Add(time.Hour)}
			if principal, err := gosdk.TokenUser(info); err == nil || principal != "" {
				t.Errorf("%s = %v is the principal %q", name, value, principal)
			}
			b := &book{}
			server := newServer()
			addSteps(server, "steps", 1)
			gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
			url := serve(t, server, func(context.Context, string, *http.Request) (*auth.TokenInfo, error) { return info, nil })
			if _, err := callTool(t, dial(t, url, "x", raw(), revision2026), &mcp.CallToolParams{Name: "steps"}); wire(err) != internal {
				t.Errorf("%s = %v: sealed: %v", name, value, err)
			}
		}
	}
}

// If an option names a tool that the server does not list, the log says so once, after the last
// page of the list.
func TestToolsThatDoNotExistAreSaidOnce(t *testing.T) {
	b := &book{}
	server := listServer(250, "", 0) // the tools n0000 to n0249, on three pages
	gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) {
		c.Replay, c.ReplayTools = failingStore{fail: func() error { return nil }}, []string{"n0249", "delpoy"}
	}), &gosdk.Options{Logger: b.logger(), Unsolicited: []string{"n0001", "gone"}})
	said := func() int { return strings.Count(b.String(), "names a tool that this user cannot call") }
	session := connect(t, server, nil, revision2026)
	first, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if said() != 0 {
		t.Errorf("before the last page: %s", b)
	}
	second, err := session.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: first.NextCursor})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := session.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: second.NextCursor}); err != nil {
			t.Fatal(err)
		}
	}
	if log := b.String(); said() != 2 || !strings.Contains(log, "tool=delpoy") || !strings.Contains(log, "tool=gone") || !strings.Contains(log, "ReplayTools") {
		t.Errorf("said %d times: %s", said(), log)
	}
}

// A replica that has served only the last page of the list does not warn of a tool that is
// missing there: the tool may be on an earlier page.
func TestAReplicaThatSawOnlyTheLastPageSaysNothing(t *testing.T) {
	keys := tripseal.Ephemeral()
	replica := func(b *book) *mcp.ClientSession {
		server := listServer(150, "", 0)
		gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.Keys = keys }), &gosdk.Options{Logger: b.logger(), Unsolicited: []string{"n0001"}})
		return connect(t, server, nil, revision2026)
	}
	b := &book{}
	first, err := replica(&book{}).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica(b).ListTools(t.Context(), &mcp.ListToolsParams{Cursor: first.NextCursor}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "names a tool") {
		t.Errorf("the log: %s", b)
	}
}

// The adapter looks up the default logger whenever it logs. The test sets the default only after
// Protect.
func TestTheAdaptersDefaultLoggerIsTheOneOfToday(t *testing.T) {
	server := newServer()
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test"})
	if err != nil {
		t.Fatal(err)
	}
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("hush") })
	gosdk.Protect(server, boundary, nil)
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	session := connect(t, server, raw(), revision2026)
	callTool(t, session, &mcp.CallToolParams{Name: "tool"})
	callTool(t, session, &mcp.CallToolParams{Name: "tool", RequestState: "ms1.x"})
	session.ListTools(t.Context(), &mcp.ListToolsParams{Cursor: "mc1.x"})
	session.Close()
	for _, want := range []string{"level=ERROR msg=\"gosdk: a handler panicked\"", "level=WARN msg=\"tripseal: token rejected\"", "level=WARN msg=\"tripseal: cursor rejected\""} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log: %s", want, fmt.Sprint(log.String()))
		}
	}
}

// An access token that is only in the context does not name the caller: the context may come from
// the request that opened the session.
func TestTheTokenOfAnotherRequestDoesNotCount(t *testing.T) {
	var opener context.Context
	capture := auth.RequireBearerToken(byName, nil)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { opener = r.Context() }))
	request := httptest.NewRequest("POST", "/", nil)
	request.Header.Set("Authorization", "Bearer alice")
	capture.ServeHTTP(httptest.NewRecorder(), request)
	if opener == nil {
		t.Fatal("the bearer middleware let nobody through")
	}
	for name, c := range map[string]struct {
		ctx    context.Context
		extra  *mcp.RequestExtra
		refuse bool
	}{
		"no headers":             {opener, &mcp.RequestExtra{}, true},
		"nothing at all":         {opener, nil, true},
		"headers, and no token":  {opener, &mcp.RequestExtra{Header: http.Header{}}, false},
		"nothing, and no opener": {t.Context(), nil, false},
	} {
		user, err := gosdk.CallerOf(c.ctx, &mcp.ListToolsRequest{Extra: c.extra})
		if user != "" || (err != nil) != c.refuse {
			t.Errorf("%s: %q, %v", name, user, err)
		}
	}
}

// In this test, only a header tells the users apart. If only Options.Principal reads the header,
// the sessions of older clients are not bound to these users. If only HandlerOptions.Principal
// reads it, states and cursors are not bound to them. In both cases the log has an error.
func TestOnePrincipalOfTwoIsSaid(t *testing.T) {
	gateway := func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: "gateway", Expiration: time.Now().Add(time.Hour)}, nil
	}
	for _, version := range []string{revision2026, revision2025} {
		for _, token := range []bool{false, true} {
			for _, ofCalls := range []bool{false, true} {
				for _, ofSessions := range []bool{false, true} {
					b := &book{}
					server := newServer()
					options := &gosdk.Options{Logger: b.logger()}
					if ofCalls {
						options.Principal = func(_ context.Context, req mcp.Request) (string, error) {
							return req.GetExtra().Header.Get("Authorization"), nil
						}
					}
					protected := gosdk.Protect(server, boundary(t, b, nil), options)
					addSteps(server, "steps", 1)
					gosdk.AddPagedTool(protected, &mcp.Tool{Name: "pages"}, func(context.Context, *mcp.CallToolRequest, struct{}, *int) ([]int, *int, error) {
						return []int{1}, new(int), nil
					}, nil)
					handlerOptions := &gosdk.HandlerOptions{Logger: b.logger()}
					if ofSessions {
						handlerOptions.Principal = func(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil }
					}
					handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, handlerOptions)
					if token {
						handler = auth.RequireBearerToken(gateway, nil)(handler)
					}
					web := httptest.NewServer(handler)
					t.Cleanup(web.Close)
					session := dial(t, web.URL, "alice", answering(), version)
					for _, tool := range []string{"pages", "steps", "steps"} {
						if _, err := callTool(t, session, &mcp.CallToolParams{Name: tool}); err != nil {
							t.Fatal(err)
						}
					}
					want := map[string]int{"set HandlerOptions.Principal too": 0, "set Options.Principal too": 0}
					switch {
					case ofCalls && !ofSessions && version == revision2025: // a newer client has no session
						want["set HandlerOptions.Principal too"] = 1
					case ofSessions && !ofCalls:
						want["set Options.Principal too"] = 1
					}
					for words, n := range want {
						if said := strings.Count(b.String(), words); said != n || n > 0 && !strings.Contains(b.String(), "level=ERROR") {
							t.Errorf("%s, token %v, of calls %v, of sessions %v: said %q %d times: %s", version, token, ofCalls, ofSessions, words, said, b)
						}
					}
				}
			}
		}
	}
}
