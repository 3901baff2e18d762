package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise there would be thousands of rejections in the log
	os.Exit(m.Run())
}

func onEachSDK(t *testing.T, test func(t *testing.T, sdk string, c client)) {
	for _, sdk := range []string{officialSDK, mcpgoSDK, officialDoor} {
		t.Run(sdk, func(t *testing.T) {
			config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "conformance"}
			handler, err := newHandler(settings{sdk: sdk, config: config})
			if err != nil {
				t.Fatal(err)
			}
			web := httptest.NewServer(handler)
			t.Cleanup(web.Close)
			test(t, sdk, client{url: web.URL + "/mcp", listens: sdk == mcpgoSDK})
		})
	}
}

// honest maps the message of each question in the suite to an honest answer.
var honest = map[string]string{
	"What is your name?":                   `{"action":"accept","content":{"name":"Alice"}}`,
	"Please confirm":                       `{"action":"accept","content":{"ok":true}}`,
	"Step 1: What is your name?":           `{"action":"accept","content":{"name":"Alice"}}`,
	"Step 2: What is your favorite color?": `{"action":"accept","content":{"color":"blue"}}`,
	"What context should the prompt use?":  `{"action":"accept","content":{"context":"tests"}}`,
	"sampling/createMessage":               `{"role":"assistant","model":"m","content":{"type":"text","text":"Paris"}}`,
	"roots/list":                           `{"roots":[{"uri":"file:///work","name":"work"}]}`,
}

func answer(q wireQuestion) any { return json.RawMessage(honest[q.message()]) }

// scenarios has the tools and the prompt that the suite calls, with their final texts and forms.
var scenarios = []struct {
	name, done string
	forms      []string
}{
	{"elicitation", "Hello, Alice!", []string{"What is your name?"}},
	{"sampling", "Paris", nil},
	{"list_roots", "1 roots: file:///work", nil},
	{"request_state", "state-ok", []string{"Please confirm"}},
	{"tampered_state", "state-ok", []string{"Please confirm"}},
	{"multiple_inputs", "Paris Alice, with 1 roots", []string{"What is your name?"}},
	{"multi_round", "Alice likes blue", []string{"Step 1: What is your name?", "Step 2: What is your favorite color?"}},
	{"capabilities", "thank you", []string{"What is your name?"}},
	{"prompt", "With this in mind: tests", []string{"What context should the prompt use?"}},
}

func scenarioCall(name string, answer func(wireQuestion) any) wireCall {
	method := "tools/call"
	if name == "prompt" {
		method = "prompts/get"
	}
	return wireCall{method, map[string]any{"name": prefix + name}, answer}
}

