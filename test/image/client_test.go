package image_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// client is a client of the proxy. It calls the tool named deploy, and uses no SDK.
type client struct {
	http.Client
	address string
	header  http.Header // names the user
}

// Each element of answers is the JSON of inputResponses for one round.
var answers = []string{
	`{}`,
	`{"confirm":{"action":"accept","content":{"ok":true}}}`,
	`{"region":{"action":"accept","content":{"name":"eu"}}}`,
}

// deploy sends one round of a call, and returns the status, the message and the token in the
// message.
func (c *client) deploy(state string, round int) (status int, message, next string, err error) {
	params := map[string]any{
		"name": "deploy", "arguments": map[string]any{"service": "web", "version": "1"}, "inputResponses": json.RawMessage(answers[round]),
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
		},
	}
	if state != "" {
		params["requestState"] = state
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		return 0, "", "", err
	}
	r, err := http.NewRequest(http.MethodPost, c.address, strings.NewReader(string(body)))
	if err != nil {
		return 0, "", "", err
	}
	r.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"deploy"},
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, "", "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return 0, "", "", err
	}
	message = string(text)
	if at := strings.LastIndex(message, "data: "); at >= 0 { // the message is in an event
		message = strings.TrimSpace(message[at+len("data: "):])
	}
	var answer struct{ Result struct{ RequestState string } }
	json.Unmarshal([]byte(message), &answer)
	return res.StatusCode, message, answer.Result.RequestState, nil
}

// flow runs a call in which the tool asks twice before it acts. It returns the first token.
func (c *client) flow() (first string, err error) {
	state, message := "", ""
	for round := range answers {
		var status int
		if status, message, state, err = c.deploy(state, round); err != nil {
			return "", fmt.Errorf("round %d: %w", round, err)
		}
		if status != http.StatusOK || (state == "") != (round == 2) || strings.Contains(state, "step=") {
			return "", fmt.Errorf("round %d: %d %s", round, status, message)
		}
		if round == 0 {
			first = state
		}
	}
	if !strings.Contains(message, "deployed web 1 in eu, 10% of traffic") {
		return "", fmt.Errorf("the tool did not act: %s", message)
	}
	return first, nil
}
