package mcpgo_test

import (
	"context"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/mcpgo"
)

// yes accepts every question, and counts the questions.
type yes struct{ asked int }

func (y *yes) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	y.asked++
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"yes": true},
	}}, nil
}

// fromHeader puts the user of an HTTP request into the context. A real server verifies a token
// here.
func fromHeader(ctx context.Context, r *http.Request) context.Context {
	return as(ctx, r.Header.Get("X-User"))
}

func listening(t *testing.T, handler http.Handler) string {
	t.Helper()
	ts := httptest.NewServer(handler)
	t.Cleanup(ts.Close)
	return ts.URL
}

// dial connects mcp-go's client to a server over a transport, as a user.
func dial(t *testing.T, srv *server.MCPServer, over, user string, elicitor *yes, options ...client.ClientOption) *client.Client {
	t.Helper()
	options = append(options, client.WithElicitationHandler(elicitor))
	headers := map[string]string{"X-User": user}
	var tr transport.Interface
	var err error
	ctx := t.Context()
	switch over {
	case "streamable HTTP":
		tr, err = transport.NewStreamableHTTP(listening(t, server.NewStreamableHTTPServer(srv, server.WithHTTPContextFunc(fromHeader))), transport.WithHTTPHeaders(headers))
	case "streamable HTTP with sessions":
		//lint:ignore SA1019 older clients need it
		listen := transport.WithContinuousListening()
		tr, err = transport.NewStreamableHTTP(listening(t, server.NewStreamableHTTPServer(srv, server.WithHTTPContextFunc(fromHeader))),
			transport.WithHTTPHeaders(headers), listen, transport.WithHTTPLogger(slog.New(slog.DiscardHandler)))
	case "SSE":
		sse := server.NewSSEServer(srv, server.WithSSEContextFunc(fromHeader))
		url := listening(t, sse)
		server.WithBaseURL(url)(sse)
		tr, err = transport.NewSSE(url+"/sse", transport.WithHeaders(headers))
	case "stdio":
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		t.Cleanup(mcpgo.ForgetSharedStdio)
		stdio := server.NewStdioServer(srv)
		stdio.SetErrorLogger(stdlog.New(io.Discard, "", 0))
		stdio.SetContextFunc(func(ctx context.Context) context.Context { return as(ctx, user) })
		go stdio.Listen(ctx, in, out)
		t.Cleanup(func() { toServer.Close(); out.Close() })
		tr = transport.NewIO(fromServer, toServer, io.NopCloser(http.NoBody))
	case "in process":
		return started(as(ctx, user), t, client.NewClient(transport.NewInProcessTransportWithOptions(srv, transport.WithElicitationHandler(elicitor)), options...))
	}
	if err != nil {
		t.Fatal(err)
	}
	return started(ctx, t, client.NewClient(tr, options...))
}

func started(ctx context.Context, t *testing.T, c *client.Client) *client.Client {
	t.Helper()
	t.Cleanup(func() { c.Close() })
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: mcp.LATEST_PROTOCOL_VERSION, ClientInfo: mcp.Implementation{Name: "test", Version: "1"},
	}}); err != nil {
		t.Fatal(err)
	}
	return c
}

func callTool(ctx context.Context, c *client.Client, name string, args any) (string, error) {
	r, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: args}})
	if err != nil || len(r.Content) == 0 {
		return "", err
	}
	text, _ := r.Content[0].(mcp.TextContent)
	return text.Text, nil
}

func TestFlowsWorkOverEveryTransport(t *testing.T) {
	for _, over := range []string{"streamable HTTP", "SSE", "stdio", "in process"} {
		t.Run(over, func(t *testing.T) {
			l, user := new(log), new(yes)
			srv := protected(t, l)
			c := dial(t, srv, over, "alice", user)
			if got, err := callTool(as(t.Context(), "alice"), c, "ask", map[string]any{"x": 1}); err != nil || got != accepted || user.asked != 1 {
				t.Errorf("got %q, %v, asked %d times\n%s", got, err, user.asked, l)
			}
		})
	}
}

