package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
)

// newMCPGoServer returns the protected server, built with mcp-go.
func newMCPGoServer(config tripseal.Config) (*server.MCPServer, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	srv := server.NewMCPServer("release", "1.0.0",
		server.WithInputSchemaValidation(), server.WithStrictInputSchemaDefault())
	protected := mcpgo.Protect(srv, boundary, &mcpgo.Options{Principal: caller})
	add := func(name, description, done string) {
		tool := mcp.NewTool(name, mcp.WithDescription(description), mcp.WithInputSchema[Args]())
		srv.AddTool(tool, mcp.NewTypedToolHandler(confirmedMCPGo(done)))
	}
	add("deploy", "Deploy a version", "deployed")
	add("rollback", "Go back to a version", "restored")
	mcpgo.AddPagedTool(protected, mcp.NewTool("list_versions", mcp.WithDescription("List the versions of a service")),
		func(_ context.Context, _ mcp.CallToolRequest, in ListArgs, after *int) ([]string, *int, error) {
			page, next := listVersions(in, after)
			return page, next, nil
		}, &mcpgo.PageOptions{Unbound: []string{"limit"}})
	return srv, nil
}

// confirmedMCPGo returns the handler of a tool that asks the user before it acts.
func confirmedMCPGo(done string) mcp.TypedToolHandlerFunc[Args] {
	return func(ctx context.Context, req mcp.CallToolRequest, in Args) (*mcp.CallToolResult, error) {
		p, _, err := mcpgo.State[plan](ctx, req)
		if err != nil {
			return nil, err
		}
		ask, text := p.next(done, in, mcpgoAnswers(req.Params.InputResponses))
		if ask == nil {
			return mcp.NewToolResultText(text), nil
		}
		form := mcp.ElicitationParams{Message: ask.message, RequestedSchema: ask.schema()}
		result := server.NewInputRequestBuilder("").Elicit(ask.key, form).ToolResult()
		return result, mcpgo.SetState(ctx, result, p)
	}
}

func mcpgoAnswers(responses mcp.InputResponses) answers {
	all := make(answers)
	for key := range responses {
		if form := server.ElicitationResponse(responses, key); form != nil {
			content, _ := form.Content.(map[string]any)
			all[key] = answer{form.Action == mcp.ElicitationResponseActionAccept, content}
		}
	}
	return all
}

// newMCPGoHandler returns an HTTP handler for the server. It adds what mcp-go does not do by
// itself: it limits the length of a request, binds sessions to users, and deletes idle sessions.
// Only clients of older protocol revisions have sessions.
func newMCPGoHandler(srv *server.MCPServer) http.Handler {
	sessions := sessions{[]byte(rand.Text())}
	handler := server.NewStreamableHTTPServer(srv,
		server.WithSessionIdManagerResolver(sessions), server.WithSessionIdleTTL(time.Hour))
	return sessions.require(http.MaxBytesHandler(handler, 4<<20))
}
