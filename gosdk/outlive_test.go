package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// For an older client, the SDK runs the handler, asks, and runs the handler again with the same params. If the
// second run asks too, the package asks. Then the handler gets the arguments that arrived, even if an earlier run has
// changed its arguments in place.
func TestAnOlderClientsCallKeepsTheArgumentsThatArrived(t *testing.T) {
	server := newServer()
	var seen []string
	step := func(arguments, state string) (string, mcp.InputRequestMap) {
		if seen = append(seen, arguments); len(seen) == 5 {
			return "", nil
		}
		return state + "x", mcp.InputRequestMap{"q1": form("?")}
	}
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		state, questions := step(string(req.Params.Arguments), req.Params.RequestState)
		if len(state)%2 == 0 { // the second of the two runs that the SDK makes with the same params
			copy(req.Params.Arguments, `{"region":"us"}`)
		}
		return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "prompt"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		state, questions := step(req.Params.Arguments["region"], req.Params.RequestState)
		if len(state)%2 == 0 {
			delete(req.Params.Arguments, "region")
		}
		return &mcp.GetPromptResult{InputRequests: questions, RequestState: state}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	session := connect(t, server, answering(), revision2025)
	if _, err := callTool(t, session, &mcp.CallToolParams{Name: "tool", Arguments: map[string]any{"region": "eu"}}); err != nil {
		t.Error(err)
	}
	ofTool := seen
	seen = nil
	if _, err := session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "prompt", Arguments: map[string]string{"region": "eu"}}); err != nil {
		t.Error(err)
	}
	if want := slices.Repeat([]string{`{"region":"eu"}`}, 5); !slices.Equal(ofTool, want) {
		t.Errorf("the runs of the tool saw %v", ofTool)
	}
	if want := slices.Repeat([]string{"eu"}, 5); !slices.Equal(seen, want) {
		t.Errorf("the runs of the prompt saw %v", seen)
	}
}

// A handler overwrites its arguments and leaves questions behind, as other calls do at the same time. The memory of
// arguments is reused, and every call still gets its own arguments and answers.
func TestAHandlerThatOutlivesItsCallHarmsNoOther(t *testing.T) {
	server := newServer()
	var late, clients sync.WaitGroup
	server.AddTool(&mcp.Tool{Name: "x", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		late.Go(func() { req.Session.Elicit(context.WithoutCancel(ctx), form("late")) }) // answered or not
		arguments, said := string(req.Params.Arguments), req.Params.RequestState
		clear(req.Params.Arguments)
		if said == "" {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form("of " + arguments)}, RequestState: arguments}, nil
		}
		if answer, ok := req.Params.InputResponses["q1"].(*mcp.ElicitResult); ok {
			said += fmt.Sprint(" ", answer.Content["value"])
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
	})
	gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	for c := range 4 {
		session := connect(t, server, answering(), revision2025)
		clients.Go(func() {
			for i := range 25 {
				arguments := fmt.Sprintf(`{"c":%d,"i":%d}`, c, i)
				result, err := callTool(t, session, &mcp.CallToolParams{Name: "x", Arguments: json.RawMessage(arguments)})
				if err != nil || text(result) != arguments+" to of "+arguments {
					t.Errorf("%s: %q, %v", arguments, text(result), err)
				}
			}
		})
	}
	clients.Wait()
	late.Wait()
}

// A goroutine of a handler asks after the call has ended, or has not got its answer by then. Its question is answered,
// but is not part of the call: nothing is sealed or opened with the arguments of the call, whose memory others use now.
func TestAQuestionAfterTheCallIsNotPartOfIt(t *testing.T) {
	for name, before := range map[string]bool{"asked after the call": false, "open at the end of the call": true} {
		var ended atomic.Bool
		arrived, returned, got := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		options := answering()
		answer := options.ElicitationHandler
		options.ElicitationHandler = func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			close(arrived)
			<-returned
			return answer(ctx, req)
		}
		server := newServer()
		server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			go func() {
				if !before {
					<-returned
				}
				_, err := req.Session.Elicit(context.WithoutCancel(ctx), form("later?"))
				got <- err
			}()
			if before {
				<-arrived
			}
			return &mcp.CallToolResult{}, nil
		})
		gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) {
			c.Observer = func(_ context.Context, e tripseal.Event) {
				if ended.Load() {
					t.Errorf("%s: after the call: %+v", name, e)
				}
			}
		}), nil)
		if _, err := callTool(t, connect(t, server, options, revision2025), &mcp.CallToolParams{Name: "tool", Arguments: map[string]any{"a": 1}}); err != nil {
			t.Fatal(err)
		}
		ended.Store(true)
		close(returned)
		if err := <-got; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A handler asks directly, and returns other questions before the direct one has its answer. The flow completes all the
// same, although each token works only once.
func TestADirectQuestionLeftOpenDoesNotEndTheFlow(t *testing.T) {
	b, server := &book{}, newServer()
	var once sync.Once
	arrived, first, second := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		once.Do(func() {
			go func() {
				req.Session.Elicit(ctx, form("direct?"))
				close(second)
			}()
			<-arrived // the client has the direct question
		})
		if done := len(req.Params.RequestState); done < 3 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form(fmt.Sprint("q", done))}, RequestState: strings.Repeat("x", done+1)}, nil
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	gosdk.Protect(server, boundary(t, b, singleUse(t)), nil)
	options := answering()
	options.ElicitationHandler = func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		switch req.Params.Message {
		case "direct?":
			close(arrived)
			<-first
		case "q1":
			close(first)
			<-second
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "x"}}, nil
	}
	if result, err := callTool(t, connect(t, server, options, revision2025), &mcp.CallToolParams{Name: "tool"}); err != nil || text(result) != "done" {
		t.Errorf("%q, %v\n%s", text(result), err, b)
	}
}
