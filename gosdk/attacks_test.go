package gosdk_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

const internal = `{"code":-32603,"message":"Internal error"}`

var object = map[string]any{"type": "object"}

// A gateway connects to its back end once, with the context of its first caller. Another user
// may send a later call on this connection, so the back end must not treat the user in that
// context as the caller.
func TestAUserOfTheConnectionIsNotTheCaller(t *testing.T) {
	b := &book{}
	inner := newServer()
	tool := addSteps(inner, "pay", 1)
	gosdk.Protect(inner, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	var once sync.Once
	var back *mcp.ClientSession
	outer := newServer()
	outer.AddTool(&mcp.Tool{Name: "pay", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		once.Do(func() {
			clientSide, serverSide := mcp.NewInMemoryTransports()
			ctx := context.WithoutCancel(ctx)
			if _, err := inner.Connect(ctx, serverSide, nil); err != nil {
				t.Error(err)
			}
			var err error
			if back, err = mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, raw()).Connect(ctx, clientSide, nil); err != nil {
				t.Error(err)
			}
		})
		return back.CallTool(ctx, &mcp.CallToolParams{Name: "pay", RequestState: req.Params.RequestState, InputResponses: req.Params.InputResponses})
	})
	url := serve(t, outer, byName)
	if result, err := callTool(t, dial(t, url, "alice", raw(), revision2026), &mcp.CallToolParams{Name: "pay"}); err == nil {
		t.Errorf("sealed for whoever opened the connection: %v", result)
	}
	back.Close()
	if len(tool.log()) != 1 || !strings.Contains(b.String(), "set Options.User") {
		t.Errorf("%v\n%s", tool.log(), b)
	}
}

// The older SSE transport knows only who opened the stream, not who sent a call. So a call
// with a question fails unless Options.User is set.
func TestTheOlderSSETransportNeedsAPrincipal(t *testing.T) {
	for _, named := range []bool{false, true} {
		b := &book{}
		server := newServer()
		addSteps(server, "steps", 1)
		options := &gosdk.Options{Logger: b.logger()}
		if named {
			options.User = func(ctx context.Context, _ *mcp.RequestExtra) (string, error) {
				return gosdk.TokenUser(auth.TokenInfoFromContext(ctx))
			}
		}
		gosdk.Protect(server, boundary(t, b, nil), options)
		handler := auth.RequireBearerToken(byName, nil)(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return server }, nil))
		web := httptest.NewServer(handler)
		t.Cleanup(web.Close)
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, answering())
		session, err := client.Connect(t.Context(), &mcp.SSEClientTransport{Endpoint: web.URL, HTTPClient: &http.Client{Transport: bearer("alice")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = callTool(t, session, &mcp.CallToolParams{Name: "steps"})
		if (err == nil) != named || !named && !strings.Contains(b.String(), "set Options.User") {
			t.Errorf("with Principal %v: %v\n%s", named, err, b)
		}
		session.Close()
	}
}

// wrapped contains a result of the SDK. It has the same JSON as that result, but another type.
type wrapped struct{ *mcp.CallToolResult }

// A result that is nil or of an unknown type is refused, because it could carry a state that is
// not sealed.
func TestAResultThatNobodyCanLookIntoDoesNotLeave(t *testing.T) {
	for name, result := range map[string]mcp.Result{
		"wrapped":   &wrapped{&mcp.CallToolResult{RequestState: "a secret"}},
		"nil":       nil,
		"typed nil": (*mcp.CallToolResult)(nil),
	} {
		for _, revision := range []string{revision2026, revision2025} {
			b := &book{}
			server := newServer()
			addSteps(server, "steps", 1)
			server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "tools/call" {
						return result, nil
					}
					return next(ctx, method, req)
				}
			})
			gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
			if got, err := callTool(t, connect(t, server, raw(), revision), &mcp.CallToolParams{Name: "steps"}); wireText(err) != internal {
				t.Errorf("%s on %s: %v, %v", name, revision, got, err)
			}
			if !strings.Contains(b.String(), "unknown type was refused") {
				t.Errorf("%s: the log is silent: %s", name, b)
			}
		}
	}
}

func TestASharedResultLeaksNothingToOlderClients(t *testing.T) {
	shared := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}, RequestState: "asked"}
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "shared", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "asked" {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		}
		return shared, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	for _, revision := range []string{revision2026, revision2025} {
		result, err := callTool(t, connect(t, server, answering(), revision), &mcp.CallToolParams{Name: "shared"})
		if err != nil || text(result) != "done" || result.RequestState != "" || result.InputRequests != nil {
			t.Errorf("%s: %+v, %v", revision, result, err)
		}
	}
}

func TestTheBoundarysLimitsHoldForOlderClients(t *testing.T) {
	slow := answering()
	slow.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		time.Sleep(4 * time.Minute)
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x"}}, nil
	}
	for name, c := range map[string]struct {
		config    func(*tripseal.Config)
		questions int
		client    *mcp.ClientOptions
		want      string
		runs      int
	}{
		"nobody, one question":      {func(c *tripseal.Config) { c.RequireUser = true }, 1, answering(), internal, 1},
		"slow answer, one question": {func(c *tripseal.Config) { c.TTL = time.Minute }, 1, slow, invalidState, 1},
		"slow answer, ask again":    {func(c *tripseal.Config) { c.TTL, c.AskAgain = time.Minute, tripseal.AskAgainAlways }, 1, slow, invalidState, 1},
		"slow answer, the second":   {func(c *tripseal.Config) { c.MaxFlow = 6 * time.Minute }, 2, slow, invalidState, 2},
		"five questions in four":    {func(c *tripseal.Config) { c.MaxRounds = 4 }, 5, answering(), internal, 5},
		"five questions in five":    {func(c *tripseal.Config) { c.MaxRounds = 5 }, 5, answering(), "", 6},
	} {
		t.Run(name, func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				server := newServer()
				tool := addSteps(server, "steps", c.questions)
				gosdk.Protect(server, boundary(t, &book{}, c.config), nil)
				session := connectFor(t, server, c.client, revision2025, time.Hour)
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "steps"})
				if c.want == "" && err != nil || c.want != "" && wireText(err) != c.want {
					t.Errorf("%q, %s", text(result), wireText(err))
				}
				if n := len(tool.log()); n != c.runs {
					t.Errorf("the handler ran %d times, want %d", n, c.runs)
				}
				session.Close()
			})
		})
	}
}

// A handler may ask an older client in the middle of a call, as handlers did before there were
// multi round-trip requests. Such questions carry no state, so the limit on rounds does not
// apply to them.
func TestAHandlerMayAskAnOlderClientItself(t *testing.T) {
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "chatty", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for range 30 {
			if _, err := req.Session.Elicit(ctx, form("?")); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	result, err := callTool(t, connect(t, server, answering(), revision2025), &mcp.CallToolParams{Name: "chatty"})
	if err != nil || text(result) != "done" {
		t.Errorf("%q, %v", text(result), err)
	}
}
