package mcpgo_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/mcpgo"
	"github.com/tripseal/tripseal/wire"
)

// TestMain serves over standard input and output if a test has started this binary for that.
func TestMain(m *testing.M) {
	if os.Getenv("MCPGO_TEST_SERVE") == "" {
		os.Exit(m.Run())
	}
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	engine, err := wire.New(wire.Config{Boundary: boundary})
	if err != nil {
		panic(err)
	}
	srv := server.NewMCPServer("test", "1", server.WithElicitation())
	addHandlers(srv)
	mcpgo.ServeStdio(context.Background(), srv, engine, tripseal.User("owner"))
}

// logBook is a log that tests can read.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// rig is a server and its engine. The server is not behind a door yet.
type rig struct {
	t      testing.TB
	srv    *server.MCPServer
	engine *wire.Engine
	log    logBook
}

func newRig(t testing.TB, options ...server.ServerOption) *rig {
	t.Helper()
	return newRigWith(t, tripseal.Config{}, options...)
}

func newRigWith(t testing.TB, config tripseal.Config, options ...server.ServerOption) *rig {
	t.Helper()
	r := &rig{t: t}
	if config.Keys == nil {
		config.Keys = tripseal.Ephemeral()
	}
	config.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if r.engine, err = wire.New(wire.Config{Boundary: boundary, Logger: config.Logger}); err != nil {
		t.Fatal(err)
	}
	r.srv = server.NewMCPServer("test", "1", options...)
	addHandlers(r.srv)
	return r
}

// A client sends a message as a user, and returns what it gets.
type caller func(user, message string) string

const userHeader = "Test-User"

func userOf(q *http.Request) (string, error) { return q.Header.Get(userHeader), nil }

// door puts the server behind an HTTP door.
func (r *rig) door(opts ...server.StreamableHTTPOption) (url string) {
	r.t.Helper()
	web := httptest.NewServer(mcpgo.Handler(r.srv, r.engine, wire.Options{User: userOf}, opts...))
	r.t.Cleanup(web.Close)
	return web.URL
}

func (r *rig) overHTTP(opts ...server.StreamableHTTPOption) caller { return r.poster(r.door(opts...)) }

// poster returns a caller that posts messages of revision 2026-07-28 to the address.
func (r *rig) poster(url string) caller {
	return func(user, message string) string {
		r.t.Helper()
		_, _, text := r.request(http.MethodPost, url, message, userHeader, user, "Mcp-Protocol-Version", "2026-07-28")
		return text
	}
}

// request sends an HTTP request with these headers.
func (r *rig) request(method, url, body string, headers ...string) (status int, header http.Header, text string) {
	r.t.Helper()
	q, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	var head struct {
		Method string
		Params struct{ Name, URI string }
	}
	q.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
		json.Unmarshal([]byte(body), &head) // some tests send no JSON
		q.Header.Set("Mcp-Method", head.Method)
		if name := head.Params.Name + head.Params.URI; name != "" {
			q.Header.Set("Mcp-Name", name)
		}
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	out, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(out)
}

// stdio serves the server over standard input and output, for one user.
func (r *rig) stdio(user string) *pipe {
	r.t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	p := &pipe{r.t, toServer, bufio.NewScanner(fromServer)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		mcpgo.Serve(context.Background(), r.srv, r.engine, tripseal.User(user), fromClient, toClient)
	}()
	r.t.Cleanup(func() {
		toServer.Close()
		go io.Copy(io.Discard, fromServer)
		<-ended
	})
	return p
}

func (r *rig) overStdio() caller {
	p := r.stdio("alice")
	return func(_, message string) string {
		p.write(message)
		return p.read()
	}
}

// pipe is the client's side of standard input and output.
type pipe struct {
	t     testing.TB
	to    io.Writer
	lines *bufio.Scanner
}

func (p *pipe) write(message string) { fmt.Fprintln(p.to, message) }