// TestAnswersReachTheHandlerOnBothRevisions gives honest answers to all questions, and then
// declines or cancels each form.
func TestAnswersReachTheHandlerOnBothRevisions(t *testing.T) {
	onEachSDK(t, func(t *testing.T, sdk string, c client) {
		try := func(name, want string, answer func(wireQuestion) any) {
			t.Helper()
			got, _, err := c.callNewer(t.Context(), scenarioCall(name, answer))
			if err != nil || got.String() != want {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			if name == "multi_round" && sdk == officialDoor {
				return // the official SDK asks older clients one round; gosdk.Protect asks them in several
			}
			got, _, _, err = c.callOlder(t.Context(), scenarioCall(name, answer))
			if err != nil || got.String() != want {
				t.Errorf("%s, on the older revision: %v, %v", name, got, err)
			}
		}
		for _, s := range scenarios {
			try(s.name, s.done, answer)
			for _, question := range s.forms {
				for _, action := range []string{"decline", "cancel"} {
					try(s.name, nothingDone, func(q wireQuestion) any {
						if q.message() == question {
							return map[string]any{"action": action}
						}
						return answer(q)
					})
				}
			}
		}
	})
}

// post sends a request of the newer revision, and returns the status and the JSON-RPC answer.
func (c *client) request(t *testing.T, method string, params map[string]any) (int, string) {
	t.Helper()
	members := map[string]any{"_meta": meta(everything)}
	maps.Copy(members, params)
	m := message{revision: newer, id: "7", method: method, params: members}
	got, err := c.post(t.Context(), m.header(), m.body(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.status, string(got.last)
}

const tampered = prefix + "tampered_state"

var confirmedOK = map[string]any{"confirm": map[string]any{"action": "accept", "content": map[string]any{"ok": true}}}

// ask makes a first call and returns the token.
func (c *client) ask(t *testing.T, method, name string) string {
	t.Helper()
	status, answer := c.request(t, method, map[string]any{"name": name})
	var parsed outcome
	if err := json.Unmarshal([]byte(answer), &parsed); err != nil || parsed.Result.RequestState == nil {
		t.Fatalf("%d: %s", status, answer)
	}
	return *parsed.Result.RequestState
}

// rejection is the error of a rejected token. The official SDK sends it with the status 400, and a door with 200.
const rejection = `{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}`

func refusedStatus(sdk string) int {
	if sdk == officialSDK {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// TestEveryBadTokenGetsTheSameAnswer sends every token that differs from a genuine one in one
// character, or that is too short or too long, and genuine tokens of other calls.
func TestEveryBadTokenGetsTheSameAnswer(t *testing.T) { onEachSDK(t, everyBadTokenGetsTheSameAnswer) }

func everyBadTokenGetsTheSameAnswer(t *testing.T, sdk string, c client) {
	reject := func(what, method string, params map[string]any) {
		t.Helper()
		status, answer := c.request(t, method, params)
		if status != refusedStatus(sdk) || answer != `{"jsonrpc":"2.0","id":7,"error":`+rejection+`}` {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	token := c.ask(t, "tools/call", tampered)
	with := func(state any) map[string]any {
		return map[string]any{"name": tampered, "requestState": state, "inputResponses": confirmedOK}
	}
	if status, answer := c.request(t, "tools/call", with(token)); status != 200 || !strings.Contains(answer, "state-ok") {
		t.Fatalf("the token itself: %d %s", status, answer)
	}

	var bad []string
	others := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if sdk != officialSDK { // two characters are enough here: the boundary is the same
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
	bad = append(bad, token+"\n", token+" ", token+"=", token+"-TAMPERED", token+token)
	bad = append(bad, "x", "asked", strings.Repeat("A", 70_000))
	var group sync.WaitGroup
	work := make(chan string)
	for range 4 {
		group.Go(func() {
			for state := range work {
				reject(fmt.Sprintf("%.60q", state), "tools/call", with(state))
			}
		})
	}
	for _, state := range bad {
		work <- state
	}
	close(work)
	group.Wait()

	reject("another tool's token", "tools/call", with(c.ask(t, "tools/call", prefix+"request_state")))
	promptToken := c.ask(t, "prompts/get", prefix+"prompt")
	reject("a prompt's token on a tool", "tools/call", with(promptToken))
	onPrompt := with(token)
	onPrompt["name"] = prefix + "prompt"
	reject("a tool's token on a prompt", "prompts/get", onPrompt)
	onPrompt["requestState"], onPrompt["arguments"] = promptToken, map[string]any{"a": "b"}
	reject("a prompt's token with other arguments", "prompts/get", onPrompt)
	other := with(token)
	other["arguments"] = map[string]any{"x": 1}
	reject("other arguments", "tools/call", other)
}

func TestWithoutAStateTheQuestionComesAgain(t *testing.T) {
	onEachSDK(t, func(t *testing.T, sdk string, c client) {
		for name, state := range map[string]any{"stripped": nil, "null": json.RawMessage("null"), "empty": ""} {
			params := map[string]any{"name": tampered, "inputResponses": confirmedOK}
			if name != "stripped" {
				params["requestState"] = state
			}
			status, answer := c.request(t, "tools/call", params)
			if name == "empty" && sdk != officialSDK { // a door never sends an empty state
				if !strings.Contains(answer, rejection) {
					t.Errorf("%s: %d %s", name, status, answer)
				}
				continue
			}
			if status != 200 || !strings.Contains(answer, `"resultType":"input_required"`) {
				t.Errorf("%s: %d %s", name, status, answer)
			}
		}
	})
}

func TestUndeclaredCapabilitiesAreRefused(t *testing.T) {
	onEachSDK(t, func(t *testing.T, sdk string, c client) {
		for tool, want := range map[string]struct{ declared, required string }{
			"elicitation": {`{"sampling":{}}`, `{"elicitation":{"form":{}}}`},
			"sampling":    {`{"elicitation":{}}`, `{"sampling":{}}`},
			"list_roots":  {`{}`, `{"roots":{}}`},
		} {
			refusal := `{"code":-32021,"message":"Missing required client capabilities",` +
				`"data":{"requiredCapabilities":` + want.required + `}}`
			params := map[string]any{"name": prefix + tool, "_meta": meta(json.RawMessage(want.declared))}
			status, answer := c.request(t, "tools/call", params)
			if status != refusedStatus(sdk) || answer != `{"jsonrpc":"2.0","id":7,"error":`+refusal+`}` {
				t.Errorf("%s: %d %s", tool, status, answer)
			}
		}
	})
}
