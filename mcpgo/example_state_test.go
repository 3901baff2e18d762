package mcpgo_test

import (
	"context"
	"fmt"
	stdlog "log"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

// draft is what the tool remembers while the user thinks about the question.
type draft struct {
	Title string `json:"title"`
	Words int    `json:"words"`
}

// publish asks the user before it publishes. Its first round writes a draft, and its second
// round reads the draft. Meanwhile the client holds the draft as a sealed token.
func publish(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	remembered, asked, err := mcpgo.State[draft](ctx, req)
	if err != nil {
		return nil, err
	}
	if !asked {
		result := server.NewInputRequestBuilder("").Elicit("confirm", mcp.ElicitationParams{
			Message: "Publish it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}).ToolResult()
		return result, mcpgo.SetState(ctx, result, draft{Title: "News", Words: 120})
	}
	answer := server.ElicitationResponse(req.Params.InputResponses, "confirm")
	if answer == nil || answer.Action != mcp.ElicitationResponseActionAccept {
		return mcp.NewToolResultText("Nothing was published."), nil
	}
	return mcp.NewToolResultText(fmt.Sprintf("Published %q with %d words.", remembered.Title, remembered.Words)), nil
}

// reader is a user who accepts every question.
type reader struct{}

func (reader) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	fmt.Println(req.Params.Message)
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept}}, nil
}

// A tool remembers a Go value from the round that asks to the round that gets the answer.
func ExampleState() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "blog.example.com"})
	if err != nil {
		stdlog.Fatal(err)
	}
	srv := server.NewMCPServer("blog", "1.0.0")
	mcpgo.Protect(srv, boundary, &mcpgo.Options{AllowAnonymous: true}) // for one user at one machine
	srv.AddTool(mcp.NewTool("publish"), publish)

	// The client runs in the same process, and its user accepts every question.
	ctx := context.Background()
	over := transport.NewInProcessTransportWithOptions(srv, transport.WithElicitationHandler(reader{}))
	c := client.NewClient(over, client.WithElicitationHandler(reader{}))
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		stdlog.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "client", Version: "1.0.0"},
	}}); err != nil {
		stdlog.Fatal(err)
	}
	result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "publish"}})
	if err != nil {
		stdlog.Fatal(err)
	}
	fmt.Println(result.Content[0].(mcp.TextContent).Text)
	// Output:
	// Publish it?
	// Published "News" with 120 words.
}
