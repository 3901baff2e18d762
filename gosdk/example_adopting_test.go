package gosdk_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// This service makes a server for each request, but prepares the protection once.
func ExampleNewProtector() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	protector := gosdk.NewProtector(boundary, nil) // once

	newServer := func(*http.Request) *mcp.Server {
		server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
		protector.Protect(server) // for each server
		addTools(server)
		return server
	}
	http.Handle("/mcp", protector.Handler(newServer, nil))
}

func addTools(*mcp.Server) {}

// With RejectedText, the model learns what to do when a token is rejected.
func ExampleOptions_rejectedText() {
	options := &gosdk.Options{
		RejectedText: gosdk.StartOver, // or words of your own
	}
	_ = options
}

var confirmation = mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
	Message:         "Delete the file?",
	RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
}}

// deletePlain is the tool "delete" on a protected server, which opens and seals the states.
func deletePlain(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if !gosdk.Sealed(ctx, req) {
		return nil, gosdk.ErrNotProtected // the line with Protect is missing
	}
	if req.Params.RequestState == "" {
		return &mcp.CallToolResult{InputRequests: confirmation, RequestState: "asked"}, nil
	}
	return deleteIf(req.Params.InputResponses["confirm"])
}

// deleter is the tool "delete" on a server without Protect. It opens and seals its states
// itself.
type deleter struct{ *gosdk.Protector }

func (d deleter) delete(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	round, err := d.Boundary().Open(ctx, d.Request(req), req.Params.RequestState)
	if err != nil {
		return nil, gosdk.WireError(err)
	}
	if _, asked := round.State(); asked {
		return deleteIf(d.Answers(ctx, &round, req)["confirm"])
	}
	questions, err := gosdk.Questions(req, confirmation)
	if err != nil {
		return nil, err
	}
	state := "asked"
	token, err := d.Boundary().Seal(ctx, &round, &state, questions...)
	if err != nil {
		return nil, gosdk.WireError(err)
	}
	return &mcp.CallToolResult{InputRequests: confirmation, RequestState: token}, nil
}

func deleteIf(answer mcp.InputResponse) (*mcp.CallToolResult, error) {
	text := "Nothing was deleted."
	if form, ok := answer.(*mcp.ElicitResult); ok && form.Action == "accept" && form.Content["ok"] == true {
		text = "Deleted."
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

// One tool is written in two ways: for a protected server, and as a tool that seals
// its states itself.
func ExampleProtector_Request() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "files.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	protector := gosdk.NewProtector(boundary, nil)
	tool := &mcp.Tool{Name: "delete", InputSchema: map[string]any{"type": "object"}}

	behind := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	protector.Protect(behind)
	behind.AddTool(tool, deletePlain)

	itself := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1.0.0"}, nil)
	itself.AddTool(tool, deleter{protector}.delete)

	// One client connects to each server in turn, and its user says yes.
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"ok": true}}, nil
		},
	})
	for _, server := range []*mcp.Server{behind, itself} {
		clientSide, serverSide := mcp.NewInMemoryTransports()
		if _, err := server.Connect(ctx, serverSide, nil); err != nil {
			log.Fatal(err)
		}
		session, err := client.Connect(ctx, clientSide, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer session.Close()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "delete"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Content[0].(*mcp.TextContent).Text)
	}
	// Output:
	// Deleted.
	// Deleted.
}

type orderArgs struct {
	Status string `json:"status"`
	Limit  int    `json:"limit,omitempty"`
}

type orderKey struct {
	ID int64 `json:"id"`
}

// The size of a page may change from page to page. The filter must stay the same.
func ExampleAddPagedTool() {
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "orders.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "orders", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_orders"},
		func(_ context.Context, _ *mcp.CallToolRequest, in orderArgs, after *orderKey) ([]string, *orderKey, error) {
			return page(in.Status, after, in.Limit)
		}, &gosdk.PageOptions{Unbound: []string{"limit"}})
}

func page(string, *orderKey, int) ([]string, *orderKey, error) { return nil, nil, nil }
