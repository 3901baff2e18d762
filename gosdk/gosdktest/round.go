package gosdktest

import (
	"bytes"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// CallTool calls a tool. The arguments may be anything that mcp.CallToolParams takes. To answer the questions of the
// tool, call [Round.Answer].
func (c *Client) CallTool(name string, arguments any) *Round {
	return c.send(Message{Method: "tools/call", Target: name, Arguments: arguments, User: c.user})
}

// GetPrompt gets a prompt. To answer its questions, call [Round.Answer].
func (c *Client) GetPrompt(name string, arguments map[string]string) *Round {
	return c.send(Message{Method: "prompts/get", Target: name, Arguments: arguments, User: c.user})
}

// ReadResource reads a resource. To answer its questions, call [Round.Answer].
func (c *Client) ReadResource(uri string) *Round {
	return c.send(Message{Method: "resources/read", Target: uri, User: c.user})
}

// Message is what a client sends in one round. A [Change] may change any of its fields. You need it only to write a
// Change.
type Message struct {
	Method    string               // tools/call, prompts/get or resources/read
	Target    string               // the tool, the prompt, or the resource's URI
	Arguments any                  // for a prompt, a map[string]string
	User      string               // who sends the message; "" for a caller without a name
	Token     string               // the requestState
	Answers   mcp.InputResponseMap // the answers, by the keys of their questions
}

// Round is one request and what came back. Look at its fields to check what the server did, and call [Round.Answer] to
// go on.
type Round struct {
	Result    mcp.Result          // nil if the call failed
	Err       error               // nil unless the call failed
	Token     string              // the requestState that came back; "" if the server asked nothing
	Questions mcp.InputRequestMap // the questions, by their keys; nil if the server asked nothing

	asks bool
	sent Message
	on   *connections
}

// Asks reports whether the server needs input for another round. Use it to check that a call is not done yet.
func (r *Round) Asks() bool { return r.asks }

// Rejected reports whether the call failed with exactly the error of a rejected token. It returns false for any other
// failure. If [Options].RejectedText is set, it also returns true for a tool result that is an error with exactly this
// text. Use Rejected to check that an attack failed for the right reason.
func (r *Round) Rejected() bool {
	if result, ok := r.Result.(*mcp.CallToolResult); ok && r.on.options.RejectedText != "" {
		return result != nil && result.IsError && r.Text() == r.on.options.RejectedText
	}
	var got *jsonrpc.Error
	if !errors.As(r.Err, &got) {
		return false
	}
	want := tripseal.Wire(tripseal.ErrRejected)
	return got.Code == want.Code && got.Message == want.Message && bytes.Equal(got.Data, want.Data)
}

// Text returns the text of the result, or of the error if the call failed.
func (r *Round) Text() string {
	var texts []string
	add := func(content mcp.Content) {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	switch result := r.Result.(type) {
	case *mcp.CallToolResult:
		for _, content := range result.Content {
			add(content)
		}
	case *mcp.GetPromptResult:
		for _, message := range result.Messages {
			add(message.Content)
		}
	case *mcp.ReadResourceResult:
		for _, contents := range result.Contents {
			texts = append(texts, contents.Text)
		}
	default:
		return r.Err.Error()
	}
	return strings.Join(texts, "\n")
}

// Answer sends the next round: the same request with the round's token and these answers. Before it sends this message,
// it applies the changes. To replay a token, call Answer again. Several goroutines may call Answer at once.
func (r *Round) Answer(answers mcp.InputResponseMap, changes ...Change) *Round {
	r.on.t.Helper()
	if !r.asks {
		r.on.t.Fatalf("gosdktest: the round asks nothing: %s", r.Text())
	}
	next := r.sent
	next.Token, next.Answers = r.Token, answers
	for _, change := range changes {
		change(&next)
	}
	return r.on.send(next)
}

// Accept returns an accepted answer to the question with this key. For a question about a URL, content is nil.
func Accept(key string, content map[string]any) mcp.InputResponseMap {
	return mcp.InputResponseMap{key: &mcp.ElicitResult{Action: "accept", Content: content}}
}

func (c *connections) send(m Message) *Round {
	r := &Round{sent: m, on: c}
	session, err := c.session(m.User)
	if err != nil {
		r.Err = err
		return r
	}
	ctx := c.t.Context()
	switch m.Method {
	case "tools/call":
		params := &mcp.CallToolParams{
			Name: m.Target, Arguments: m.Arguments, RequestState: m.Token, InputResponses: m.Answers,
		}
		result, err := session.CallTool(ctx, params)
		if r.Err = err; err == nil {
			r.Result, r.Token, r.Questions, r.asks = result, result.RequestState, result.InputRequests, result.NeedsInput()
		}
	case "prompts/get":
		arguments, _ := m.Arguments.(map[string]string)
		params := &mcp.GetPromptParams{
			Name: m.Target, Arguments: arguments, RequestState: m.Token, InputResponses: m.Answers,
		}
		result, err := session.GetPrompt(ctx, params)
		if r.Err = err; err == nil {
			r.Result, r.Token, r.Questions, r.asks = result, result.RequestState, result.InputRequests, result.NeedsInput()
		}
	case "resources/read":
		params := &mcp.ReadResourceParams{URI: m.Target, RequestState: m.Token, InputResponses: m.Answers}
		result, err := session.ReadResource(ctx, params)
		if r.Err = err; err == nil {
			r.Result, r.Token, r.Questions, r.asks = result, result.RequestState, result.InputRequests, result.NeedsInput()
		}
	default:
		r.Err = errors.New("gosdktest: " + m.Method + " carries no state")
	}
	return r
}
