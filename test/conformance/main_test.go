package main

import (
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
	"time"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise there would be tens of thousands of rejections in the log
	os.Exit(m.Run())
}

// client speaks the protocol without an SDK, so that the test controls every byte.
type client struct {
	t        *testing.T
	url, sdk string
}

func newClient(t *testing.T, sdk string) client { return client{t, serve(t, sdk).URL, sdk} }

var everything = json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`)

// post sends a request and returns the status and the JSON-RPC answer.
func (c client) post(method string, params map[string]any) (int, string) {
	c.t.Helper()
	name, _ := params["name"].(string)
	withMeta := map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": everything,
	}}
	for key, value := range params {
		withMeta[key] = value
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": withMeta})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.send(body, method, name)
}

func (c client) send(body []byte, method, name string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		req.Header.Set(key, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	text := string(answer)
	if _, data, ok := strings.Cut(text, "data: "); ok { // an event stream of one event
		text = data
	}
	return res.StatusCode, strings.TrimSpace(text)
}

const tampered = prefix + "tampered_state"

var confirmedOK = map[string]any{"confirm": map[string]any{"action": "accept", "content": map[string]any{"ok": true}}}

// ask makes a first call and returns the token.
func (c client) ask(method, name string) string {
	c.t.Helper()
	status, answer := c.post(method, map[string]any{"name": name})
	var parsed struct {
		Result struct {
			ResultType, RequestState string
		}
	}
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil || status != 200 || parsed.Result.ResultType != "input_required" {
		c.t.Fatalf("%d: %s", status, answer)
	}
	return parsed.Result.RequestState
}

// rejections maps each SDK to the answer that its client gets for a rejected token. With mcp-go, the
// error always has the code -32603: middleware cannot choose another one.
var rejections = map[string]struct {
	status int
	answer string
}{
	"go-sdk": {400, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}}`},
	"mcp-go": {200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Invalid or expired requestState"}}`},
}

func (c client) reject(what, method string, params map[string]any) {
	c.t.Helper()
	want := rejections[c.sdk]
	if status, answer := c.post(method, params); status != want.status || answer != want.answer {
		c.t.Errorf("%s: %d %s", what, status, answer)
	}
}

func TestEveryBadTokenGetsTheSameAnswer(t *testing.T) { onEachSDK(t, everyBadTokenGetsTheSameAnswer) }

func everyBadTokenGetsTheSameAnswer(t *testing.T, sdk string) {
	c := newClient(t, sdk)
	token := c.ask("tools/call", tampered)
	with := func(state any) map[string]any {
		return map[string]any{"name": tampered, "requestState": state, "inputResponses": confirmedOK}
	}
	if status, answer := c.post("tools/call", with(token)); status != 200 || !strings.Contains(answer, "state-ok") {
		t.Fatalf("the token itself: %d %s", status, answer)
	}

	var bad []string
	others := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if sdk == "mcp-go" { // two characters are enough here: the run with go-sdk tries every character on the same boundary code
		others = "Ab"
	}
	for i := range len(token) {
		for _, other := range others {
			if byte(other) != token[i] {
				bad = append(bad, token[:i]+string(other)+token[i+1:])
			}
		}
		if i > 0 {
			bad = append(bad, token[:i])
		}
		for _, space := range []string{" ", "\n", "\r\n", "\t", "\u00a0", "\x00", "="} {
			bad = append(bad, token[:i]+space+token[i:])
		}
	}
	bad = append(bad, token+"\n", token+" ", token+"=", token+"-TAMPERED", token+token, "x", "step 1", "asked", strings.Repeat("A", 70_000))
	var group sync.WaitGroup
	work := make(chan string)
	for range 4 {
		group.Go(func() {
			for state := range work {
				c.reject(fmt.Sprintf("%.60q", state), "tools/call", with(state))
			}
		})
	}
	for _, state := range bad {
		work <- state
	}
	close(work)
	group.Wait()

	c.reject("another tool's token", "tools/call", with(c.ask("tools/call", prefix+"request_state")))
	promptToken := c.ask("prompts/get", prefix+"prompt")
	c.reject("a prompt's token on a tool", "tools/call", with(promptToken))
	c.reject("a tool's token on a prompt", "prompts/get", map[string]any{"name": prefix + "prompt", "requestState": token, "inputResponses": confirmedOK})
	c.reject("a prompt's token with other arguments", "prompts/get",
		map[string]any{"name": prefix + "prompt", "requestState": promptToken, "arguments": map[string]any{"a": "b"}})
	other := with(token)
	other["arguments"] = map[string]any{"x": 1}
	c.reject("other arguments", "tools/call", other)
}

