package gosdk_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// review is a prompt. Before it returns its text, it asks who reads the review, and stores its
// state with SetState. Tools and resources call SetState in the same way.
func review(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	type progress struct {
		Commit string `json:"commit"`
	}
	begun, asked, err := gosdk.State[progress](ctx, req)
	if err != nil {
		return nil, err
	}
	if !asked {
		result := &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"reader": &mcp.ElicitParams{
			Message:         "Who reads the review?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		}}}
		return result, gosdk.SetState(ctx, req, result, progress{Commit: "7e2cbff"})
	}
	reader := "anybody"
	if answer, ok := req.Params.InputResponses["reader"].(*mcp.ElicitResult); ok && answer.Action == "accept" {
		reader, _ = answer.Content["name"].(string)
	}
	text := fmt.Sprintf("Review %s for %s.", begun.Commit, reader)
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}

// The client gets a token in place of the value that SetState wrote, and sends the token back
// with the answer.
func ExampleSetState() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "review.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "review", Version: "1.0.0"}, nil)
	gosdk.Protect(server, boundary, nil)
	server.AddPrompt(&mcp.Prompt{Name: "review"}, review)

	// Connect a client in memory. The SDK does not answer questions for this client, so that the
	// example shows each round.
	ctx := context.Background()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, serverSide, nil); err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, clientSide, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()

	first, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "review"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("The client holds a token that begins with", strings.SplitAfter(first.RequestState, ".")[0])

	second, err := session.GetPrompt(ctx, &mcp.GetPromptParams{
		Name: "review", RequestState: first.RequestState,
		InputResponses: mcp.InputResponseMap{"reader": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(second.Messages[0].Content.(*mcp.TextContent).Text)
	// Output:
	// The client holds a token that begins with ms1.
	// Review 7e2cbff for Ada.
}
