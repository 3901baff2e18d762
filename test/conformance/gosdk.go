package main

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/wire"
)

// newServer returns the server for the conformance suite, built with the official SDK.
func newServer(s settings) (server *mcp.Server, protected *gosdk.Server, err error) {
	implementation := &mcp.Implementation{Name: "tripseal-conformance", Version: "1.0.0"}
	server = mcp.NewServer(implementation, &mcp.ServerOptions{PageSize: s.pageSize})
	if !s.unprotected && s.sdk != officialDoor {
		boundary, err := tripseal.New(s.config)
		if err != nil {
			return nil, nil, err
		}
		options := &gosdk.Options{Unsolicited: unsolicited, AllowAnonymous: true, User: sdkUser}
		if s.startOver {
			options.RejectedText = gosdk.StartOver
		}
		protected = gosdk.Protect(server, boundary, options)
	}
	for name, scenario := range tools {
		tool := &mcp.Tool{Name: prefix + name, Description: "for the conformance suite", InputSchema: map[string]any{"type": "object"}}
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r := round{state: req.Params.RequestState, answers: sdkAnswers(req.Params.InputResponses)}
			r.user, _ = sdkUser(ctx, req.Extra)
			r.arguments = string(req.Params.Arguments)
			if declared := req.ClientCapabilities(); declared != nil {
				r.elicitation, r.sampling = declared.Elicitation != nil, declared.Sampling != nil
			}
			reply := play(scenario, r)
			if reply.questions == nil {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: reply.text}}}, nil
			}
			return &mcp.CallToolResult{InputRequests: sdkQuestions(reply.questions), RequestState: reply.state}, nil
		})
	}
	server.AddPrompt(&mcp.Prompt{Name: prefix + "prompt"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		reply := play(prompt, round{state: req.Params.RequestState, answers: sdkAnswers(req.Params.InputResponses)})
		if reply.questions == nil {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: reply.text}}}}, nil
		}
		return &mcp.GetPromptResult{InputRequests: sdkQuestions(reply.questions), RequestState: reply.state}, nil
	})
	return server, protected, nil
}

func sdkUser(_ context.Context, extra *mcp.RequestExtra) (string, error) {
	return extra.Header.Get(userHeader), nil
}

// sdkHandler returns an HTTP handler for the server, which may be protected, behind a door if there is an engine.
func sdkHandler(server *mcp.Server, protected *gosdk.Server, engine *wire.Engine) http.Handler {
	if protected != nil {
		return protected.Handler(nil)
	}
	get := func(*http.Request) *mcp.Server { return server }
	newer := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true})
	older := mcp.NewStreamableHTTPHandler(get, nil)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			newer.ServeHTTP(w, r)
			return
		}
		older.ServeHTTP(w, r)
	})
	if engine == nil {
		return handler
	}
	return engine.Handler(handler, doorOptions)
}

func sdkQuestions(questions map[string]question) mcp.InputRequestMap {
	asked := mcp.InputRequestMap{}
	for key, q := range questions {
		switch q.kind {
		case tripseal.KindForm:
			asked[key] = &mcp.ElicitParams{Message: q.message, RequestedSchema: q.schema()}
		case tripseal.KindSampling:
			asked[key] = &mcp.CreateMessageParams{MaxTokens: int64(q.maxTokens), Messages: []*mcp.SamplingMessage{
				{Role: "user", Content: &mcp.TextContent{Text: q.message}},
			}}
		case tripseal.KindRoots:
			asked[key] = &mcp.ListRootsParams{}
		}
	}
	return asked
}

// sdkAnswers holds the answers in a request, as the official SDK decodes them.
type sdkAnswers mcp.InputResponseMap

func (a sdkAnswers) form(key string) (map[string]any, bool) {
	form, _ := a[key].(*mcp.ElicitResult)
	if form == nil || form.Action != "accept" {
		return nil, false
	}
	return form.Content, true
}

func (a sdkAnswers) sample(key string) string {
	answer, _ := a[key].(*mcp.CreateMessageWithToolsResult)
	if answer == nil || len(answer.Content) == 0 {
		return ""
	}
	content, _ := answer.Content[0].(*mcp.TextContent)
	if content == nil {
		return ""
	}
	return content.Text
}

// roots returns the URIs of the client's roots. ok is false if there is no answer, or if the
// client sent a list with a null or with a root that has no URI.
func (a sdkAnswers) roots(key string) (uris []string, ok bool) {
	answer, _ := a[key].(*mcp.ListRootsResult)
	if answer == nil || answer.Roots == nil {
		return nil, false
	}
	for _, root := range answer.Roots {
		if root == nil || root.URI == "" {
			return nil, false
		}
		uris = append(uris, root.URI)
	}
	return uris, true
}

func (a sdkAnswers) refused() bool {
	for _, answer := range a {
		if form, _ := answer.(*mcp.ElicitResult); form != nil && form.Action != "accept" {
			return true
		}
	}
	return false
}

func (a sdkAnswers) keys() []string { return slices.Collect(maps.Keys(a)) }
