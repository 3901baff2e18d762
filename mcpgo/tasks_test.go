package mcpgo_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// result waits for a task and returns its result.
func result(ctx context.Context, t *testing.T, srv *server.MCPServer, params string) reply {
	t.Helper()
	created := send(ctx, t, srv, "tools/call", params)
	if created.Result.Task.TaskId == "" {
		t.Fatalf("no task: %s", created.raw)
	}
	return send(ctx, t, srv, "tasks/result", `"taskId":`+quote(created.Result.Task.TaskId)) // waits for the task
}

func TestATaskThatMiddlewareRepeatsIsRefused(t *testing.T) {
	l, ran := new(log), 0
	srv := protected(t, l, server.WithTaskCapabilities(true, true, true), server.WithToolHandlerMiddleware(func(next server.ToolHandlerFunc) server.ToolHandlerFunc {
		return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			next(ctx, req)
			return next(ctx, req)
		}
	}))
	srv.AddTool(mcp.NewTool("either", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ran++
		return mcp.NewToolResultText("done"), nil
	})
	result(as(t.Context(), "alice"), t, srv, `"name":"either","task":{},"arguments":{}`)
	if ran != 1 {
		t.Errorf("the handler ran %d times", ran)
	}
	has(t, l, "ran a task a second time")
}

// mcp-go calls the handlers of task tools without any middleware.
func TestATaskToolGetsNeitherStateNorAnswers(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l, server.WithTaskCapabilities(true, true, true)), as(t.Context(), "alice")
	srv.AddTaskTool(mcp.NewTool("task", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
		return &mcp.CreateTaskResult{Content: []mcp.Content{mcp.NewTextContent(answered(req.Params.RequestState, req.Params.InputResponses))}}, nil
	})
	good := token(alice, t, srv)
	for _, state := range []string{"forged", good, ""} {
		r := result(alice, t, srv, `"name":"task","task":{},"requestState":`+quote(state)+`,"inputResponses":{"ok":{"action":"accept"}}`)
		if r.text() != `state="" answers=0` {
			t.Errorf("got %s", r.raw)
		}
	}
	has(t, l, "a call that runs as a task carries none")
}

func TestAToolThatRunsAsATaskCannotAsk(t *testing.T) {
	l := new(log)
	srv, alice := protected(t, l, server.WithTaskCapabilities(true, true, true)), as(t.Context(), "alice")
	srv.AddTool(mcp.NewTool("both", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return question().ToolResult(), nil
	})
	if r := result(alice, t, srv, `"name":"both","task":{}`); strings.Contains(r.raw, secret) || strings.Contains(r.raw, "ms1.") || !strings.Contains(r.raw, "Internal error") {
		t.Errorf("got %s", r.raw)
	}
	has(t, l, "a tool that runs as a task cannot ask")
	if r := send(alice, t, srv, "tools/call", `"name":"both"`); r.Result.ResultType != "input_required" {
		t.Errorf("without a task: %s", r.raw)
	}
}
