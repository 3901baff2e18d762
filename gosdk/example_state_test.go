package gosdk_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// draft is what the tool remembers while the user thinks about the question.
type draft struct {
	Title string `json:"title"`
	Words int    `json:"words"`
}

// publish asks the user before it publishes. Its first round writes a draft, and its second
// round reads the draft. Meanwhile the client holds the draft as a sealed token.
func publish(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	remembered, asked, err := gosdk.State[draft](ctx, req)
	if err != nil {
		return nil, err
	}
	if !asked {
		result := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Message: "Publish it?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}}}
		return result, gosdk.SetState(ctx, req, result, draft{Title: "News", Words: 120})
	}
	text := "Nothing was published."
	if answer, ok := req.Params.InputResponses["confirm"].(*mcp.ElicitResult); ok && answer.Action == "accept" {
		text = fmt.Sprintf("Published %q with %d words.", remembered.Title, remembered.Words)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// A tool writes a Go value into the state when it asks, and reads the value in the next round.
func ExampleState() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "blog.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "blog", Version: "1.0.0"}, nil)
	gosdk.Protect(server, boundary, nil)
	server.AddTool(&mcp.Tool{Name: "publish", InputSchema: map[string]any{"type": "object"}}, publish)

	// Connect a client in memory. The user of this client says yes.
	ctx := context.Background()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Println(req.Params.Message)
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	session, err := client.Connect(ctx, clientSide, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "publish"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// Publish it?
	// Published "News" with 120 words.
}
