package rotation_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// roundRobin sends every request to the next replica. It counts the connections that broke: if a
// connection breaks, its call says nothing about the token.
type roundRobin struct {
	hosts     []string
	next      atomic.Uint64
	broken    atomic.Int64
	transport http.RoundTripper
}

func (r *roundRobin) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Host = r.hosts[r.next.Add(1)%uint64(len(r.hosts))]
	request.Header.Set("Authorization", "Bearer alice")
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		r.broken.Add(1)
		return nil, err
	}
	response.Body = &body{response.Body, &r.broken}
	return response, nil
}

type body struct {
	io.ReadCloser
	broken *atomic.Int64
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.broken.Add(1)
	}
	return n, err
}

// client is a session of the SDK's client, and the network through which it sends.
type client struct {
	*mcp.ClientSession
	network *roundRobin
}

// connect makes a client. If automatic is true, the client answers questions itself, and one call
// completes a flow. Otherwise the caller makes every round.
func connect(t *testing.T, hosts []string, automatic bool) *client {
	t.Helper()
	c, err := dial(t, hosts, automatic)
	must(t, err)
	return c
}

func dial(t *testing.T, hosts []string, automatic bool) (*client, error) {
	options := &mcp.ClientOptions{ElicitationHandler: answer}
	if !automatic {
		options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	network := &roundRobin{hosts: hosts, transport: transport}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "rotation", Version: "1.0.0"}, options).
		Connect(context.Background(), &mcp.StreamableClientTransport{
			Endpoint:             "http://127.0.0.1/mcp",
			HTTPClient:           &http.Client{Transport: network},
			DisableStandaloneSSE: true, MaxRetries: -1,
		}, nil)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { session.Close() })
	return &client{session, network}, nil
}

func answer(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	if request.Params.Message == "In which region?" {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "eu"}}, nil
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
}

var arguments = map[string]any{"service": "frontend", "version": "1.4.2"}

// flow makes one honest call, with two questions and three rounds. broken is true if the call
// failed because a connection broke.
func (c *client) flow() (broken bool, err error) {
	before := c.network.broken.Load()
	result, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: "deploy", Arguments: arguments})
	if err != nil {
		return c.network.broken.Load() > before, err
	}
	const want = "deployed frontend 1.4.2 in eu, 10% of traffic"
	if len(result.Content) != 1 || result.Content[0].(*mcp.TextContent).Text != want {
		return false, fmt.Errorf("the flow ended with %+v", result)
	}
	return false, nil
}
