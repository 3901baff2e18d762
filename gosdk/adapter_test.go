package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/sealtest"
)

// The AdapterLimits are empty, because the official SDK lets the adapter keep every promise.
func TestTheAdapterKeepsThePromisesOfAllAdapters(t *testing.T) {
	sealtest.TestAdapter(t, startAdapter, sealtest.AdapterLimits{})
}

const userHeader = "Test-User"

// startAdapter makes a server, and returns a client that calls the server's HTTP handler without
// a socket. A header of the request names the user.
func startAdapter(_ *testing.T, s sealtest.AdapterServer) sealtest.AdapterClient {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: s.PageSize})
	gosdk.Protect(server, s.Boundary, &gosdk.Options{
		Principal: func(ctx context.Context, req mcp.Request) (string, error) {
			return s.Principal(ctx, req.GetExtra().Header.Get(userHeader))
		},
		AllowAnonymous: s.AllowAnonymous, RejectedText: s.RejectedText, Logger: s.Logger,
	})
	addAdapterHandlers(server, s)
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, &gosdk.HandlerOptions{
		HTTP:      mcp.StreamableHTTPOptions{JSONResponse: true},
		Principal: func(r *http.Request) (string, error) { return r.Header.Get(userHeader), nil },
		Logger:    s.Logger,
	})
	return func(user string, request []byte) []byte {
		var head struct {
			Method string
			Params struct{ Name, URI string }
		}
		if err := json.Unmarshal(request, &head); err != nil {
			return []byte(err.Error())
		}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(request))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", userHeader: user,
			"Mcp-Protocol-Version": revision2026, "Mcp-Method": head.Method, "Mcp-Name": head.Params.Name + head.Params.URI,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Body.Bytes()
	}
}

func addAdapterHandlers(server *mcp.Server, s sealtest.AdapterServer) {
	for name, handle := range s.Tools {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result, err := handle(ctx, adapterCall(req.Params.RequestState, req.Params.InputResponses, req.Params.Arguments))
			answer := &mcp.CallToolResult{RequestState: result.State, InputRequests: adapterQuestions(result)}
			if answer.InputRequests == nil {
				answer.Content = []mcp.Content{&mcp.TextContent{Text: result.Text}}
			}
			return answer, err
		})
	}
	for name, handle := range s.Prompts {
		server.AddPrompt(&mcp.Prompt{Name: name}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			result, err := handle(ctx, adapterCall(req.Params.RequestState, req.Params.InputResponses, req.Params.Arguments))
			answer := &mcp.GetPromptResult{RequestState: result.State, InputRequests: adapterQuestions(result)}
			if answer.InputRequests == nil {
				answer.Messages = []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: result.Text}}}
			}
			return answer, err
		})
	}
	read := func(handle sealtest.AdapterHandler) mcp.ResourceHandler {
		return func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			result, err := handle(ctx, adapterCall(req.Params.RequestState, req.Params.InputResponses, nil))
			answer := &mcp.ReadResourceResult{RequestState: result.State, InputRequests: adapterQuestions(result)}
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

func adapterCall(state string, answers mcp.InputResponseMap, arguments any) sealtest.AdapterCall {
	call := sealtest.AdapterCall{State: state, Arguments: arguments, Answers: make(map[string]string)}
	for key, answer := range answers {
		text, err := json.Marshal(answer)
		if err != nil {
			text = fmt.Append(nil, err)
		}
		call.Answers[key] = string(text)
	}
	return call
}

func adapterQuestions(result sealtest.AdapterResult) mcp.InputRequestMap {
	if result.Questions == nil {
		return nil
	}
	ofKind := map[tripseal.Kind]string{tripseal.KindForm: "form", tripseal.KindURL: "url", tripseal.KindSampling: "sampling", tripseal.KindRoots: "roots"}
	questions := make(mcp.InputRequestMap)
	for key, kind := range result.Questions {
		questions[key] = questionOf[ofKind[kind]]()
	}
	return questions
}
