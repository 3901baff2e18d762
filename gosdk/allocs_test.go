//go:build !race

package gosdk_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

func protecting(t testing.TB, options *gosdk.Options) mcp.Middleware {
	return gosdk.Receiving(gosdk.NewProtector(boundary(t, &book{}, nil), options))
}

// askingOnce returns a function that calls a tool through the middleware. Each run of the tool
// calls seen(answers) with the answers that the run got. A run without a state asks the
// question q1.
func askingOnce(t testing.TB, middleware mcp.Middleware, extra *mcp.RequestExtra, seen func(mcp.InputResponseMap)) func(state string, answers mcp.InputResponseMap) *mcp.CallToolResult {
	server := newServer()
	server.AddTool(&mcp.Tool{Name: "asks", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}, RequestState: "asked"}, nil
	})
	// Only the SDK can make a result that asks, so the test gets one from a server.
	asking, err := callTool(t, connect(t, server, raw(), revision2026), &mcp.CallToolParams{Name: "asks"})
	if err != nil || !asking.NeedsInput() {
		t.Fatal(asking, err)
	}
	asking.Meta = nil // the SDK adds it after the middleware has run
	complete := &mcp.CallToolResult{}
	handler := middleware(func(_ context.Context, _ string, req mcp.Request) (mcp.Result, error) {
		params := req.(*mcp.CallToolRequest).Params
		seen(params.InputResponses)
		if params.RequestState == "" {
			return asking, nil
		}
		return complete, nil
	})
	ctx := context.Background()
	meta := mcp.Meta{mcp.MetaKeyClientCapabilities: map[string]any{"elicitation": map[string]any{}}}
	return func(state string, answers mcp.InputResponseMap) *mcp.CallToolResult {
		result, err := handler(ctx, "tools/call", &mcp.CallToolRequest{Extra: extra, Params: &mcp.CallToolParamsRaw{
			Name: "asks", Arguments: []byte(`{"a":1}`), Meta: meta, RequestState: state, InputResponses: answers,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return result.(*mcp.CallToolResult)
	}
}

// A call that asks allocates its record, its token and its result. The retry allocates its
// record, the opened state, and the request that the handler gets. If there is a user, each of
// the two calls also allocates the user's name. Under the race detector, where pools drop what they
// hold, this file is left out.
func TestACallThatAsksAndItsRetryPaySixAllocations(t *testing.T) {
	empty := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(ctx, method, req)
		}
	}
	count := func(middleware mcp.Middleware, extra *mcp.RequestExtra) float64 {
		answered := 0
		call := askingOnce(t, middleware, extra, func(answers mcp.InputResponseMap) { answered += len(answers) })
		n := testing.AllocsPerRun(500, func() { call(call("", nil).RequestState, accepted) })
		if answered != 501 { // 500 runs, and one to warm up
			t.Errorf("%d answers reached the handler", answered)
		}
		return n
	}
	for name, c := range map[string]struct {
		options *gosdk.Options
		extra   *mcp.RequestExtra
		most    float64
	}{
		"no user": {nil, nil, 6},
		"the user of an access token": {nil, &mcp.RequestExtra{
			Header:    http.Header{"Authorization": {"Bearer x"}},
			TokenInfo: &auth.TokenInfo{UserID: "u", Extra: map[string]any{"iss": "i", "client_id": "c"}},
		}, 8},
		"a user that Options.User names": {&gosdk.Options{
			User: func(context.Context, *mcp.RequestExtra) (string, error) { return "alice", nil },
		}, nil, 8},
	} {
		if n := count(protecting(t, c.options), c.extra) - count(empty, c.extra); n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", name, n, c.most)
		}
	}
}
