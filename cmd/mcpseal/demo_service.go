package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cmd/mcpseal/release"
	"github.com/mcpseal/mcpseal/gosdk"
)

// service is one server of the demo. It listens on loopback.
type service struct {
	url string
	web *http.Server

	mu     sync.Mutex
	reason mcpseal.Reason // why the last token was rejected
}

// start serves the release tools for alice and bob. If ring is nil, the server is not
// protected.
func start(ring *mcpseal.Ring, audience string, ttl time.Duration, wrap func(http.Handler) http.Handler) (*service, error) {
	s := &service{}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server := release.NewServer()
	if ring != nil {
		boundary, err := mcpseal.New(mcpseal.Config{Keys: ring, Audience: audience, TTL: ttl, Logger: quiet, Observer: s.observe})
		if err != nil {
			return nil, err
		}
		gosdk.Protect(server, boundary, &gosdk.Options{Logger: quiet})
	}
	handler := auth.RequireBearerToken(verify, nil)(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
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

func (s *service) observe(_ context.Context, e mcpseal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Op == mcpseal.OpOpen {
		s.reason = e.Reason
	}
}

// lastReason returns the reason that the operator saw last, and forgets it.
func (s *service) lastReason() mcpseal.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.reason = "" }()
	return s.reason
}

// verify takes any token for the name of its user, because this is a demo.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// client is a user with an SDK client that leaves every round to the demo.
type client struct{ *mcp.ClientSession }

func connect(ctx context.Context, s *service, user string) (client, error) {
	sdk := mcp.NewClient(&mcp.Implementation{Name: "demo", Version: "1.0.0"}, &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil // never called: the demo answers by itself, and needs this only to declare the capability
		},
	})
	transport := &mcp.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(user)}, DisableStandaloneSSE: true, MaxRetries: -1,
	}
	session, err := sdk.Connect(ctx, transport, nil)
	return client{session}, err
}

// bearer is an HTTP transport that sends a user's token with every request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
