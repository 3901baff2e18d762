package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const prefix = "test_input_required_result_"

// addScenarios adds the tools and the prompt that the suite calls.
func addScenarios(server *mcp.Server) {
	add := func(name string, handler mcp.ToolHandler) {
		tool := &mcp.Tool{Name: prefix + name, Description: "for the conformance suite", InputSchema: map[string]any{"type": "object"}}
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if refused(req.Params.InputResponses) {
				return text(nothing)
			}
			return handler(ctx, req)
		})
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

// form returns a question with one field.
func form(message, field, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{field: map[string]any{"type": kind}},
		"required":   []string{field},
	}}
}

// nothing is the text of the result for a user who declined or cancelled.
const nothing = "nothing was done"

// refused reports whether the user declined or cancelled a question.
func refused(answers mcp.InputResponseMap) bool {
	for _, answer := range answers {
		if form, _ := answer.(*mcp.ElicitResult); form != nil && form.Action != "accept" {
			return true
		}
	}
	return false
}

// accepted returns the value of field in an accepted form. ok is false if the form does
// not have exactly this field, of type T. The handlers then ask again.
func accepted[T any](answers mcp.InputResponseMap, key, field string) (value T, ok bool) {
	form, _ := answers[key].(*mcp.ElicitResult)
	if form == nil || form.Action != "accept" || len(form.Content) != 1 {
		return value, false
	}
	value, ok = form.Content[field].(T)
	return value, ok
}

// written returns the text in a field of an accepted form, or false if the text is
// empty or missing.
func written(answers mcp.InputResponseMap, key, field string) (string, bool) {
	text, ok := accepted[string](answers, key, field)
	return text, ok && text != ""
}

func sample(question string, maxTokens int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: maxTokens, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: question}},
	}}
}

// sampled returns the text that the client's model wrote, or false if there is none.
func sampled(answers mcp.InputResponseMap, key string) (string, bool) {
	answer, _ := answers[key].(*mcp.CreateMessageWithToolsResult)
	if answer == nil || len(answer.Content) == 0 {
		return "", false
	}
	content, _ := answer.Content[0].(*mcp.TextContent)
	if content == nil || content.Text == "" {
		return "", false
	}
	return content.Text, true
}

// rooted returns the URIs of the client's roots. ok is false if there is no list, or if
// a root in it is null or has no URI.
func rooted(answers mcp.InputResponseMap, key string) (uris []string, ok bool) {
	answer, _ := answers[key].(*mcp.ListRootsResult)
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

func elicitation(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if name, ok := written(req.Params.InputResponses, "user_name", "name"); ok {
		return text("Hello, %s!", name)
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
	if roots, ok := rooted(req.Params.InputResponses, "client_roots"); ok {
		return text("%d roots: %s", len(roots), strings.Join(roots, " "))
	}
	return ask("", mcp.InputRequestMap{"client_roots": &mcp.ListRootsParams{}})
}

// requestState trusts the state that it gets back: the middleware has checked it.
func requestState(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if yes, ok := accepted[bool](req.Params.InputResponses, "confirm", "ok"); ok && req.Params.RequestState == "asked" {
		if !yes {
			return text(nothing)
		}
		return text("state-ok")
	}
	return ask("asked", mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")})
}

func multipleInputs(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := req.Params.InputResponses
	name, named := written(answers, "user_name", "name")
	greeting, greeted := sampled(answers, "greeting")
	roots, listed := rooted(answers, "client_roots")
	if named && greeted && listed {
		return text("%s %s, with %d roots", greeting, name, len(roots))
	}
	return ask("all three", mcp.InputRequestMap{
		"user_name":    form("What is your name?", "name", "string"),
		"greeting":     sample("Generate a greeting", 50),
		"client_roots": &mcp.ListRootsParams{},
	})
}

func multiRound(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := req.Params.InputResponses
	if color, ok := written(answers, "step2", "color"); ok {
		return text("%s likes %s", req.Params.RequestState, color)
	}
	if name, ok := written(answers, "step1", "name"); ok {
		return ask(name, mcp.InputRequestMap{"step2": form("Step 2: What is your favorite color?", "color", "string")})
	}
	return ask("step 1", mcp.InputRequestMap{"step1": form("Step 1: What is your name?", "name", "string")})
}

// capabilities asks only questions that the client has declared it can answer, until
// all are answered.
func capabilities(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	_, named := written(req.Params.InputResponses, "user_name", "name")
	_, greeted := sampled(req.Params.InputResponses, "greeting")
	questions, answered := mcp.InputRequestMap{}, true
	if declared := req.ClientCapabilities(); declared != nil {
		if declared.Elicitation != nil {
			questions["user_name"] = form("What is your name?", "name", "string")
			answered = answered && named
		}
		if declared.Sampling != nil {
			questions["greeting"] = sample("Generate a greeting", 50)
			answered = answered && greeted
		}
	}
	if len(questions) > 0 && answered {
		return text("thank you")
	}
	return ask("", questions)
}

func prompt(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	says := func(text string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
	}
	if refused(req.Params.InputResponses) {
		return says(nothing)
	}
	if answer, ok := written(req.Params.InputResponses, "user_context", "context"); ok {
		return says("With this in mind: " + answer)
	}
	return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
		"user_context": form("What context should the prompt use?", "context", "string"),
	}}, nil
}
