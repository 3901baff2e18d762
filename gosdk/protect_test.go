package gosdk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

func TestAFlowOfThreeQuestionsCompletes(t *testing.T) {
	for _, revision := range []string{revision2026, revision2025} {
		t.Run(revision, func(t *testing.T) {
			b := &book{}
			server := newServer()
			tool := addSteps(server, "steps", 3)
			gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
			session := connect(t, server, answering(), revision)
			result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
			if err != nil || text(result) != "done after 3" {
				t.Fatalf("%q, %v\n%s", text(result), err, b)
			}
			want := []string{`"" `, `"step=1" q1=accept to question 1`, `"step=2" q2=accept to question 2`, `"step=3" q3=accept to question 3`}
			if got := tool.log(); !slices.Equal(got, want) {
				t.Errorf("the handler saw %q", got)
			}
			if result.RequestState != "" || result.InputRequests != nil {
				t.Error("a complete result asks")
			}
		})
	}
}

func TestTheWireCarriesTokens(t *testing.T) {
	b := &book{}
	server := newServer()
	addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, b, nil), nil)
	session := connect(t, server, raw(), revision2026)
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"})
	if err != nil || !result.NeedsInput() {
		t.Fatal(result, err)
	}
	if !strings.HasPrefix(result.RequestState, "ms1.") || strings.Contains(result.RequestState, "step") {
		t.Errorf("the state on the wire is %q", result.RequestState)
	}
	accepted := mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept"}}
	again, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: result.RequestState, InputResponses: accepted})
	if err != nil || text(again) != "done after 1" {
		t.Fatal(text(again), err)
	}
	for name, params := range map[string]*mcp.CallToolParams{
		"changed":         {Name: "steps", RequestState: result.RequestState[:20] + "AAAA" + result.RequestState[24:], InputResponses: accepted},
		"plaintext":       {Name: "steps", RequestState: "step=1", InputResponses: accepted},
		"other arguments": {Name: "steps", RequestState: result.RequestState, InputResponses: accepted, Arguments: map[string]any{"x": 1}},
	} {
		result, err := callTool(t, session, params)
		var rpc *jsonrpc.Error
		if !errors.As(err, &rpc) {
			t.Errorf("%s: %v, %v", name, result, err)
			continue
		}
		if wire, _ := json.Marshal(rpc); string(wire) != `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}` {
			t.Errorf("%s: %s", name, wire)
		}
	}
}

func TestAnswersWithoutAStateAreDropped(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	exempt := addSteps(server, "exempt", 1)
	b := &book{}
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Unsolicited: []string{"exempt"}, Logger: b.logger()})
	session := connect(t, server, raw(), revision2026)
	unsolicited := mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "forged"}}}
	for _, name := range []string{"steps", "exempt"} {
		if _, err := callTool(t, session, &mcp.CallToolParams{Name: name, InputResponses: unsolicited}); err != nil {
			t.Fatal(err)
		}
	}
	if got := tool.log()[0]; got != `"" ` {
		t.Errorf("the handler saw %s", got)
	}
	if got := exempt.log()[0]; got != `"" q1=accept forged` {
		t.Errorf("the exempted handler saw %s", got)
	}
	if !strings.Contains(b.String(), "tool=exempt") {
		t.Errorf("the exemption is not logged: %s", b)
	}
}

func TestAskAgainLetsNoAnswerOfAnOlderClientThrough(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.AskAgain = tripseal.AskAgainAlways }), nil)
	session := connect(t, server, answering(), revision2025)
	answers := mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "forged"}}}
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: "step=1", InputResponses: answers})
	if err != nil || text(result) != "done after 1" {
		t.Errorf("%q, %v", text(result), err)
	}
	if got := tool.log()[0]; got != `"" ` {
		t.Errorf("the handler saw %s", got)
	}
}

func TestAskAgainRunsTheHandlerAsOnAFirstRound(t *testing.T) {
	server := newServer()
	tool := addSteps(server, "steps", 1)
	gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.AskAgain = tripseal.AskAgainAlways }), &gosdk.Options{Unsolicited: []string{"steps"}})
	session := connect(t, server, raw(), revision2026)
	answers := mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "forged"}}}
	result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: "step=1", InputResponses: answers})
	if err != nil {
		t.Fatal(err)
	}
	if got := tool.log()[0]; got != `"" ` {
		t.Errorf("the handler saw %s", got)
	}
	result, err = callTool(t, session, &mcp.CallToolParams{Name: "steps", RequestState: result.RequestState, InputResponses: answers})
	if err != nil || text(result) != "done after 1" {
		t.Errorf("the question that was asked again: %q, %v", text(result), err)
	}
}

// installHalves installs the two halves of the middleware without Protect. Unlike Protect, it does
// not panic if the server is protected already. In that case, every tool call fails.
func installHalves(t *testing.T, server *mcp.Server, b *book) {
	receiving, sending := gosdk.Middleware(boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	server.AddReceivingMiddleware(receiving)
	server.AddSendingMiddleware(sending)
}

func TestInstalledTwiceIsRefused(t *testing.T) {
	b := &book{}
	server := newServer()
	tool := addSteps(server, "steps", 1)
	options := &gosdk.Options{Logger: b.logger()}
	gosdk.Protect(server, boundary(t, b, nil), options)
	installHalves(t, server, b)
	session := connect(t, server, answering(), revision2026)
	for range 3 {
		if result, err := callTool(t, session, &mcp.CallToolParams{Name: "steps"}); err == nil || !strings.Contains(err.Error(), "Internal error") {
			t.Fatalf("%v, %v", text(result), err)
		}
	}
	if len(tool.log()) != 0 || !strings.Contains(b.String(), "through the middleware twice") {
		t.Errorf("the handler ran, or the log is silent: %s", b)
	}
}
