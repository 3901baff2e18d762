package gosdk_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

// book collects what is logged.
type book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *book) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// boundary returns a boundary that logs to b. If the function change is not nil, it is called to
// change the Config first.
func boundary(t testing.TB, b *book, change func(*tripseal.Config)) *tripseal.Boundary {
	t.Helper()
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: b.logger()}
	if change != nil {
		change(&config)
	}
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

func newServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
}

func form(message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"value": map[string]any{"type": "string"}},
	}}
}

// addSteps registers a tool that asks n questions, one in each round. The returned
// value records the state and the answers that each run got.
func addSteps(server *mcp.Server, name string, n int) *steps {
	s := &steps{n: n}
	server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, s.handle)
	return s
}

type steps struct {
	mu   sync.Mutex
	n    int
	seen []string
}

func (s *steps) handle(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answers []string
	for key, answer := range req.Params.InputResponses {
		value := "?"
		if e, ok := answer.(*mcp.ElicitResult); ok {
			value = fmt.Sprint(e.Action, " ", e.Content["value"])
		}
		answers = append(answers, key+"="+value)
	}
	s.seen = append(s.seen, fmt.Sprintf("%q %s", req.Params.RequestState, strings.Join(answers, ",")))
	done := 0
	if req.Params.RequestState != "" {
		fmt.Sscanf(req.Params.RequestState, "step=%d", &done)
		if len(req.Params.InputResponses) == 0 {
			done-- // not answered: ask again
		}
	}
	if done >= s.n {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("done after ", done)}}}, nil
	}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{fmt.Sprint("q", done+1): form(fmt.Sprint("question ", done+1))},
		RequestState:  fmt.Sprintf("step=%d", done+1),
	}, nil
}

func (s *steps) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

// answering returns the options of a client that accepts every form.
func answering() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"value": "to " + req.Params.Message}}, nil
		},
	}
}

// raw returns the options of answering(), with one change: if a result has questions, the client
// does not answer them by itself. The test gets that result.
func raw() *mcp.ClientOptions {
	options := answering()
	options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	return options
}

// connect connects a new client to the server in memory. The parameter version is the protocol
// revision of the client.
func connect(t testing.TB, server *mcp.Server, options *mcp.ClientOptions, version string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	clientSide, serverSide := mcp.NewInMemoryTransports()
	session, err := server.Connect(ctx, serverSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, options)
	connected, err := revision.Connect(ctx, client, clientSide, version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connected.Close(); session.Wait() })
	return connected
}

func callTool(t testing.TB, session *mcp.ClientSession, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return session.CallTool(ctx, params)
}

func text(result *mcp.CallToolResult) string {
	if result == nil || len(result.Content) == 0 {
		return ""
	}
	content, _ := result.Content[0].(*mcp.TextContent)
	if content == nil {
		return ""
	}
	return content.Text
}

const (
	revision2026 = revision.V2026
	revision2025 = revision.V2025
)

// addTool registers a tool with the name "tool".
func addTool(server *mcp.Server, handler mcp.ToolHandler) {
	server.AddTool(&mcp.Tool{Name: "tool", InputSchema: object}, handler)
}

func asks(message, state string) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q1": form(message)}, RequestState: state}
}

func says(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// panicOf returns what a function panics with, as text, or "" if it does not panic.
func panicOf(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}
