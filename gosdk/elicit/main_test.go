package elicit_test

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
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/internal/revision"
)

const (
	revision2026 = revision.V2026
	revision2025 = revision.V2025

	internal     = `{"code":-32603,"message":"Internal error"}`
	invalidState = `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}`
)

// book collects a log.
type book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// service is a protected server under test.
type service struct {
	*gosdk.Protected
	book *book
	keys *tripseal.Ring
}

func newService(t testing.TB, change func(*tripseal.Config)) service {
	t.Helper()
	b := &book{}
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: b.logger()}
	if change != nil {
		change(&config)
	}
	boundary, err := tripseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	return service{gosdk.Protect(server, boundary, &gosdk.Options{Logger: b.logger()}), b, config.Keys.(*tripseal.Ring)}
}

// user answers questions and remembers them.
type user struct {
	mu     sync.Mutex
	asked  []string
	answer func(message string, params *mcp.ElicitParams) *mcp.ElicitResult
}

func accept(content map[string]any) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: content}
}

func (u *user) messages() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]string(nil), u.asked...)
}

func (u *user) options(raw bool) *mcp.ClientOptions {
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			RootsV2:     &mcp.RootCapabilities{},
			Sampling:    &mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}},
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.asked = append(u.asked, req.Params.Message)
			return u.answer(req.Params.Message, req.Params), nil
		},
		CreateMessageWithToolsHandler: func(_ context.Context, req *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.asked = append(u.asked, "sample")
			return &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("sample ", len(u.asked))}}}, nil
		},
	}
	if raw {
		options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	}
	return options
}

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
	client.AddRoots(&mcp.Root{URI: "file:///work", Name: "work"})
	connected, err := revision.Connect(ctx, client, clientSide, version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connected.Close(); session.Wait() })
	return connected
}

// call calls a tool. The call may take a minute at most.
func call(t testing.TB, session *mcp.ClientSession, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return session.CallTool(ctx, params)
}

func text(result *mcp.CallToolResult, err error) string {
	if err != nil {
		var rpc *jsonrpc.Error
		if errors.As(err, &rpc) {
			wire, _ := json.Marshal(rpc)
			return string(wire)
		}
		return "no JSON-RPC error: " + err.Error()
	}
	var parts []string
	if result.IsError {
		parts = append(parts, "ERROR")
	}
	if result.InputRequests != nil {
		parts = append(parts, fmt.Sprint("ASKS ", keys(result)))
	}
	for _, content := range result.Content {
		if c, ok := content.(*mcp.TextContent); ok {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, " ")
}

func keys(result *mcp.CallToolResult) (names []string) {
	for key := range result.InputRequests {
		names = append(names, key)
	}
	if len(names) == 2 && names[0] > names[1] {
		names[0], names[1] = names[1], names[0]
	}
	return names
}

func both(t *testing.T, f func(t *testing.T, revision string)) {
	for _, revision := range []string{revision2026, revision2025} {
		t.Run(revision, func(t *testing.T) { f(t, revision) })
	}
}
