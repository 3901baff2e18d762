package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// newServer returns the protected server, built with the official SDK.
func newServer(config tripseal.Config) (*gosdk.Server, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	protected := gosdk.Protect(server, boundary, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_versions", Description: "List the versions of a service"},
		func(_ context.Context, _ *mcp.CallToolRequest, in ListArgs, after *int) ([]string, *int, error) {
			page, next := listVersions(in, after) // after is nil for the first page
			return page, next, nil
		}, &gosdk.PageOptions{Unbound: []string{"limit"}}) // language models change the limit between pages
	mcp.AddTool(server, &mcp.Tool{Name: "deploy", Description: "Deploy a version"}, confirmed("deployed"))
	mcp.AddTool(server, &mcp.Tool{Name: "rollback", Description: "Go back to a version"}, confirmed("restored"))
	return protected, nil
}

// confirmed returns the handler of a tool that asks the user before it acts.
func confirmed(done string) mcp.ToolHandlerFor[Args, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in Args) (*mcp.CallToolResult, any, error) {
		p, _, err := gosdk.State[plan](ctx, req)
		if err != nil {
			return nil, nil, err
		}
		ask, text := p.next(done, in, sdkAnswers(req.Params.InputResponses))
		if ask == nil {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		}
		result := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
			ask.key: &mcp.ElicitParams{Message: ask.message, RequestedSchema: ask.schema()},
		}}
		return result, nil, gosdk.SetState(ctx, req, result, p)
	}
}

func sdkAnswers(responses mcp.InputResponseMap) answers {
	all := make(answers)
	for key, response := range responses {
		if form, ok := response.(*mcp.ElicitResult); ok {
			all[key] = answer{form.Action == "accept", form.Content}
		}
	}
	return all
}
