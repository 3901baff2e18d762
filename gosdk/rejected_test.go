package gosdk_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// If RejectedText is set, a rejected token of an older client gets the text too.
func TestARejectionOfAnOlderClientCanBeAResult(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), &gosdk.Options{RejectedText: gosdk.StartOver})
	session := connect(t, server, raw(), revision2025)
	for _, state := range []string{"ms1.AAAA", "step=1"} {
		result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: state})
		if err != nil || !result.IsError || text(result) != gosdk.StartOver || result.RequestState != "" || len(result.Content) != 1 {
			t.Errorf("%s: %+v, %v", state, result, err)
		}
	}
	if len(tool.log()) != 0 {
		t.Error("the handler ran")
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