// read returns the next message. It leaves out notifications: all of them share one queue of the process.
func (p *pipe) read() string {
	p.t.Helper()
	for p.lines.Scan() {
		if !strings.Contains(p.lines.Text(), `"method":"notifications/`) {
			return p.lines.Text()
		}
	}
	p.t.Fatal("the output has ended")
	return ""
}

// bare returns a caller whose messages come through no door.
func (r *rig) bare() caller {
	return func(_, message string) string {
		text, err := json.Marshal(r.srv.HandleMessage(context.Background(), []byte(message)))
		if err != nil {
			r.t.Fatal(err)
		}
		return string(text)
	}
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`

// call returns a request of revision 2026-07-28. The parameter target is "name" or "uri" with its value, as JSON.
func call(method, target, more string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + target + `,` + meta + more + `}}`
}

func tool(name, more string) string { return call("tools/call", `"name":"`+name+`"`, more) }

// older returns a call of an older revision.
func older(name, more string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + name + `"` + more + `}}`
}

const (
	secret   = "the plaintext of a state"
	panicked = "the plaintext of a panic"
	answers  = `,"inputResponses":{"ok":{"action":"accept","content":{"yes":true}}}`
	forged   = `,"requestState":"` + secret + `"`
)

// token returns a member of params with the state of an answer.
func token(t testing.TB, answer string) string {
	t.Helper()
	state := result(t, answer)["requestState"]
	text, _ := state.(string)
	if !strings.HasPrefix(text, "ms1.") || strings.Contains(answer, secret) {
		t.Fatalf("no token in %s", answer)
	}
	return `,"requestState":"` + text + `"`
}

func result(t testing.TB, answer string) map[string]any {
	t.Helper()
	for line := range strings.Lines(answer) { // the answer may be the last event of a stream
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			answer = data
		}
	}
	var m struct{ Result map[string]any }
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	return m.Result
}

// question returns a result that asks, with a secret state.
func question() *server.InputRequestBuilder {
	return server.NewInputRequestBuilder(secret).Elicit("ok", mcp.ElicitationParams{
		Message: "Sure?", RequestedSchema: map[string]any{"type": "object"},
	})
}

// seen says what a handler got.
func seen(in mcp.MultiRoundTripParams) string {
	text, _ := json.Marshal(in.InputResponses)
	return "got " + in.RequestState + " and " + string(text)
}

// saw is what the handler says if it got its state and the answer.
const saw = `got the plaintext of a state and {\"ok\":{\"action\":\"accept\",\"content\":{\"yes\":true}}}`

func addHandlers(srv *server.MCPServer) {
	srv.AddTool(mcp.NewTool("ask"), ask)
	srv.AddTool(mcp.NewTool("echo"), echo)
	srv.AddTool(mcp.NewTool("panic"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic(panicked)
	})
	srv.AddTool(mcp.NewTool("remember"), remember)
	srv.AddPrompt(mcp.NewPrompt("ask"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if req.Params.RequestState == "" {
			return question().PromptResult(), nil
		}
		return mcp.NewGetPromptResult(seen(req.Params.MultiRoundTripParams), nil), nil
	})
	srv.AddPrompt(mcp.NewPrompt("panic"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		panic(panicked)
	})
	read := func(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if req.Params.URI == "test://panic" {
			panic(panicked)
		}
		text := seen(req.Params.MultiRoundTripParams)
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: req.Params.URI, Text: text}}, nil
	}
	srv.AddResource(mcp.NewResource("test://echo", "echo"), read)
	srv.AddResource(mcp.NewResource("test://panic", "panic"), read)
}

func ask(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Params.RequestState == "" {
		return question().ToolResult(), nil
	}
	return echo(ctx, req)
}

func echo(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(seen(req.Params.MultiRoundTripParams)), nil
}

type draft struct {
	Title string `json:"title"`
}

// remember asks, and reads what it remembers as a Go value.
func remember(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	d, asked, err := mcpgo.State[draft](ctx, req)
	if err != nil {
		return nil, err
	}
	if !asked {
		r := question().ToolResult()
		return r, mcpgo.SetState(ctx, r, draft{"a title"})
	}
	return mcp.NewToolResultText("remembered " + d.Title), nil
}
