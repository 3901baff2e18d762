package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/replay"
)

// singleUse returns a function that configures a boundary so that each token works only once.
func singleUse(t *testing.T) func(*tripseal.Config) {
	t.Helper()
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return func(c *tripseal.Config) { c.Replay = store }
}

// If an older client cancels its call while it is being asked, the log has neither an error nor
// a rejection. The SDK itself asks the first and the third question, and this package asks the
// second.
func TestACancelledCallIsNoFailure(t *testing.T) {
	for round := 1; round <= 3; round++ {
		b, ended := &book{}, make(chan error, 1)
		server := newServer()
		s := addSteps(server, "steps", 4)
		gosdk.Protect(server, boundary(t, b, singleUse(t)), &gosdk.Options{Logger: b.logger()})
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if method == "tools/call" {
					ended <- err
				}
				return result, err
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		options := answering()
		options.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if asked++; asked == round {
				cancel()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x"}}, nil
		}
		session := connect(t, server, options, revision2025)
		session.CallTool(ctx, &mcp.CallToolParams{Name: "steps"})
		if err := <-ended; err == nil {
			t.Errorf("round %d: the call went well", round)
		}
		if log := b.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "reason=") {
			t.Errorf("round %d: the log: %s", round, log)
		}
		if runs := len(s.log()); runs != round {
			t.Errorf("round %d: the handler ran %d times", round, runs)
		}
	}
}

// If a call is cancelled just after the client has answered, the handler does not get the answer. A
// cancelled call cannot spend the token of the question, and a handler gets an answer only if the
// token was spent.
func TestAnAnswerThatComesAfterACancelIsNotUsed(t *testing.T) {
	for round := 1; round <= 3; round++ {
		b := &book{}
		server := newServer()
		s := addSteps(server, "steps", 4)
		var cancel context.CancelFunc
		asked := 0
		server.AddSendingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { // an inner middleware, because Protect is called later
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				result, err := next(ctx, method, req)
				if method == "elicitation/create" {
					if asked++; asked == round {
						cancel()
					}
				}
				return result, err
			}
		})
		gosdk.Protect(server, boundary(t, b, singleUse(t)), &gosdk.Options{Logger: b.logger()})
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/call" {
					ctx, cancel = context.WithCancel(ctx)
				}
				return next(ctx, method, req)
			}
		})
		if _, err := callTool(t, connect(t, server, answering(), revision2025), &mcp.CallToolParams{Name: "steps"}); err == nil {
			t.Errorf("round %d: the call went well", round)
		}
		if runs := len(s.log()); runs != round {
			t.Errorf("round %d: the handler ran %d times", round, runs)
		}
		if log := b.String(); strings.Contains(log, "level=ERROR") {
			t.Errorf("round %d: the log: %s", round, log)
		}
	}
}

// A request of a newer client may be cancelled before its token is spent, or before
// Options.Principal has named the caller. Then the log has a rejection with the reason canceled,
// but no error.
func TestACancelledRequestIsNoFailure(t *testing.T) {
	for _, part := range []string{"store", "principal"} {
		b := &book{}
		server := newServer()
		addSteps(server, "steps", 1)
		options := &gosdk.Options{Logger: b.logger(), AllowAnonymous: true}
		if part == "principal" {
			options.Principal = func(ctx context.Context, _ mcp.Request) (string, error) { return "", ctx.Err() }
		}
		gosdk.Protect(server, boundary(t, b, singleUse(t)), options)
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if r, ok := req.(*mcp.CallToolRequest); ok && r.Params.RequestState != "" {
					gone, cancel := context.WithCancel(ctx)
					cancel()
					ctx = gone
				}
				return next(ctx, method, req)
			}
		})
		_, err := callTool(t, connect(t, server, answering(), revision2026), &mcp.CallToolParams{Name: "steps"})
		if wire(err) != invalidState {
			t.Errorf("%s: %v", part, err)
		}
		if log := b.String(); strings.Contains(log, "level=ERROR") || !strings.Contains(log, "reason=canceled") {
			t.Errorf("%s: the log: %s", part, log)
		}
	}
}

// If HandlerOptions.Principal fails because the client has cancelled the HTTP request, the log
// has no error. If the client has not cancelled it, the log has an error.
func TestAnHTTPRequestThatIsGoneIsNoFailure(t *testing.T) {
	for _, gone := range []bool{true, false} {
		b := &book{}
		handler := gosdk.Handler(func(*http.Request) *mcp.Server { return newServer() }, &gosdk.HandlerOptions{Logger: b.logger(),
			Principal: func(r *http.Request) (string, error) { return "", fmt.Errorf("the directory: %w", context.Canceled) }})
		ctx, cancel := context.WithCancel(t.Context())
		if gone {
			cancel()
		}
		request := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader("{}"))
		request.Header.Set("Mcp-Session-Id", "x")
		handler.ServeHTTP(httptest.NewRecorder(), request)
		cancel()
		if failed := strings.Contains(b.String(), "level=ERROR"); failed == gone {
			t.Errorf("gone %v: the log: %s", gone, b)
		}
	}
}
