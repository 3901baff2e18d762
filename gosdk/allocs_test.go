package gosdk_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal/gosdk"
)

// twoCalls returns a function that makes a call whose result asks a question, and then
// the retry with the answer.
func twoCalls(t *testing.T, middleware mcp.Middleware, extra *mcp.RequestExtra) func() {
	ctx := context.Background()
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "asks", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}, RequestState: "asked"}, nil
	})
	// Only the SDK can mark a result as one that asks, so this result comes from a server.
	asking, err := callTool(t, connect(t, server, raw(), revision2026), &mcp.CallToolParams{Name: "asks"})
	if err != nil || !asking.NeedsInput() {
		t.Fatal(asking, err)
	}
	asking.Meta = nil // the SDK adds it after the middleware has run
	complete := &mcp.CallToolResult{}
	handler := middleware(func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		if len(req.(*mcp.CallToolRequest).Params.InputResponses) == 0 {
			return asking, nil
		}
		return complete, nil
	})
	meta := mcp.Meta{mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": map[string]any{}}}
	call := func(state string, answers mcp.InputResponseMap) *mcp.CallToolResult {
		result, err := handler(ctx, "tools/call", &mcp.CallToolRequest{Extra: extra, Params: &mcp.CallToolParamsRaw{
			Name: "asks", Arguments: []byte(`{"a":1}`), Meta: meta, RequestState: state, InputResponses: answers,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return result.(*mcp.CallToolResult)
	}
	return func() {
		first := call("", nil)
		if second := call(first.RequestState, accepted); second != complete {
			t.Fatal("asks again")
		}
	}
}

func TestACallThatAsksAndItsRetryPayFewAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold")
	}
	empty := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(ctx, method, req)
		}
	}
	user := &mcp.RequestExtra{
		Header:    http.Header{"Authorization": {"Bearer x"}},
		TokenInfo: &auth.TokenInfo{UserID: "u", Extra: map[string]any{"iss": "i", "client_id": "c"}},
	}
	for name, c := range map[string]struct {
		extra *mcp.RequestExtra
		most  float64
	}{
		"no user": {nil, 6},
		"a user":  {user, 8},
	} {
		base := testing.AllocsPerRun(500, twoCalls(t, empty, c.extra))
		receiving, _ := gosdk.Middleware(boundary(t, &book{}, nil), nil)
		if n := testing.AllocsPerRun(500, twoCalls(t, receiving, c.extra)) - base; n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, c.most)
		}
	}
}
