package democmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
)

// service is one server of the demo. It listens on loopback.
type service struct {
	url string
	web *http.Server

	mu   sync.Mutex
	told string // the last message to the operator
}

// start starts a server with the tools deploy and rollback, which release.NewServer defines.
// If ring is nil, the server is not protected.
func start(ring *tripseal.Ring, audience string, ttl time.Duration, wrap func(http.Handler) http.Handler) (*service, error) {
	s := &service{}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server := release.NewServer()
	var handler http.Handler = mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	if ring != nil {
		boundary, err := tripseal.New(tripseal.Config{Keys: ring, Audience: audience, TTL: ttl, Logger: quiet, Observer: s.observe})
		if err != nil {
			return nil, err
		}
		handler = gosdk.Protect(server, boundary, &gosdk.Options{Logger: quiet}).Handler(nil)
	}
	handler = auth.RequireBearerToken(verify, nil)(handler)
	if wrap != nil {
		handler = wrap(handler)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "http://" + listener.Addr().String() + "/mcp"
	s.web = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go s.web.Serve(listener)
	return s, nil
}

func (s *service) observe(_ context.Context, e tripseal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Op == tripseal.OpOpen && e.Reason != "":
		s.told = "rejected: " + string(e.Reason)
	case e.Op == tripseal.OpDrop:
		s.told = fmt.Sprintf("%d answers dropped", e.Dropped)
	}
}

// lastTold returns the last message that the operator got since the last call of lastTold, or
// "" if there was none.
func (s *service) lastTold() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.told = "" }()
	return s.told
}

// verify accepts every access token and treats its text as the name of the user. Only a demo
// may do this.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// client is the SDK session of one user. The SDK does not answer questions by itself: the
// demo sends every answer.
type client struct{ *mcp.ClientSession }

func connect(ctx context.Context, s *service, user string) (client, error) {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1.0.0"}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil // never called: this handler only makes the client declare that it can answer questions
		},
	})
	transport := &mcp.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(user)}, DisableStandaloneSSE: true, MaxRetries: -1,
	}
	session, err := sdk.Connect(ctx, transport, nil)
	return client{session}, err
}

// bearer is an HTTP transport that sends a user's access token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
