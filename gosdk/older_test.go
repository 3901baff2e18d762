package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
)

// silent is a client that answers the first n questions and none after that.
func silent(n int) *mcp.ClientOptions {
	options := answering()
	answer := options.ElicitationHandler
	options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		if n--; n < 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return answer(ctx, req)
	}
	return options
}

// TestAnOlderClientThatNeverAnswersEndsWithItsToken: whether the SDK asks by itself
// (the first question of a pair) or we do (the second).
func TestAnOlderClientThatNeverAnswersEndsWithItsToken(t *testing.T) {
	for answered := range 3 {
		t.Run(fmt.Sprint(answered, " answered"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &book{}
				server := newServer()
				tool := addSteps(server, "steps", 3)
				gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
				session := connectFor(t, server, silent(answered), revision2025, time.Hour)
				start := time.Now()
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "steps"})
				if waited := time.Since(start); wire(err) != invalidState || waited != 10*time.Minute {
					t.Errorf("after %v: %v", waited, err)
				}
				if !strings.Contains(b.String(), "reason=expired") {
					t.Errorf("the log: %s", b)
				}
				if runs := len(tool.log()); runs != answered+1 {
					t.Errorf("the handler ran %d times", runs)
				}
				session.Close()
			})
		})
	}
}

func TestAQuestionThatAHandlerAsksItselfHasADeadlineToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		var asked []error
		server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for range 2 {
				_, err := req.Session.Elicit(ctx, form("?"))
				asked = append(asked, err)
			}
			return &mcp.CallToolResult{}, nil
		})
		gosdk.Protect(server, boundary(t, &book{}, func(c *mcpseal.Config) { c.TTL = time.Minute }), nil)
		session := connectFor(t, server, silent(1), revision2025, time.Hour)
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "tool"}); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 2 || asked[0] != nil || !errors.Is(asked[1], context.DeadlineExceeded) {
			t.Errorf("%v", asked)
		}
		session.Close()
	})
}

// connectFor is connect for a test with a clock of its own.
func connectFor(t *testing.T, server *mcp.Server, options *mcp.ClientOptions, version string, limit time.Duration) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, options).
		Connect(ctx, clientSide, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// TestAHandWrittenHandlersClientGetsTheSDKsWords: what the SDK says of an answer
// that does not fit the schema is replaced for elicit's handlers alone.
func TestAHandWrittenHandlersClientGetsTheSDKsWords(t *testing.T) {
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	options := answering()
	options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": 5}}, nil
	}
	_, err := callTool(t, connect(t, server, options, revision2025), &mcp.CallToolParams{Name: "steps"})
	if err == nil || !strings.Contains(err.Error(), "does not match requested schema") {
		t.Errorf("%v", err)
	}
}
