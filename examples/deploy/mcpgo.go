package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/mcpgo"
)

// newMCPGoServer returns the protected server, built with mcp-go. It has the same tools as
// the server on the official SDK.
func newMCPGoServer(config tripseal.Config, options ...server.ServerOption) (*server.MCPServer, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	options = append(options, server.WithInputSchemaValidation(), server.WithStrictInputSchemaDefault())
	srv := server.NewMCPServer("release", "1.0.0", options...)
	mcpgo.Protect(srv, boundary, &mcpgo.Options{Principal: caller})
	add := func(name, description, done string) {
		tool := mcp.NewTool(name, mcp.WithDescription(description),
			mcp.WithString("service", mcp.Required(), mcp.Description("what to release")),
			mcp.WithString("version", mcp.Required(), mcp.Description("which version")))
		srv.AddTool(tool, mcp.NewTypedToolHandler(confirmed(done)))
	}
	add("deploy", "Deploy a version of a service", "deployed")
	add("rollback", "Go back to a version of a service", "restored")
	return srv, nil
}

// plan is the state that a tool remembers between two rounds.
type plan struct {
	Confirmed bool `json:"confirmed"`
	Traffic   int  `json:"traffic"` // the percentage of the traffic that the release may get
}

// confirmed returns the handler of a tool that asks the user for a confirmation, then for a
// region, and then acts. The tool does nothing if the user declines or cancels. It asks again
// if an answer has the wrong fields or types.
func confirmed(done string) mcp.TypedToolHandlerFunc[release.Args] {
	return func(ctx context.Context, req mcp.CallToolRequest, args release.Args) (*mcp.CallToolResult, error) {
		p, ok, err := mcpgo.State[plan](ctx, req)
		if err != nil {
			return nil, err
		}
		if !ok {
			p = plan{Traffic: 10}
		}
		yes, answered := answer[bool](req, "confirm", "ok")
		if refused(req) || answered && !yes {
			return mcp.NewToolResultText("nothing was done"), nil
		}
		if p.Confirmed = p.Confirmed || answered; !p.Confirmed {
			return ask(ctx, p, "confirm", fmt.Sprintf("Really do this to %s %s?", args.Service, args.Version), "ok", "boolean")
		}
		region, _ := answer[string](req, "region", "name")
		if strings.TrimSpace(region) == "" {
			return ask(ctx, p, "region", "In which region?", "name", "string")
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s %s %s in %s, %d%% of traffic", done, args.Service, args.Version, region, p.Traffic)), nil
	}
}

// ask returns a result that asks the user to fill in one field. The state of the result is
// the plan p.
func ask(ctx context.Context, p plan, key, message, field, kind string) (*mcp.CallToolResult, error) {
	result := server.NewInputRequestBuilder("").Elicit(key, mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
	}}).ToolResult()
	return result, mcpgo.SetState(ctx, result, p)
}

// refused reports whether the user declined or cancelled a question.
func refused(req mcp.CallToolRequest) bool {
	for key := range req.Params.InputResponses {
		form := server.ElicitationResponse(req.Params.InputResponses, key)
		if form != nil && form.Action != mcp.ElicitationResponseActionAccept {
			return true
		}
	}
	return false
}

// answer returns the value of one field in the user's answer to a question. key is the key of
// the question, and field is the name of the field. answered is true if the user accepted and
// the answer has exactly this field, with a value of type T.
func answer[T any](req mcp.CallToolRequest, key, field string) (value T, answered bool) {
	form := server.ElicitationResponse(req.Params.InputResponses, key)
	if form == nil || form.Action != mcp.ElicitationResponseActionAccept {
		return value, false
	}
	content, _ := form.Content.(map[string]any)
	if len(content) != 1 {
		return value, false
	}
	value, answered = content[field].(T)
	return value, answered
}

// newMCPGoHandler returns an HTTP handler that serves the server at /mcp, to clients with a
// bearer token. It adds what mcp-go does not do by itself: it verifies the user, limits the
// length of a request, binds sessions to users, and deletes idle sessions. Only clients of
// older protocol revisions have sessions.
func newMCPGoHandler(srv *server.MCPServer) http.Handler {
	sessions := newSessions()
	handler := server.NewStreamableHTTPServer(srv, server.WithSessionIdManagerResolver(sessions), server.WithSessionIdleTTL(time.Hour))
	mux := http.NewServeMux()
	mux.Handle("/mcp", requireUser(sessions.require(http.MaxBytesHandler(handler, 4<<20))))
	return mux
}

// serveMCPGoStdio serves the server over stdio. The only user is the one who started this
// process.
func serveMCPGoStdio(srv *server.MCPServer) error {
	return server.ServeStdio(srv, server.WithStdioContextFunc(func(ctx context.Context) context.Context {
		return context.WithValue(ctx, userKey{}, "local")
	}))
}
