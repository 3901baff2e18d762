package gosdk_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// A flow began on revision 2026-07-28, and its client goes on as an older client, with its token. The call ends when the
// flow ends, although its own first question was asked much later.
func TestAnOlderCallThatGoesOnWithAFlowEndsWithIt(t *testing.T) {
	for name, direct := range map[string]bool{"questions of the result": false, "questions of the handler": true} {
		t.Run(name, func(t *testing.T) {
			gosdk.Bubble(t, func(t *testing.T) {
				server := newServer()
				addTool(server, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					if direct && req.Params.RequestState != "" {
						for range 3 {
							if _, err := req.Session.Elicit(ctx, form("?")); err != nil {
								return nil, err
							}
						}
						return says("done"), nil
					}
					return asks("?", "state"), nil
				})
				gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.MaxFlow = 12 * time.Minute }), nil)
				newer := connectFor(t, server, raw(), revision2026, time.Hour)
				asked, err := newer.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				time.Sleep(9 * time.Minute)
				older := connectFor(t, server, silent(1), revision2025, time.Hour)
				_, err = older.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool", RequestState: asked.RequestState, InputResponses: accepted})
				if lived := time.Since(began); err == nil || lived != 12*time.Minute {
					t.Errorf("the flow ends after %v: %v", lived, err)
				}
				newer.Close()
				older.Close()
			})
		})
	}
}

// A handler's own goroutine may ask after the call, over a transport that lets it: such a question is in no flow.
func TestAQuestionAfterTheCallIsAsked(t *testing.T) {
	gosdk.Bubble(t, func(t *testing.T) {
		server, ended, asked := newServer(), make(chan struct{}), make(chan error)
		addTool(server, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			go func() {
				<-ended
				_, err := req.Session.Elicit(context.WithoutCancel(ctx), form("?"))
				asked <- err
			}()
			return says("started"), nil
		})
		gosdk.Protect(server, boundary(t, &book{}, nil), nil)
		session := connectFor(t, server, answering(), revision2025, time.Hour)
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"}); err != nil {
			t.Fatal(err)
		}
		close(ended)
		if err := <-asked; err != nil {
			t.Error(err)
		}
		session.Close()
	})
}

// If the time of a request ends before the SDK has written anything, the server sends the headers by itself.
func TestTheIDOfASessionIsSealedAlsoIfNothingIsWritten(t *testing.T) {
	server, answered := newServer(), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(c context.Context, method string, req mcp.Request) (mcp.Result, error) {
			defer func() { cancel(); <-answered }()
			return next(c, method, req)
		}
	})
	s := serveOlder(t, server, nil)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(initialize))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "*/*")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	id := w.Result().Header.Get("Mcp-Session-Id")
	close(answered)
	if !strings.HasPrefix(id, "mh1.") {
		t.Errorf("the id is %q", id)
	}
}

// The SDK does not even send a form to a client without elicitation. So there is no answer that does not fit.
func TestAnOlderClientThatCannotBeAskedLearnsWhy(t *testing.T) {
	b, server := &book{}, newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	_, err := callTool(t, connect(t, server, nil, revision2025), &mcp.CallToolParams{Name: "steps"})
	if err == nil || !strings.Contains(err.Error(), "client does not support elicitation") || strings.Contains(b.String(), "not accepted") {
		t.Errorf("%v\n%s", err, b)
	}
}
