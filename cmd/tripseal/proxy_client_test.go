package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rawClient calls the tool deploy without an SDK, because an SDK might retry or hide something.
type rawClient struct {
	http.Client
	address string
	header  http.Header // further headers of each request
}

// answers[i] has the answers that a client sends in round i of a call.
var answers = []string{
	`{}`,
	`{"confirm":{"action":"accept","content":{"ok":true}}}`,
	`{"region":{"action":"accept","content":{"name":"eu"}}}`,
}

// reply is what a client gets for one round.
type reply struct {
	status int
	header http.Header
	body   string
	state  string // the token
	done   bool   // whether the tool has acted
}

// deploy sends one round of a call. If the answer is an SSE stream, its last event counts.
func (c *rawClient) deploy(state string, round int) (reply, error) {
	params := `"inputResponses":` + answers[round]
	if state != "" {
		text, err := json.Marshal(state)
		if err != nil {
			return reply{}, err
		}
		params += `,"requestState":` + string(text)
	}
	return c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"deploy","arguments":{"service":"web","version":"1"},` + params + `,"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`)
}

func (c *rawClient) send(message string) (reply, error) {
	r, err := http.NewRequest(http.MethodPost, c.address, strings.NewReader(message))
	if err != nil {
		return reply{}, err
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "tools/call")
	r.Header.Set("Mcp-Name", "deploy")
	res, err := c.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return reply{}, err
	}
	text := string(body)
	if at := strings.LastIndex(text, "data: "); at >= 0 {
		text = strings.TrimSpace(text[at+len("data: "):])
	}
	var message1 struct {
		Result struct{ RequestState string }
	}
	json.Unmarshal([]byte(text), &message1)
	return reply{res.StatusCode, res.Header, text, message1.Result.RequestState, strings.Contains(text, "deployed web 1 in eu, 10% of traffic")}, nil
}

// flow makes a call with all its rounds, and checks that its states are sealed and the tool acts.
func (c *rawClient) flow() error {
	var last reply
	for round := range answers {
		got, err := c.deploy(last.state, round)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if got.status != http.StatusOK || got.state == "" && !got.done {
			return fmt.Errorf("round %d: %d %s", round, got.status, got.body)
		}
		if strings.Contains(got.state, "step=") {
			return fmt.Errorf("round %d: the state is not sealed", round)
		}
		last = got
	}
	if !last.done {
		return fmt.Errorf("the tool did not act: %s", last.body)
	}
	return nil
}

// mustDeploy calls deploy, and ends the test if that fails.
func (c *rawClient) mustDeploy(t *testing.T, state string, round int) reply {
	t.Helper()
	got, err := c.deploy(state, round)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// eventually waits until a condition holds, for a minute at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("this did not happen within a minute: %s", what)
		}
	}
}
