package gosdk_test

import (
	"context"
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
