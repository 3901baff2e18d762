package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// markSDK is mark3labs/mcp-go behind a door.
var markSDK = system{
	start: func(t *testing.T, s Server) Client {
		var options []server.ServerOption
		if s.PageSize > 0 {
			options = append(options, server.WithPaginationLimit(s.PageSize))
		}
		srv := server.NewMCPServer("test", "1", options...)
		addMark(srv, s)
		return throughDoor(t, s, func(engine *wire.Engine, options wire.Options) http.Handler {
			return mcpgo.Handler(srv, engine, options)
		})
	},
	cannot: doorsCannot(withArguments, nil),
}

func init() {
	for _, promise := range []string{"resource: *", "template: *", "RejectedText is the rejection of tools alone"} {
		markSDK.cannot[promise] = resourcesCannotAsk
	}
}

const resourcesCannotAsk = "handlers of resources return contents, so they cannot ask and have no state"

func addMark(srv *server.MCPServer, s Server) {
	for name, handle := range s.Tools {
		srv.AddTool(mcp.NewTool(name), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result, err := handle(ctx, markCall(req.Params.MultiRoundTripParams, []byte(req.Params.RawArguments)))
			answer := &mcp.CallToolResult{}
			answer.ResultType, answer.MultiRoundTripResult = markQuestions(result)
			if answer.ResultType == "" {
				answer.Content = []mcp.Content{mcp.NewTextContent(result.Text)}
			}
			return answer, err
		})
	}
	for name, handle := range s.Prompts {
		srv.AddPrompt(mcp.NewPrompt(name), func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			result, err := handle(ctx, markCall(req.Params.MultiRoundTripParams, req.Params.Arguments))
			answer := &mcp.GetPromptResult{}
			answer.ResultType, answer.MultiRoundTripResult = markQuestions(result)
			if answer.ResultType == "" {
				message := mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(result.Text))
				answer.Messages = []mcp.PromptMessage{message}
			}
			return answer, err
		})
	}
	read := func(handle Handler) func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return func(ctx context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			result, err := handle(ctx, markCall(req.Params.MultiRoundTripParams, nil))
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, Text: result.Text}}, err
		}
	}
	for uri, handle := range s.Resources {
		srv.AddResource(mcp.NewResource(uri, uri), read(handle))
	}
	for template, handle := range s.Templates {
		handler := server.ResourceTemplateHandlerFunc(read(handle))
		srv.AddResourceTemplate(mcp.NewResourceTemplate(template, template), handler)
	}
}

func markCall(in mcp.MultiRoundTripParams, arguments any) Call {
	call := Call{State: in.RequestState, Arguments: arguments, Answers: make(map[string]string)}
	for key, answer := range in.InputResponses {
		text, err := json.Marshal(answer)
		if err != nil {
			text = fmt.Append(nil, err)
		}
		call.Answers[key] = string(text)
	}
	return call
}

func markQuestions(result Result) (mcp.ResultType, mcp.MultiRoundTripResult) {
	r := mcp.MultiRoundTripResult{RequestState: result.State}
	if result.Questions == nil {
		return "", r
	}
	r.InputRequests = make(mcp.InputRequests)
	for key, kind := range result.Questions {
		switch kind {
		case tripseal.KindForm:
			r.InputRequests[key] = mcp.NewElicitationInputRequest(mcp.ElicitationParams{
				Message: "?", RequestedSchema: map[string]any{"type": "object"},
			})
		case tripseal.KindURL:
			r.InputRequests[key] = mcp.NewElicitationInputRequest(mcp.ElicitationParams{
				Message: "?", Mode: "url", URL: "https://example.com/", ElicitationID: "1",
			})
		case tripseal.KindSampling:
			r.InputRequests[key] = mcp.NewSamplingInputRequest(mcp.CreateMessageParams{MaxTokens: 1})
		case tripseal.KindRoots:
			r.InputRequests[key] = mcp.NewRootsInputRequest()
		}
	}
	return mcp.ResultTypeInputRequired, r
}
