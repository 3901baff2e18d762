package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	other "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// serveMCPGo serves on stdin and stdout. Without an engine, nothing protects the server.
func serveMCPGo(engine *wire.Engine) error {
	srv := newMCPGoServer(false)
	if engine == nil {
		return server.ServeStdio(srv)
	}
	return mcpgo.ServeStdio(context.Background(), srv, engine, owner)
}

// mcpgoHandler returns the server's HTTP handler. mcp-go answers with a stream of events only if it sends something
// before the answer; with streams, it does.
func mcpgoHandler(engine *wire.Engine, streams bool) http.Handler {
	srv := newMCPGoServer(streams)
	if engine == nil {
		return server.NewStreamableHTTPServer(srv)
	}
	return mcpgo.Handler(srv, engine, doorOptions)
}

func newMCPGoServer(streams bool) *server.MCPServer {
	hooks := &server.Hooks{}
	hooks.AddBeforeListTools(func(_ context.Context, _ any, req *other.ListToolsRequest) {
		if cursor := string(req.Params.Cursor); cursor != "" {
			journal("got", "cursor", cursor, "tools/list", "", from(req.Header))
			plain, _, _ := strings.Cut(cursor, "|")
			req.Params.Cursor = other.Cursor(plain)
		}
	})
	hooks.AddAfterListTools(func(_ context.Context, _ any, req *other.ListToolsRequest, page *other.ListToolsResult) {
		if page.NextCursor != "" {
			page.NextCursor = other.Cursor(secret(string(page.NextCursor)))
			journal("issued", "cursor", string(page.NextCursor), "tools/list", "", from(req.Header))
		}
	})
	srv := server.NewMCPServer("mcp-go-backend", "1", server.WithHooks(hooks), server.WithPaginationLimit(3),
		server.WithElicitation(), server.WithRoots(), server.WithToolCapabilities(false), server.WithPromptCapabilities(true))
	srv.EnableSampling()

	prompt := func(ctx context.Context, req other.GetPromptRequest) (*other.GetPromptResult, error) {
		p := req.Params
		r, next := serveOther(ctx, "prompts/get", p.Name, p.Arguments, p.MultiRoundTripParams, req.Header)
		if r.questions != nil {
			return builder(r, next).PromptResult(), nil
		}
		message := other.NewPromptMessage(other.RoleUser, other.NewTextContent(r.text))
		return other.NewGetPromptResult("", []other.PromptMessage{message}), nil
	}
	announce := func() { srv.AddPrompt(other.NewPrompt(prefix+"prompt"), prompt) }
	announce()
	tool := func(ctx context.Context, req other.CallToolRequest) (*other.CallToolResult, error) {
		p := req.Params
		if streams {
			said := map[string]any{"level": "info", "data": "at work"}
			fatal(srv.SendNotificationToClient(ctx, "notifications/message", said))
		}
		r, next := serveOther(ctx, "tools/call", p.Name, p.Arguments, p.MultiRoundTripParams, req.Header)
		if r.announce {
			announce()
		}
		if r.questions != nil {
			return builder(r, next).ToolResult(), nil
		}
		return other.NewToolResultText(r.text), nil
	}
	for _, name := range tools {
		srv.AddTool(other.NewToolWithRawSchema(prefix+name, "", json.RawMessage(`{"type":"object"}`)), tool)
	}
	// The handler of a resource returns contents alone, so that it cannot ask. It can only get a state.
	read := func(ctx context.Context, req other.ReadResourceRequest) ([]other.ResourceContents, error) {
		p := req.Params
		serveOther(ctx, "resources/read", p.URI, nil, p.MultiRoundTripParams, req.Header)
		return []other.ResourceContents{other.TextResourceContents{URI: p.URI, Text: "nothing is asked"}}, nil
	}
	srv.AddResource(other.NewResource("test://asks", "asks"), read)
	return srv
}

func from(header http.Header) *mcp.RequestExtra { return &mcp.RequestExtra{Header: header} }

// serveOther runs one round with what mcp-go has decoded.
func serveOther(
	ctx context.Context, method, name string, arguments any, in other.MultiRoundTripParams, header http.Header,
) (r reply, next string) {
	var answers mcp.InputResponseMap
	if len(in.InputResponses) > 0 && convert(in.InputResponses, &answers) != nil {
		answers = nil
	}
	var can *mcp.ClientCapabilities
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientCapabilities != nil {
		fatal(convert(info.ClientCapabilities, &can))
	}
	return serve(method, name, arguments, in.RequestState, answers, can, from(header))
}

func builder(r reply, state string) *server.InputRequestBuilder {
	var questions map[string]other.InputRequest
	fatal(convert(r.questions, &questions))
	b := server.NewInputRequestBuilder(state)
	for key, q := range questions {
		switch {
		case q.Elicitation != nil:
			b.Elicit(key, *q.Elicitation)
		case q.Sampling != nil:
			b.Sample(key, *q.Sampling)
		default:
			b.Roots(key)
		}
	}
	return b
}

// convert turns a value of one SDK into that of the other: in JSON they are the same.
func convert(value, to any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}
