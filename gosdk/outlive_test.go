package gosdk_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// A handler overwrites its arguments. It also starts goroutines, which still ask questions on its
// session after its call has ended. Every other call still gets its own arguments and answers.
func TestAHandlerThatOutlivesItsCallHarmsNoOther(t *testing.T) {
	var b book
	server := newServer()
	gosdk.Protect(server, boundary(t, &b, nil), nil)
	var late sync.WaitGroup
	server.AddTool(&mcp.Tool{Name: "x", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		arguments := string(req.Params.Arguments)
		for range 3 {
			late.Go(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
				defer cancel()
				req.Session.Elicit(ctx, form("late")) // it does not matter whether this is answered
			})
		}
		for i := range req.Params.Arguments {
			req.Params.Arguments[i] = 'x'
		}
		if req.Params.RequestState == "" {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": form("of " + arguments)}, RequestState: arguments}, nil
		}
		said := req.Params.RequestState
		if answer, ok := req.Params.InputResponses["q"].(*mcp.ElicitResult); ok {
			said += " " + fmt.Sprint(answer.Content["value"])
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
	})
	var clients sync.WaitGroup
	for c := range 4 {
		session := connect(t, server, answering(), revision2025)
		clients.Go(func() {
			for i := range 25 {
				arguments := fmt.Sprintf(`{"c":%d,"i":%d}`, c, i)
				result, err := callTool(t, session, &mcp.CallToolParams{Name: "x", Arguments: map[string]any{"c": c, "i": i}})
				if want := arguments + " to of " + arguments; err != nil || text(result) != want {
					t.Errorf("%s: %q, %v", arguments, text(result), err)
				}
			}
		})
	}
	clients.Wait()
	late.Wait()
}
