package gosdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// A client initializes as an older client, but also sends server/discover as a newer client,
// before, between or after its calls. Every call is answered, and no state leaves the server
// unsealed.
func TestAClientThatChangesItsRevisionGetsNoPlaintext(t *testing.T) {
	b, server := &book{}, newServer()
	gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: b.logger()})
	addSteps(server, "steps", 3)
	const state = "a state in plaintext"
	server.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{RequestState: state, InputRequests: mcp.InputRequestMap{"q": form("x")}}, nil
	})
	server.AddResource(&mcp.Resource{URI: "f://x", Name: "x"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{RequestState: state, Contents: []*mcp.ResourceContents{}, InputRequests: mcp.InputRequestMap{"q": form("x")}}, nil
	})
	calls := []string{
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"steps","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"prompts/get","params":{"name":"p"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"f://x"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"steps","arguments":{},` + newerMeta + `}}`,
	}
	const discover = `{"jsonrpc":"2.0","id":6,"method":"server/discover","params":{` + newerMeta + `}}`
	sealed := 0
	for i := range 50 {
		messages := []string{strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)}
		at := i % (len(calls) + 1)
		messages = append(append(append(messages, calls[:at]...), discover), calls[at:]...)
		for _, line := range converse(t, server, messages) {
			if strings.Contains(line, state) || strings.Contains(line, "step=") {
				t.Fatalf("with server/discover at %d: %s", at, line)
			}
			if strings.Contains(line, `"requestState":"ms1.`) {
				sealed++
			}
		}
	}
	if sealed == 0 || strings.Contains(b.String(), "panicked") {
		t.Errorf("%d results were sealed; the log: %s", sealed, b)
	}
}

// converse sends the messages one after the other, and answers every question of the server. As
// soon as each message has its answer, converse returns the lines that the server has sent.
func converse(t *testing.T, server *mcp.Server, messages []string) (lines []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	session, err := server.Connect(ctx, &mcp.IOTransport{Reader: fromClient, Writer: toClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { fromServer.Close(); toServer.Close() })
	var mu sync.Mutex
	var writing sync.WaitGroup
	write := func(message string) {
		mu.Lock()
		defer mu.Unlock()
		io.WriteString(toServer, message+"\n")
	}
	writing.Go(func() {
		for _, message := range messages {
			write(message)
		}
	})
	answered := 0
	for incoming := bufio.NewScanner(fromServer); answered < len(messages) && incoming.Scan(); {
		lines = append(lines, incoming.Text())
		var message struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(incoming.Bytes(), &message); err != nil {
			t.Fatal(err)
		}
		if message.Method == "" {
			answered++
			continue
		}
		writing.Go(func() {
			write(`{"jsonrpc":"2.0","id":` + string(message.ID) + `,"result":{"action":"accept","content":{"value":"v"}}}`)
		})
	}
	if answered < len(messages) {
		t.Fatalf("%d of %d messages were answered: %q", answered, len(messages), lines)
	}
	fromServer.Close()
	toServer.Close()
	session.Close()
	writing.Wait()
	return lines
}
