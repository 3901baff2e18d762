package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// purge registers a prompt that asks a question. Each run of the prompt's handler deletes dry_run
// from its arguments. When a run gets the answer, it appends a text to the list that purge
// returned. The text says whether dry_run was in the arguments of this run.
func purge(server *mcp.Server) *[]string {
	ran := new([]string)
	server.AddPrompt(&mcp.Prompt{Name: "purge"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		_, dry := req.Params.Arguments["dry_run"]
		delete(req.Params.Arguments, "dry_run")
		if len(req.Params.InputResponses) == 0 {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"q1": form("sure?")}, RequestState: "asked"}, nil
		}
		*ran = append(*ran, fmt.Sprintf("dry=%v", dry))
		return &mcp.GetPromptResult{}, nil
	})
	return ran
}

var yes = mcp.InputResponseMap{"q1": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "yes"}}}

func TestAPromptIsBoundToTheArgumentsThatArrived(t *testing.T) {
	server := newServer()
	ran := purge(server)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, raw(), revision2026)
	get := func(arguments map[string]string, state string, answers mcp.InputResponseMap) (*mcp.GetPromptResult, error) {
		return session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "purge", Arguments: arguments, RequestState: state, InputResponses: answers})
	}
	dry := func() map[string]string { return map[string]string{"dry_run": "yes", "table": "a\"b\\c\x01\n\u2028é"} }
	asked, err := get(dry(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	wet := dry()
	delete(wet, "dry_run")
	if _, err := get(wet, asked.RequestState, yes); wire(err) != invalidState {
		t.Errorf("the retry without dry_run: %v", err)
	}
	if _, err := get(dry(), asked.RequestState, yes); err != nil {
		t.Errorf("the honest retry: %v", err)
	}
	if !slices.Equal(*ran, []string{"dry=true"}) {
		t.Errorf("ran %v", *ran)
	}
}

// scribble adds a middleware that overwrites a tool's arguments in place after the handler has
// run.
func scribble(server *mcp.Server) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r, ok := req.(*mcp.CallToolRequest); ok {
				defer copy(r.Params.Arguments, bytes.Replace(r.Params.Arguments, []byte("eu"), []byte("us"), 1))
			}
			return next(ctx, method, req)
		}
	})
}

func TestAToolIsBoundToTheArgumentsThatArrived(t *testing.T) {
	server := newServer()
	addSteps(server, "steps", 3)
	scribble(server)
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, raw(), revision2026)
	state, answers := "", mcp.InputResponseMap(nil)
	for round := 1; round <= 3; round++ {
		call := func(region string) (*mcp.CallToolResult, error) {
			return callTool(t, session, &mcp.CallToolParams{Name: "steps", Arguments: map[string]any{"region": region}, RequestState: state, InputResponses: answers})
		}
		if state != "" {
			if _, err := call("us"); wire(err) != invalidState {
				t.Errorf("round %d with what the middleware made of the arguments: %v", round, err)
			}
		}
		result, err := call("eu")
		if err != nil {
			t.Fatalf("round %d: the honest retry: %v", round, err)
		}
		state = result.RequestState
		answers = mcp.InputResponseMap{fmt.Sprint("q", round): yes["q1"]}
	}
}

// For an older client, the SDK runs the handler, asks the questions, and runs the handler again
// with the same params. If the second run has questions too, this package asks them. It then runs
// the handler with the arguments that arrived, even if an earlier run has changed its arguments in
// place.
func TestAnOlderClientsCallKeepsTheArgumentsThatArrived(t *testing.T) {
	server := newServer()
	var seen []string
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		seen = append(seen, string(req.Params.Arguments))
		done := len(req.Params.RequestState)
		if done == 4 {
			return &mcp.CallToolResult{}, nil
		}
		if done%2 == 1 { // the second of the two runs that the SDK makes with the same params
			copy(req.Params.Arguments, `{"region":"us"}`)
		}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("?")}, RequestState: strings.Repeat("x", done+1)}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	if _, err := callTool(t, connect(t, server, answering(), revision2025), &mcp.CallToolParams{Name: "tool", Arguments: map[string]any{"region": "eu"}}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 5 || slices.ContainsFunc(seen, func(s string) bool { return s != `{"region":"eu"}` }) {
		t.Errorf("the runs saw %v", seen)
	}
}

// FuzzPromptArguments checks the text from which the digest of a prompt's arguments is made: it
// must decode to the same arguments.
func FuzzPromptArguments(f *testing.F) {
	f.Add("dry_run", "yes")
	f.Add("\"\\\x00\x1f", "\u2028\U0001f9ad\x7f")
	f.Fuzz(func(t *testing.T, name, value string) {
		name, value = strings.ToValidUTF8(name, "?"), strings.ToValidUTF8(value, "?")
		want := map[string]string{name: value, "other": name}
		text := gosdk.PromptArguments(want)
		var got map[string]string
		if err := json.Unmarshal(text, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q reads as %q, %v", text, got, err)
		}
	})
}
