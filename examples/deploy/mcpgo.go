package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// newMCPGoHandler returns the HTTP handler of the protected server, built with mcp-go.
func newMCPGoHandler(config tripseal.Config) (http.Handler, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		return nil, err
	}
	srv := server.NewMCPServer("release", "1.0.0",
		server.WithInputSchemaValidation(), server.WithStrictInputSchemaDefault())
	add := func(name, description, done string) {
		tool := mcp.NewTool(name, mcp.WithDescription(description), mcp.WithInputSchema[Args]())
		srv.AddTool(tool, mcp.NewTypedToolHandler(confirmedMCPGo(done)))
	}
	add("deploy", "Deploy a version", "deployed")
	add("rollback", "Go back to a version", "restored")
	versions := mcp.NewTool("list_versions",
		mcp.WithDescription("List the versions of a service"), mcp.WithInputSchema[ListArgs]())
	mcpgo.AddPagedTool(srv, engine, versions,
		func(_ context.Context, _ mcp.CallToolRequest, in ListArgs, after *int) ([]string, *int, error) {
			page, next := listVersions(in, after)
			return page, next, nil
		}, &mcpgo.PageOptions{PageOptions: cursor.PageOptions{Unbound: []string{"limit"}}})
	// mcp-go keeps the sessions of older clients for ever, unless it is told how long.
	return mcpgo.Handler(srv, engine, wire.Options{User: caller}, server.WithSessionIdleTTL(time.Hour)), nil
}

// caller returns the name of the user who sent the request.
func caller(r *http.Request) (string, error) {
	info := auth.TokenInfoFromContext(r.Context())
	if info == nil {
		return "", errors.New("the request did not come through auth.RequireBearerToken")
	}
	return info.UserID, nil
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
