// Package release is a server whose tools ask the user before they act. It has no protection
// of its own: it writes its state as plaintext and trusts the state that it reads back.
package release

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Args are the arguments of both tools.
type Args struct {
	Service string `json:"service" jsonschema:"what to release"`
	Version string `json:"version" jsonschema:"which version"`
}

// NewServer returns a server with the tools deploy and rollback.
func NewServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "release", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "deploy", Description: "Deploy a version of a service"}, handler("deployed"))
	mcp.AddTool(server, &mcp.Tool{Name: "rollback", Description: "Go back to a version of a service"}, handler("restored"))
	return server
}

// handler returns a tool that asks the user for a confirmation, then for a region, and then
// acts. The tool does nothing if the user declines or cancels. Its state records that the
// user has confirmed, and which percentage of the traffic the plan allows.
func handler(done string) mcp.ToolHandlerFor[Args, any] {
	return func(_ context.Context, req *mcp.CallToolRequest, args Args) (*mcp.CallToolResult, any, error) {
		state, err := url.ParseQuery(req.Params.RequestState)
		if err != nil {
			return nil, nil, fmt.Errorf("the state is broken")
		}
		answers := req.Params.InputResponses
		ok, answered := readAnswer[bool](answers, "confirm", "ok")
		if userRefused(answers) || answered && !ok {
			return text("nothing was done"), nil, nil
		}
		if !answered && state.Get("step") != "2" {
			question := fmt.Sprintf("Really do this to %s %s?", args.Service, args.Version)
			return ask("step=1&traffic=10", "confirm", question, "ok", "boolean"), nil, nil
		}
		region, _ := readAnswer[string](answers, "region", "name")
		if strings.TrimSpace(region) == "" {
			return ask("step=2&traffic=10", "region", "In which region?", "name", "string"), nil, nil
		}
		traffic := state.Get("traffic")
		if traffic == "" {
			traffic = "100"
		}
		return text(fmt.Sprintf("%s %s %s in %s, %s%% of traffic", done, args.Service, args.Version, region, traffic)), nil, nil
	}
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func ask(state, key, message, field, kind string) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		RequestState: state,
		InputRequests: mcp.InputRequestMap{key: &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{field: map[string]any{"type": kind}}, "required": []string{field},
		}}},
	}
}

// userRefused reports whether the user declined or cancelled a question.
func userRefused(answers mcp.InputResponseMap) bool {
	for _, answer := range answers {
		if form, _ := answer.(*mcp.ElicitResult); form != nil && form.Action != "accept" {
			return true
		}
	}
	return false
}

// readAnswer returns the value of one field in the user's answer to the question with this
// key. The result ok is true if the user accepted the question, and if the answer has this
// field, of type T, and no other field. If ok is false, the handler asks again.
func readAnswer[T any](answers mcp.InputResponseMap, key, field string) (value T, ok bool) {
	form, _ := answers[key].(*mcp.ElicitResult)
	if form == nil || form.Action != "accept" || len(form.Content) != 1 {
		return value, false
	}
	value, ok = form.Content[field].(T)
	return value, ok
}
