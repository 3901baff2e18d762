package gosdk_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal/gosdk"
)

// TestDeletingASessionEndsItsCalls: before the SDK ends a session it waits for its
// calls, and a question that one of them puts meanwhile would wait for its token to
// expire.
func TestDeletingASessionEndsItsCalls(t *testing.T) {
	s := serveOlder(t, gosdk.HandlerOptions{})
	gosdk.Protect(s.Server, boundary(t, &s.log, nil), &gosdk.Options{Logger: s.log.logger(), AllowAnonymous: true,
		Principal: func(_ context.Context, req mcp.Request) (string, error) {
			return req.GetExtra().Header.Get("X-User"), nil
		}})
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
