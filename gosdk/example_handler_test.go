package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// restart asks the user before it restarts a machine.
func restart(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Message: "Restart it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}}}, nil
	}
	answer, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return nil, errors.New("not confirmed")
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "restarted"}}}, nil
}

// verifyToken stands for your own verification of access tokens.
func verifyToken(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	if token != "token-of-alice" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: "alice", Expiration: time.Now().Add(time.Hour)}, nil
}

// withToken sends the access token of a client with each request.
type withToken string

func (t withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(t))
	return http.DefaultTransport.RoundTrip(r)
}

// This is the usual server: it has one URL for clients of all protocol revisions. The SDK
// verifies access tokens, and the UserID of a token names the user.
func ExampleServer_Handler() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "machines.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "machines", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, nil)
	server.AddTool(&mcp.Tool{Name: "restart", InputSchema: map[string]any{"type": "object"}}, restart)

	handler := auth.RequireBearerToken(verifyToken, nil)(protected.Handler(nil))
	web := httptest.NewServer(handler) // in a service, use an http.Server with timeouts
	defer web.Close()

	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(req.Params.Message)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: web.URL, HTTPClient: &http.Client{Transport: withToken("token-of-alice")},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "restart"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// Restart it?
	// restarted
}
