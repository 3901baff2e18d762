package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const prefix = "test_input_required_result_"

// addScenarios adds the tools and the prompt that the suite calls.
func addScenarios(server *mcp.Server) {
	add := func(name string, handler mcp.ToolHandler) {
		tool := &mcp.Tool{Name: prefix + name, Description: "for the conformance suite", InputSchema: map[string]any{"type": "object"}}
		server.AddTool(tool, handler)
	}
	add("elicitation", elicitation)
	add("sampling", sampling)
	add("list_roots", listRoots)
	add("request_state", requestState)
	add("multiple_inputs", multipleInputs)
	add("multi_round", multiRound)
	add("tampered_state", requestState)
	add("capabilities", capabilities)
	server.AddPrompt(&mcp.Prompt{Name: prefix + "prompt"}, prompt)
}

func text(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil
}

func ask(state string, questions mcp.InputRequestMap) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
}

// form asks for one field.
func form(message, field, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{field: map[string]any{"type": kind}},
		"required":   []string{field},
	}}
}

// accepted returns a field of an accepted form.
func accepted(answers mcp.InputResponseMap, key, field string) (any, bool) {
	answer, ok := answers[key].(*mcp.ElicitResult)
	if !ok || answer.Action != "accept" {
		return nil, false
	}
	value, ok := answer.Content[field]
	return value, ok
}

func sample(question string, maxTokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: maxTokens, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: question}},
	}}
}

// sampled returns the text of a sample.
func sampled(answers mcp.InputResponseMap, key string) (string, bool) {
	answer, ok := answers[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || len(answer.Content) == 0 {
		return "", false
	}
	content, ok := answer.Content[0].(*mcp.TextContent)
	if !ok {
		return "", false
	}
	return content.Text, true
}

func elicitation(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if name, ok := accepted(req.Params.InputResponses, "user_name", "name"); ok {
		return text("Hello, %v!", name)
	}
	return ask("", mcp.InputRequestMap{"user_name": form("What is your name?", "name", "string")})
}

func sampling(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if answer, ok := sampled(req.Params.InputResponses, "capital_question"); ok {
		return text("%s", answer)
	}
	return ask("", mcp.InputRequestMap{"capital_question": sample("What is the capital of France?", 100)})
}

func listRoots(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if roots, ok := req.Params.InputResponses["client_roots"].(*mcp.ListRootsResult); ok {
		names := ""
		for _, root := range roots.Roots {
			names += " " + root.URI
		}
		return text("%d roots:%s", len(roots.Roots), names)
	}
	return ask("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
}

// requestState trusts the state it gets back.
func requestState(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if _, ok := accepted(req.Params.InputResponses, "confirm", "ok"); ok && req.Params.RequestState == "asked" {
		return text("state-ok")
	}
	return ask("asked", mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")})
}

func multipleInputs(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := req.Params.InputResponses
	name, named := accepted(answers, "user_name", "name")
	greeting, greeted := sampled(answers, "greeting")
	roots, rooted := answers["client_roots"].(*mcp.ListRootsResult)
	if named && greeted && rooted {
		return text("%s %v, with %d roots", greeting, name, len(roots.Roots))
	}
	return ask("all three", mcp.InputRequestMap{
		"user_name":    form("What is your name?", "name", "string"),
		"greeting":     sample("Generate a greeting", 50),
		"client_roots": &mcp.ListRootsParams{},
	})
}

func multiRound(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := req.Params.InputResponses
	if color, ok := accepted(answers, "step2", "color"); ok {
		return text("%s likes %v", req.Params.RequestState, color)
	}
	if name, ok := accepted(answers, "step1", "name"); ok {
		return ask(fmt.Sprint(name), mcp.InputRequestMap{"step2": form("Step 2: What is your favorite color?", "color", "string")})
	}
	return ask("step 1", mcp.InputRequestMap{"step1": form("Step 1: What is your name?", "name", "string")})
}

// capabilities asks only what the client has declared.
func capabilities(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if len(req.Params.InputResponses) > 0 {
		return text("thank you")
	}
	questions := mcp.InputRequestMap{}
	if declared := req.ClientCapabilities(); declared != nil {
		if declared.Elicitation != nil {
			questions["user_name"] = form("What is your name?", "name", "string")
		}
		if declared.Sampling != nil {
			questions["greeting"] = sample("Generate a greeting", 50)
		}
	}
	return ask("", questions)
}

func prompt(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	if answer, ok := accepted(req.Params.InputResponses, "user_context", "context"); ok {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: fmt.Sprintf("With this in mind: %v", answer)}},
		}}, nil
	}
	return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
		"user_context": form("What context should the prompt use?", "context", "string"),
	}}, nil
}
