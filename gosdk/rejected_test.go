package gosdk_test

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// If RejectedText is set, a rejected token gets a result that the model reads. The text is the
// same for all reasons, and the handler does not run.
func TestARejectionCanBeAResultThatTheModelReads(t *testing.T) {
	for _, version := range []string{revision2026, revision2025} {
		b := &book{}
		server := newServer()
		tool := addSteps(server, "steps", 1)
		addSteps(server, "other", 1)
		gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger(), RejectedText: gosdk.StartOver})
		if !strings.Contains(b.String(), "input-required-result-tampered-state") {
			t.Errorf("the log does not say what the official suite thinks of it: %s", b)
		}
		session := connect(t, server, raw(), version)
		token := "ms1.AAAA"
		if version == revision2026 {
			asked, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
			if err != nil {
				t.Fatal(err)
			}
			token = asked.RequestState
		}
		ran := len(tool.log())
		for name, params := range map[string]*mcp.CallToolParams{
			"forged":          {Name: "steps", RequestState: forged(token)},
			"malformed":       {Name: "steps", RequestState: "step=1"},
			"another tool":    {Name: "other", RequestState: token},
			"other arguments": {Name: "steps", RequestState: token, Arguments: map[string]any{"x": 1}},
		} {
			result, err := callTool(t, session, params)
			if err != nil || !result.IsError || text(result) != gosdk.StartOver || result.RequestState != "" || len(result.Content) != 1 {
				t.Errorf("%s, %s: %+v, %v", version, name, result, err)
			}
		}
		if len(tool.log()) != ran {
			t.Errorf("%s: the handler ran", version)
		}
		if n := strings.Count(b.String(), "tripseal: token rejected"); n != 4 {
			t.Errorf("%s: the log has %d rejections", version, n)
		}
	}
}

// RejectedText applies only to rejected tokens of tools. Prompts and resources have no error
// result that the model reads. Any other error of a tool stays an error.
func TestOnlyTheRejectionsOfToolsAreResults(t *testing.T) {
	b := &book{}
	server := newServer()
	gosdk.Protect(server, boundary(t, b, func(c *tripseal.Config) { c.MaxState = 10 }), &gosdk.Options{Logger: b.logger(), RejectedText: "again, please"})
	server.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { panic("ran") })
	server.AddTool(&mcp.Tool{Name: "large", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form("?")}, RequestState: "more than ten bytes"}, nil
	})
	session := connect(t, server, raw(), revision2026)
	if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", RequestState: "forged"}); wire(err) != invalidState {
		t.Errorf("a prompt: %s", wire(err))
	}
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "large"}); wire(err) != internal {
		t.Errorf("a state that is not sealed: %s", wire(err))
	}
}

// forged returns the token with one character changed: to A, or to B if that character is A
// already.
func forged(token string) string {
	i := len(token) - 2
	other := "A"
	if token[i:i+1] == other {
		other = "B"
	}
	return token[:i] + other + token[i+1:]
}
