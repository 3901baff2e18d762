package mcpgo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/replay"
)

// log is a log that tests can read.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func boundary(t testing.TB, l *log, change func(*tripseal.Config)) *tripseal.Boundary {
	t.Helper()
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Logger: l.logger()}
	if change != nil {
		change(&config)
	}
	b, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type userKey struct{}

func as(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, userKey{}, user)
}

func userFromContext(ctx context.Context) (string, error) {
	user, _ := ctx.Value(userKey{}).(string)
	if user == "mallory" {
		return "", errors.New("secret: not known here")
	}
	return user, nil
}

// protected returns a protected server with the handlers that addHandlers adds.
func protected(t testing.TB, l *log, options ...server.ServerOption) *server.MCPServer {
	t.Helper()
	srv := server.NewMCPServer("test", "1", options...)
	mcpgo.Protect(srv, boundary(t, l, nil), &mcpgo.Options{Principal: userFromContext, Logger: l.logger()})
	addHandlers(srv)
	return srv
}

const secret = "the plaintext of a state"

// question builds a result that asks one question. The key of the question is "ok". The state of
// the result is the constant named secret.
func question() *server.InputRequestBuilder {
	return server.NewInputRequestBuilder(secret).Elicit("ok", mcp.ElicitationParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object"}})
}

// answered describes the state and the answers that a handler got.
func answered(state string, answers mcp.InputResponses) string {
	keys := 0
	for range answers {
		keys++
	}
	a := server.ElicitationResponse(answers, "ok")
	if a == nil {
		return fmt.Sprintf("state=%q answers=%d", state, keys)
	}
	return fmt.Sprintf("state=%q answers=%d action=%s content=%v", state, keys, a.Action, a.Content)
}

func addHandlers(srv *server.MCPServer) {
	ask := func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			return question().ToolResult(), nil
		}
		return mcp.NewToolResultText(answered(req.Params.RequestState, req.Params.InputResponses)), nil
	}
	srv.AddTool(mcp.NewTool("ask"), ask)
	srv.AddTool(mcp.NewTool("ask_too"), ask)
	srv.AddTool(mcp.NewTool("echo"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(answered(req.Params.RequestState, req.Params.InputResponses)), nil
	})
	srv.AddTool(mcp.NewTool("panic"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic(secret) })
	srv.AddPrompt(mcp.NewPrompt("ask"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if req.Params.RequestState == "" {
			return question().PromptResult(), nil
		}
		return mcp.NewGetPromptResult(answered(req.Params.RequestState, req.Params.InputResponses), nil), nil
	})
	srv.AddPrompt(mcp.NewPrompt("panic"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) { panic(secret) })
	srv.AddResource(mcp.NewResource("test://r", "r"), func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, Text: answered(req.Params.RequestState, req.Params.InputResponses)}}, nil
	})
	srv.AddResource(mcp.NewResource("test://panic", "s"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) { panic(secret) })
}

// reply is a response of a server. The field raw has the response as JSON.
type reply struct {
	Result struct {
		ResultType    string
		RequestState  string
		InputRequests map[string]any
		NextCursor    string
		IsError       bool
		Description   string
		Content       []struct{ Text string }
		Contents      []struct{ Text string }
		Tools         []struct{ Name string }
		Prompts       []struct{ Name string }
		Resources     []struct{ Name string }
		Task          struct{ TaskId string }
	}
	Error *struct {
		Code    int
		Message string
		Data    any
	}
	raw string
}

func (r *reply) text() string {
	switch {
	case len(r.Result.Content) > 0:
		return r.Result.Content[0].Text
	case len(r.Result.Contents) > 0:
		return r.Result.Contents[0].Text
	}
	return r.Result.Description
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"sampling":{},"roots":{}}}`

// send sends a request of revision 2026-07-28. This revision has no methods for tasks, so a request
// with such a method is sent as an older client sends it. The last parameter is the JSON of the
// request's params, without the braces.
func send(ctx context.Context, t testing.TB, srv *server.MCPServer, method, params string) (r reply) {
	t.Helper()
	if strings.HasPrefix(method, "tasks/") {
		return message(ctx, t, srv, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`)
	}
	if params != "" {
		params = "," + params
	}
	return message(ctx, t, srv, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+meta+params+`}}`)
}

func message(ctx context.Context, t testing.TB, srv *server.MCPServer, text string) (r reply) {
	t.Helper()
	response, err := json.Marshal(srv.HandleMessage(ctx, json.RawMessage(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(response, &r); err != nil {
		t.Fatalf("%v in %s", err, response)
	}
	r.raw = string(response)
	if strings.Contains(r.raw, secret) && !strings.Contains(r.raw, "state=") {
		t.Errorf("a plaintext state left: %s", r.raw)
	}
	return r
}

// token calls the tool "ask", and returns the token that comes with the question.
func token(ctx context.Context, t testing.TB, srv *server.MCPServer) string {
	t.Helper()
	r := send(ctx, t, srv, "tools/call", `"name":"ask","arguments":{"x":1}`)
	if r.Result.ResultType != "input_required" || !strings.HasPrefix(r.Result.RequestState, "ms1.") {
		t.Fatalf("not asked: %s", r.raw)
	}
	return r.Result.RequestState
}

// retry calls the tool "ask" a second time, with a token and an answer.
func retry(ctx context.Context, t testing.TB, srv *server.MCPServer, token string) reply {
	t.Helper()
	return send(ctx, t, srv, "tools/call", `"name":"ask","arguments":{"x":1},"requestState":`+quote(token)+`,"inputResponses":{"ok":{"action":"accept","content":{"yes":true}}}`)
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

const accepted = `state="` + secret + `" answers=1 action=accept content=map[yes:true]`

// isRejected fails the test unless r is the answer that every rejected state gets.
func isRejected(t testing.TB, r reply) {
	t.Helper()
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Invalid or expired requestState"}}`; r.raw != want {
		t.Errorf("got %s, want %s", r.raw, want)
	}
}

// isInternal fails the test unless r is an internal error that tells nothing about its cause.
func isInternal(t testing.TB, r reply) {
	t.Helper()
	if want := `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}`; r.raw != want {
		t.Errorf("got %s, want %s", r.raw, want)
	}
}

func has(t testing.TB, l *log, text string) {
	t.Helper()
	if !strings.Contains(l.String(), text) {
		t.Errorf("the log lacks %q:\n%s", text, l)
	}
}

func newStore(t testing.TB) tripseal.ReplayStore {
	t.Helper()
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}
