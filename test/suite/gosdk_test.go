package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// officialSDK is the official SDK with gosdk, which lets every promise be kept.
var officialSDK = system{start: startOfficial, cannot: map[string]string{
	"tool: what arrived is bound, whatever the handler does to its arguments":   handlersCopy,
	"prompt: what arrived is bound, whatever the handler does to its arguments": handlersCopy,
}}

const handlersCopy = "gosdk does not copy the arguments, so a handler that changes them in place must do that itself"

const userHeader = "Test-User"

// startOfficial makes a protected server. The client calls the server's HTTP handler without a socket, and a
// header of the request names the user.
func startOfficial(_ *testing.T, s Server) Client {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: s.PageSize})
	protected := gosdk.Protect(server, s.Boundary, &gosdk.Options{
		User: func(ctx context.Context, extra *mcp.RequestExtra) (string, error) {
			return s.Principal(ctx, extra.Header.Get(userHeader))
		},
		AllowAnonymous: s.AllowAnonymous, RejectedText: s.RejectedText, Logger: s.Logger,
	})
	addOfficial(server, s)
	return clientOf(protected.Handler(&mcp.StreamableHTTPOptions{JSONResponse: true}))
}

// serveOfficial serves a server that is not protected by gosdk.
func serveOfficial(server *mcp.Server, s Server) Client {
	addOfficial(server, s)
	get := func(*http.Request) *mcp.Server { return server }
	return clientOf(mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{JSONResponse: true, Stateless: true}))
}

func addOfficial(server *mcp.Server, s Server) {
	for name, handle := range s.Tools {
		tool := &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result, err := handle(ctx, officialCall(req.Params.RequestState, req.Params.InputResponses, req.Params.Arguments))
			answer := &mcp.CallToolResult{RequestState: result.State, InputRequests: officialQuestions(result)}
			if answer.InputRequests == nil {
				answer.Content = []mcp.Content{&mcp.TextContent{Text: result.Text}}
			}
			return answer, err
		})
	}
	for name, handle := range s.Prompts {
		prompt := &mcp.Prompt{Name: name}
		server.AddPrompt(prompt, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			result, err := handle(ctx, officialCall(req.Params.RequestState, req.Params.InputResponses, req.Params.Arguments))
			answer := &mcp.GetPromptResult{RequestState: result.State, InputRequests: officialQuestions(result)}
			if answer.InputRequests == nil {
				answer.Messages = []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: result.Text}}}
			}
			return answer, err
		})
	}
	read := func(handle Handler) mcp.ResourceHandler {
		return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			result, err := handle(ctx, officialCall(req.Params.RequestState, req.Params.InputResponses, nil))
			answer := &mcp.ReadResourceResult{RequestState: result.State, InputRequests: officialQuestions(result)}
			if answer.InputRequests == nil {
				answer.Contents = []*mcp.ResourceContents{{URI: req.Params.URI, Text: result.Text}}
			}
			return answer, err
		}
	}
	for uri, handle := range s.Resources {
		server.AddResource(&mcp.Resource{URI: uri, Name: uri}, read(handle))
	}
	for template, handle := range s.Templates {
		server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: template, Name: template}, read(handle))
	}
}

func officialCall(state string, answers mcp.InputResponseMap, arguments any) Call {
	call := Call{State: state, Arguments: arguments, Answers: make(map[string]string)}
	for key, answer := range answers {
		text, err := json.Marshal(answer)
		if err != nil {
			text = fmt.Append(nil, err)
		}
		call.Answers[key] = string(text)
	}
	return call
}

func officialQuestions(result Result) mcp.InputRequestMap {
	if result.Questions == nil {
		return nil
	}
	questions := make(mcp.InputRequestMap)
	for key, kind := range result.Questions {
		switch kind {
		case tripseal.KindForm:
			questions[key] = &mcp.ElicitParams{Message: "?", RequestedSchema: map[string]any{"type": "object"}}
		case tripseal.KindURL:
			questions[key] = &mcp.ElicitParams{Mode: "url", Message: "?", URL: "https://example.com/", ElicitationID: "1"}
		case tripseal.KindSampling:
			questions[key] = &mcp.CreateMessageParams{MaxTokens: 1}
		case tripseal.KindRoots:
			questions[key] = &mcp.ListRootsParams{}
		}
	}
	return questions
}
