package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// gatewayHeader is the header in which the gateway names the user that it has verified. The
// gateway must remove this header from the requests of clients, and only the gateway may
// reach the server.
const gatewayHeader = "X-Verified-User"

// userOf names the user of a request by its headers.
func userOf(_ context.Context, extra *mcp.RequestExtra) (string, error) {
	return extra.Header.Get(gatewayHeader), nil // "" is refused
}

// archive asks the user before it archives a project.
func archive(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return &mcp.CallToolResult{RequestState: "asked", InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Message: "Archive it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}}}, nil
	}
	answer, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return nil, errors.New("not confirmed")
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "archived"}}}, nil
}

// A gateway in front of the server has verified the user, and names the user in a header.
func ExampleOptions_gateway() {
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "projects.example.com", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "projects", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, &gosdk.Options{User: userOf})
	server.AddTool(&mcp.Tool{Name: "archive", InputSchema: map[string]any{"type": "object"}}, archive)
	web := httptest.NewServer(protected.Handler(nil))
	defer web.Close()

	// Bob has got hold of the token of Alice.
	ctx := context.Background()
	alice, bob := throughGateway(ctx, web.URL, "alice"), throughGateway(ctx, web.URL, "bob")
	defer alice.Close()
	defer bob.Close()
	asked, err := alice.CallTool(ctx, &mcp.CallToolParams{Name: "archive"})
	if err != nil {
		log.Fatal(err)
	}
	answer := &mcp.CallToolParams{
		Name: "archive", RequestState: asked.RequestState,
		InputResponses: mcp.InputResponseMap{"confirm": &mcp.ElicitResult{Action: "accept"}},
	}
	_, err = bob.CallTool(ctx, answer)
	fmt.Println("bob is refused:", err != nil)
	done, err := alice.CallTool(ctx, answer)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("alice:", done.Content[0].(*mcp.TextContent).Text)
	// Output:
	// bob is refused: true
	// alice: archived
}

// fakeGateway adds the header of a user to each request, as a real gateway would.
type fakeGateway string

func (user fakeGateway) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(gatewayHeader, string(user))
	return http.DefaultTransport.RoundTrip(r)
}

// throughGateway connects a client. The SDK does not answer questions for this client, so that
// the example shows each round.
func throughGateway(ctx context.Context, url, user string) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: fakeGateway(user)}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	return session
}