// mcp-go asks an older client during the call, and then calls the handler again. Over SSE it asks
// no questions, so the test leaves SSE out.
func TestOlderClientsAreAskedInTheMiddleOfTheCall(t *testing.T) {
	for _, over := range []string{"streamable HTTP with sessions", "stdio", "in process"} {
		t.Run(over, func(t *testing.T) {
			l, user := new(log), new(yes)
			srv := protected(t, l, server.WithElicitation())
			rounds := 0
			srv.AddTool(mcp.NewTool("thrice"), func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if rounds++; rounds < 4 {
					delete(req.GetArguments(), "dry_run")
					req.GetArguments()["more"] = true
					copy(req.Params.RawArguments, "{}                       ")
					return question().ToolResult(), nil
				}
				if args := jsonText(req.GetArguments()); args != `{"dry_run":true}` || string(req.Params.RawArguments) != args {
					return mcp.NewToolResultText("ran for real with " + args), nil
				}
				return mcp.NewToolResultText(answered(req.Params.RequestState, req.Params.InputResponses)), nil
			})
			srv.AddPrompt(mcp.NewPrompt("change"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				if req.Params.RequestState == "" {
					delete(req.Params.Arguments, "dry_run")
					req.Params.Arguments["more"] = "true"
					return question().PromptResult(), nil
				}
				return mcp.NewGetPromptResult(jsonText(req.Params.Arguments), []mcp.PromptMessage{}), nil
			})
			c := dial(t, srv, over, "alice", user, client.WithProtocolVersion("2025-11-25"))
			if over != "stdio" { // over stdio, mcp-go before 1.2 reads no answers while a prompt waits for them
				p, err := c.GetPrompt(as(t.Context(), "alice"), mcp.GetPromptRequest{Params: mcp.GetPromptParams{Name: "change", Arguments: map[string]string{"dry_run": "true"}}})
				if err != nil || p.Description != `{"dry_run":"true"}` {
					t.Errorf("got %v, %v\n%s", p, err, l)
				}
			}
			user.asked = 0
			if got, err := callTool(as(t.Context(), "alice"), c, "ask", map[string]any{"x": 1}); err != nil || got != accepted || user.asked != 1 {
				t.Errorf("got %q, %v, asked %d times\n%s", got, err, user.asked, l)
			}
			if got, err := callTool(as(t.Context(), "alice"), c, "thrice", map[string]any{"dry_run": true}); err != nil || got != accepted {
				t.Errorf("got %q, %v\n%s", got, err, l)
			}
		})
	}
}

// post sends a request of revision 2026-07-28 over streamable HTTP.
func post(t *testing.T, url, user, method, name, params string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + meta + `,"name":"` + name + `",` + params + `}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-User": user, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestATokenOfOneUserIsRejectedForAnotherOverHTTP(t *testing.T) {
	l := new(log)
	url := listening(t, server.NewStreamableHTTPServer(protected(t, l), server.WithHTTPContextFunc(fromHeader)))
	for _, method := range []string{"tools/call", "prompts/get"} {
		asked := post(t, url, "alice", method, "ask", `"arguments":{"x":"1"}`)
		stolen := regexp.MustCompile(`ms1\.[A-Za-z0-9_-]+`).FindString(asked)
		params := `"arguments":{"x":"1"},"requestState":` + quote(stolen) + `,"inputResponses":{"ok":{"action":"accept","content":{"yes":true}}}`
		if got := post(t, url, "bob", method, "ask", params); !strings.Contains(got, `"message":"Invalid or expired requestState"`) {
			t.Errorf("bob: %s", got)
		}
		if got := post(t, url, "alice", method, "ask", params); !strings.Contains(got, "action=accept") {
			t.Errorf("alice: %s", got)
		}
	}
}

func TestTypedToolsAreProtected(t *testing.T) {
	l, user := new(log), new(yes)
	srv := protected(t, l)
	type args struct {
		X int `json:"x"`
	}
	srv.AddTool(mcp.NewTool("typed"), mcp.NewTypedToolHandler(func(_ context.Context, req mcp.CallToolRequest, in args) (*mcp.CallToolResult, error) {
		if req.Params.RequestState == "" {
			return question().ToolResult(), nil
		}
		return mcp.NewToolResultText(answered(req.Params.RequestState, req.Params.InputResponses)), nil
	}))
	c := dial(t, srv, "streamable HTTP", "alice", user)
	if got, err := callTool(t.Context(), c, "typed", map[string]any{"x": 1}); err != nil || got != accepted {
		t.Errorf("got %q, %v", got, err)
	}
	isRejected(t, send(as(t.Context(), "alice"), t, srv, "tools/call", `"name":"typed","arguments":{"x":1},"requestState":"forged"`))
}

// ownTools is a session with tools of its own.
type ownTools struct {
	server.ClientSession
	tools       map[string]server.ServerTool
	isForgetful bool // true if the session loses its tools after somebody has looked at them
}

func (o *ownTools) GetSessionTools() (tools map[string]server.ServerTool) {
	if tools = o.tools; o.isForgetful {
		o.tools = nil
	}
	return tools
}

func (o *ownTools) SetSessionTools(tools map[string]server.ServerTool) { o.tools = tools }
func (o *ownTools) SessionID() string                                  { return "own" }
func (o *ownTools) Initialized() bool                                  { return true }

func TestToolsOfASessionAreProtected(t *testing.T) {
	l := new(log)
	srv := protected(t, l)
	session := &ownTools{tools: map[string]server.ServerTool{"own": {Tool: mcp.NewTool("own"), Handler: srv.GetTool("ask").Handler}}}
	alice := srv.WithContext(as(t.Context(), "alice"), session)
	asked := send(alice, t, srv, "tools/call", `"name":"own"`)
	if !strings.HasPrefix(asked.Result.RequestState, "ms1.") {
		t.Errorf("got %s", asked.raw)
	}
	isRejected(t, send(alice, t, srv, "tools/call", `"name":"own","requestState":"forged"`))
}
