package gosdk_test

import (
	"slices"
	"testing"

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
