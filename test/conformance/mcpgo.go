package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// newMCPGoServer returns the server for the conformance suite, built with mcp-go.
func newMCPGoServer(s settings) *server.MCPServer {
	var limits []server.ServerOption
	if s.pageSize > 0 {
		limits = append(limits, server.WithPaginationLimit(s.pageSize))
	}
	srv := server.NewMCPServer("tripseal-conformance", "1.0.0", limits...)
	for name, scenario := range tools {
		tool := mcp.NewToolWithRawSchema(prefix+name, "for the conformance suite", json.RawMessage(`{"type":"object"}`))
		srv.AddTool(tool, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r := round{state: req.Params.RequestState, answers: mcpgoAnswers(req.Params.InputResponses)}
			r.user, _ = mcpgoUser(ctx)
			if arguments, err := json.Marshal(req.Params.Arguments); err == nil {
				r.arguments = string(arguments)
			}
			if declared := declaredBy(ctx); declared != nil {
				r.elicitation, r.sampling = declared.Elicitation != nil, declared.Sampling != nil
			}
			reply := play(scenario, r)
			if len(reply.questions) == 0 {
				return mcp.NewToolResultText(reply.text), nil
			}
			return builder(reply).ToolResult(), nil
		})
	}
	srv.AddPrompt(mcp.NewPrompt(prefix+"prompt"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		reply := play(prompt, round{state: req.Params.RequestState, answers: mcpgoAnswers(req.Params.InputResponses)})
		if len(reply.questions) == 0 {
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(reply.text))}), nil
		}
		return builder(reply).PromptResult(), nil
	})
	return srv
}

type userKey struct{}

func mcpgoUser(ctx context.Context) (string, error) {
	user, _ := ctx.Value(userKey{}).(string)
	return user, nil
}

// mcpgoHandler returns an HTTP handler for the server. Without an engine, nothing protects it. mcp-go keeps the sessions
// of older protocol revisions for ever, unless it is told how long.
func mcpgoHandler(srv *server.MCPServer, engine *wire.Engine) http.Handler {
	options := []server.StreamableHTTPOption{
		server.WithHTTPContextFunc(func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, userKey{}, r.Header.Get(userHeader))
		}),
		server.WithSessionIdleTTL(time.Hour),
	}
	if engine == nil {
		return http.MaxBytesHandler(server.NewStreamableHTTPServer(srv, options...), 4<<20)
	}
	return mcpgo.Handler(srv, engine, doorOptions, options...)
}

// declaredBy returns the capabilities that the client declared in the request. If the request
// declares none, it returns those that the client declared when its session began. It returns
// nil if there is no such session.
func declaredBy(ctx context.Context) *mcp.ClientCapabilities {
	if info := server.RequestProtocolInfoFromContext(ctx); info != nil && info.ClientCapabilities != nil {
		return info.ClientCapabilities
	}
	if session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo); ok {
		declared := session.GetClientCapabilities()
		return &declared
	}
	return nil
}

func builder(r reply) *server.InputRequestBuilder {
	b := server.NewInputRequestBuilder(r.state)
	for key, q := range r.questions {
		switch q.kind {
		case tripseal.KindForm:
			b.Elicit(key, mcp.ElicitationParams{Message: q.message, RequestedSchema: q.schema()})
		case tripseal.KindSampling:
			b.Sample(key, mcp.CreateMessageParams{MaxTokens: q.maxTokens, Messages: []mcp.SamplingMessage{
				{Role: mcp.RoleUser, Content: mcp.NewTextContent(q.message)},
			}})
		case tripseal.KindRoots:
			b.Roots(key)
		}
	}
	return b
}

// mcpgoAnswers holds the answers in a request, as mcp-go decodes them.
type mcpgoAnswers mcp.InputResponses

func (a mcpgoAnswers) form(key string) (map[string]any, bool) {
	form := server.ElicitationResponse(mcp.InputResponses(a), key)
	if form == nil || form.Action != mcp.ElicitationResponseActionAccept {
		return nil, false
	}
	content, _ := form.Content.(map[string]any)
	return content, true
}

// sample returns the text that the client's model wrote, or "" if there is no text. It decodes
// the content itself, because mcp-go decodes the content only for clients of older protocol
// revisions.
func (a mcpgoAnswers) sample(key string) string {
	answer := server.SamplingResponse(mcp.InputResponses(a), key)
	if answer == nil {
		return ""
	}
	switch content := answer.Content.(type) {
	case mcp.TextContent:
		return content.Text
	case map[string]any:
		if text, ok := content["text"].(string); ok && content["type"] == "text" {
			return text
		}
	}
	return ""
}

func (a mcpgoAnswers) roots(key string) (uris []string, ok bool) {
	answer := server.RootsResponse(mcp.InputResponses(a), key)
	if answer == nil || answer.Roots == nil {
		return nil, false
	}
	for _, root := range answer.Roots {
		if root.URI == "" {
			return nil, false
		}
		uris = append(uris, root.URI)
	}
	return uris, true
}

func (a mcpgoAnswers) refused() bool {
	for key := range a {
		form := server.ElicitationResponse(mcp.InputResponses(a), key)
		if form != nil && (form.Action == mcp.ElicitationResponseActionDecline || form.Action == mcp.ElicitationResponseActionCancel) {
			return true
		}
	}
	return false
}

func (a mcpgoAnswers) keys() []string { return slices.Collect(maps.Keys(a)) }
