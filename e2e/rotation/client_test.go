package rotation_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// roundRobin sends every request to the next replica.
type roundRobin struct {
	hosts     []string
	next      atomic.Uint64
	transport http.RoundTripper
}

func (r *roundRobin) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Host = r.hosts[r.next.Add(1)%uint64(len(r.hosts))]
	request.Header.Set("Authorization", "Bearer alice")
	return r.transport.RoundTrip(request)
}

// connect makes a client. One that answers completes a flow in one call; the
// other leaves every round to the caller.
func connect(t *testing.T, hosts []string, answers bool) *mcp.ClientSession {
	t.Helper()
	options := &mcp.ClientOptions{ElicitationHandler: answer}
	if !answers {
		options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "rotation", Version: "1.0.0"}, options)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{
		Endpoint:             "http://127.0.0.1/mcp",
		HTTPClient:           &http.Client{Transport: &roundRobin{hosts: hosts, transport: transport}},
		DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	must(t, err)
	t.Cleanup(func() { session.Close() })
	return session
}

func answer(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if request.Params.Message == "In which region?" {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "eu"}}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
}

var arguments = map[string]any{"service": "frontend", "version": "1.4.2"}

// flow is one honest call: two questions, three rounds.
func flow(session *mcp.ClientSession) error {
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "deploy", Arguments: arguments})
	if err != nil {
		return err
	}
	const want = "deployed frontend 1.4.2 in eu, 10% of traffic"
	if len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != want {
		return fmt.Errorf("the flow ended with %+v", result)
	}
	return nil
}
