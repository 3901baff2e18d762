package mcpgo_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// result calls a tool that runs as a task, and returns the result of the task.
func result(ctx context.Context, t *testing.T, srv *server.MCPServer, params string) reply {
	t.Helper()
	created := send(ctx, t, srv, "tools/call", params)
	if created.Result.Task.TaskId == "" {
		t.Fatalf("no task: %s", created.raw)
	}
	return send(ctx, t, srv, "tasks/result", `"taskId":`+quote(created.Result.Task.TaskId)) // waits for the task
}

// mcp-go calls the handlers of task tools without any middleware, so nothing could check a state
// or answers.
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

// The threat model warns of this limit of mcp-go. If this test fails, mcp-go has changed:
// correct the threat model.
func TestAnyClientReachesTheTasksOfOthers(t *testing.T) {
	srv := protected(t, new(log), server.WithTaskCapabilities(true, true, true))
	srv.AddTool(mcp.NewTool("report", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		user, _ := userFromContext(ctx)
		return mcp.NewToolResultText("of " + user), nil
	})
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	srv.AddTool(mcp.NewTool("slow", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ended
		return mcp.NewToolResultText("done"), nil
	})
	url := listening(t, server.NewStreamableHTTPServer(srv, server.WithHTTPContextFunc(fromHeader)))
	onSession := func(user string) func(method string, params any) string {
		c := dial(t, srv, "streamable HTTP with sessions", user, new(yes), client.WithProtocolVersion("2025-11-25"))
		if c.GetSessionId() == "" {
			t.Fatal("no session")
		}
		return func(method string, params any) string {
			t.Helper()
			response, err := c.GetTransport().SendRequest(t.Context(), transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcp.NewRequestId(method), Method: method, Params: params})
			if err != nil {
				t.Fatal(err)
			}
			return string(response.Result)
		}
	}
	idIn := func(created string) string {
		t.Helper()
		id := regexp.MustCompile(`"taskId":"([^"]+)"`).FindStringSubmatch(created)
		if id == nil {
			t.Fatalf("no task: %s", created)
		}
		return id[1]
	}
	alice, eve := onSession("alice"), onSession("eve")

	// A task of a call without a session belongs to every session.
	report, slow := idIn(post(t, url, "alice", "tools/call", "report", `"task":{}`)), idIn(post(t, url, "alice", "tools/call", "slow", `"task":{}`))
	if list := eve("tasks/list", nil); !strings.Contains(list, report) || !strings.Contains(list, slow) {
		t.Errorf("the list lacks a task of alice: %s", list)
	}
	if result := eve("tasks/result", mcp.TaskResultParams{TaskId: report}); !strings.Contains(result, "of alice") {
		t.Errorf("the result: %s", result)
	}
	if cancelled := eve("tasks/cancel", mcp.CancelTaskParams{TaskId: slow}); !strings.Contains(cancelled, `"status":"cancelled"`) {
		t.Errorf("the cancelled task: %s", cancelled)
	}

	// A request without a session reaches the tasks of all sessions.
	slow = idIn(alice("tools/call", map[string]any{"name": "slow", "task": map[string]any{}}))
	if cancelled := post(t, url, "eve", "tasks/cancel", slow, `"taskId":`+quote(slow)); !strings.Contains(cancelled, `"status":"cancelled"`) {
		t.Errorf("the cancelled task of a session: %s", cancelled)
	}
}

// TestAToolThatBecomesATaskToolGetsNoForgedState uses a session that has a tool of its own. The
// server has a task tool of the same name. The session loses its tool after our hook has looked at
// this tool, and before mcp-go chooses a tool. A client can do this: it ends its session during the
// call.
func TestAToolThatBecomesATaskToolGetsNoForgedState(t *testing.T) {
	srv, got := protected(t, new(log), server.WithTaskCapabilities(true, true, true)), ""
	session := &ownTools{tools: map[string]server.ServerTool{"own": {Tool: mcp.NewTool("own"), Handler: srv.GetTool("echo").Handler}}}
	srv.AddTaskTool(mcp.NewTool("own", mcp.WithTaskSupport(mcp.TaskSupportRequired)), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CreateTaskResult, error) {
		got = answered(req.Params.RequestState, req.Params.InputResponses)
		return &mcp.CreateTaskResult{}, nil
	})
	ctx := srv.WithContext(as(t.Context(), "alice"), session)
	session.isForgetful = true
	r := send(ctx, t, srv, "tools/call", `"name":"own","task":{},"requestState":"forged","inputResponses":{"ok":{"action":"accept"}}`)
	if r.Error == nil || got != "" {
		t.Errorf("the task tool got %s: %s", got, r.raw)
	}
}

// TestACallThatIsNoTaskDoesNotBecomeOne uses a session that has a tool of its own, without support
// for tasks. The server has a tool of the same name, with this support. The session loses its tool
// after our hook has looked at this tool, so mcp-go chooses the server's tool. If mcp-go ran the
// call as a task, a question would be lost.
func TestACallThatIsNoTaskDoesNotBecomeOne(t *testing.T) {
	srv := protected(t, new(log), server.WithTaskCapabilities(true, true, true))
	echo := srv.GetTool("echo").Handler
	srv.AddTool(mcp.NewTool("own", mcp.WithTaskSupport(mcp.TaskSupportOptional)), echo)
	session := &ownTools{tools: map[string]server.ServerTool{"own": {Tool: mcp.NewTool("own"), Handler: echo}}, isForgetful: true}
	r := send(srv.WithContext(as(t.Context(), "alice"), session), t, srv, "tools/call", `"name":"own","task":{}`)
	if r.Error != nil || r.Result.Task.TaskId != "" {
		t.Errorf("got %s", r.raw)
	}
}

// TestATaskWhoseToolHasChangedCannotAsk registers a tool anew while the tool runs as a task. Then the
// task asks. The new tool does not support tasks.
func TestATaskWhoseToolHasChangedCannotAsk(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithTaskCapabilities(true, true, true))
	ask := func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return question().ToolResult(), nil
	}
	srv.AddTool(mcp.NewTool("own", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		srv.AddTool(mcp.NewTool("own"), ask)
		return ask(ctx, req)
	})
	if r := result(as(t.Context(), "alice"), t, srv, `"name":"own","task":{}`); !strings.Contains(r.raw, "Internal error") {
		t.Errorf("got %s", r.raw)
	}
	has(t, l, "a tool that runs as a task cannot ask")
}

// TestATaskThatMiddlewareHidesCannotAsk has middleware that sets Params.Task to nil in a call that
// runs as a task. If the handler could ask, mcp-go would lose the question.
func TestATaskThatMiddlewareHidesCannotAsk(t *testing.T) {
	l := new(log)
	srv := protected(t, l, server.WithTaskCapabilities(true, true, true), server.WithToolHandlerMiddleware(asMiddleware(func(_ context.Context, req *mcp.CallToolRequest) {
		req.Params.Task = nil
	})))
	srv.AddTool(mcp.NewTool("both", mcp.WithTaskSupport(mcp.TaskSupportOptional)), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return question().ToolResult(), nil
	})
	if r := result(as(t.Context(), "alice"), t, srv, `"name":"both","task":{}`); !strings.Contains(r.raw, "Internal error") {
		t.Errorf("got %s", r.raw)
	}
	has(t, l, "nothing tells what the client sent")
}
