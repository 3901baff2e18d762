package gosdk_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
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

// The published clients of Python and TypeScript refuse a result of revision 2026-07-28 without a type.
func TestARejectionThatIsAResultHasTheTypeOfAResult(t *testing.T) {
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, nil), &gosdk.Options{RejectedText: gosdk.StartOver, AllowAnonymous: true})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(web.Close)
	r, err := http.NewRequest("POST", web.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+
		`"name":"steps","requestState":"ms1.AAAA","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "steps",
	} {
		r.Header.Set(name, value)
	}
	res, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		Result struct {
			ResultType string
			IsError    bool
			Content    []struct{ Text string }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	got := answer.Result
	if got.ResultType != "complete" || !got.IsError || len(got.Content) != 1 || got.Content[0].Text != gosdk.StartOver {
		t.Errorf("%+v", got)
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