func TestWithoutAStateTheQuestionComesAgain(t *testing.T) {
	onEachSDK(t, withoutAStateTheQuestionComesAgain)
}

func withoutAStateTheQuestionComesAgain(t *testing.T, sdk string) {
	c := newClient(t, sdk)
	c.ask("tools/call", tampered)
	for name, state := range map[string]any{"stripped": nil, "null": json.RawMessage("null"), "empty": ""} {
		params := map[string]any{"name": tampered, "inputResponses": confirmedOK}
		if name != "stripped" {
			params["requestState"] = state
		}
		if status, answer := c.post("tools/call", params); status != 200 || !strings.Contains(answer, `"resultType":"input_required"`) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}

// TestWhatTheSDKRefusesItself checks that the SDK refuses some requests before they reach the
// middleware, as the threat model says.
func TestWhatTheSDKRefusesItself(t *testing.T) { onEachSDK(t, whatTheSDKRefusesItself) }

func whatTheSDKRefusesItself(t *testing.T, sdk string) {
	c := newClient(t, sdk)
	want := map[string]string{
		"go-sdk": `{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"failed to extract name from parameters for method \"tools/call\""}}`,
		"mcp-go": `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"unparsable tools/call request: `,
	}[sdk]
	for name, params := range map[string]map[string]any{
		"a number for a state": {"name": tampered, "requestState": 12345},
		"an object":            {"name": tampered, "requestState": map[string]any{"a": 1}},
		"a number for answers": {"name": tampered, "inputResponses": 12345},
		"a number an answer":   {"name": tampered, "inputResponses": map[string]any{"confirm": 12345}},
	} {
		status, answer := c.post("tools/call", params)
		if name == "a number an answer" && sdk == "mcp-go" { // mcp-go does not decode this answer, and the middleware drops it
			if status != 200 || !strings.Contains(answer, `"resultType":"input_required"`) {
				t.Errorf("%s: %d %s", name, status, answer)
			}
			continue
		}
		if status != 400 || !strings.HasPrefix(answer, want) {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}

func TestUndeclaredCapabilitiesAreRefused(t *testing.T) {
	onEachSDK(t, undeclaredCapabilitiesAreRefused)
}

func undeclaredCapabilitiesAreRefused(t *testing.T, sdk string) {
	c := newClient(t, sdk)
	for tool, c2 := range map[string]struct{ capabilities, want, text string }{
		"elicitation": {`{"sampling":{}}`, `{"requiredCapabilities":{"elicitation":{"form":{}}}}`, "elicitation.form"},
		"sampling":    {`{"elicitation":{}}`, `{"requiredCapabilities":{"sampling":{}}}`, "sampling"},
		"list_roots":  {`{}`, `{"requiredCapabilities":{"roots":{}}}`, "roots"},
	} {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, prefix+tool, c2.capabilities)
		code, want := 400, `{"jsonrpc":"2.0","id":7,"error":{"code":-32021,"message":"Missing required client capabilities","data":`+c2.want+`}}`
		if sdk == "mcp-go" {
			code, want = 200, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Missing required client capabilities: `+c2.text+`"}}`
		}
		if status, answer := c.send([]byte(body), "tools/call", prefix+tool); status != code || answer != want {
			t.Errorf("%s: %d %s", tool, status, answer)
		}
	}
}

func TestWithoutProtectionAStateIsPlainText(t *testing.T) {
	onEachSDK(t, withoutProtectionAStateIsPlainText)
}

func withoutProtectionAStateIsPlainText(t *testing.T, sdk string) {
	handler, err := newHandler(settings{sdk: sdk, unprotected: true})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	defer web.Close()
	if state := (client{t, web.URL + "/mcp", sdk}).ask("tools/call", tampered); state != "asked" {
		t.Errorf("the state is %q", state)
	}
}

func TestAnUnknownSDKIsRefused(t *testing.T) {
	if _, err := newHandler(settings{sdk: "other"}); err == nil {
		t.Error("an unknown SDK is served")
	}
}
