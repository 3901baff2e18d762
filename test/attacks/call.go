package attacks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// Call is one round of a call to a tool. The package sends it without an SDK, because an
// SDK's client would not send what an attacker sends. The clients of some SDKs also end their
// session if the server refuses a request.
type Call struct {
	Replica   int
	Bearer    string
	Tool      string
	Arguments map[string]any
	State     string         // "" means that no state is sent
	Answers   map[string]any // nil means that no answers are sent
}

// Reply is the server's reply to one round.
type Reply struct {
	Status  int
	Text    string // the text of a result
	State   string
	Asked   map[string]json.RawMessage // the questions, by key
	Code    int                        // the code of an error; 0 if there is none
	Message string
}

// Asks reports whether the reply asks the user a question.
func (r Reply) Asks() bool { return len(r.Asked) > 0 }

// Rejected reports whether the server answered with the error for a rejected state.
func (r Reply) Rejected() bool {
	return r.Code == -32602 && r.Message == "Invalid or expired requestState"
}

func (r Reply) String() string {
	return fmt.Sprintf("%d, %q, asks %q, error %d %q", r.Status, r.Text, r.Asked, r.Code, r.Message)
}

const (
	revision = "2026-07-28"
	maxReply = 1 << 20
	patience = 30 * time.Second // if a server takes longer to reply, it counts as hanging
)

// Send sends one round to the replica c.Replica, and returns the reply.
func (f *Fleet) Send(t testing.TB, c Call) Reply {
	t.Helper()
	params := map[string]any{
		"name": c.Tool, "arguments": c.Arguments,
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    revision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "attacks", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}},
		},
	}
	if c.State != "" {
		params["requestState"] = c.State
	}
	if c.Answers != nil {
		params["inputResponses"] = c.Answers
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.URLs[c.Replica], bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + c.Bearer,
		"Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": c.Tool,
	} {
		request.Header.Set(name, value)
	}
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response.StatusCode, text)
}

// read decodes a reply, which is JSON or an event stream with one event.
func read(t testing.TB, status int, text []byte) Reply {
	t.Helper()
	if _, event, ok := bytes.Cut(text, []byte("data: ")); ok {
		text, _, _ = bytes.Cut(event, []byte("\n"))
	}
	var message struct {
		Result struct {
			Content       []struct{ Text string }
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(text, &message); err != nil {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	reply := Reply{
		Status: status, State: message.Result.RequestState, Asked: message.Result.InputRequests,
		Code: message.Error.Code, Message: message.Error.Message,
	}
	for _, content := range message.Result.Content {
		reply.Text += content.Text
	}
	return reply
}
