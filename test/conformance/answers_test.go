package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
)

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

func answer(q mutate.Question) any { return json.RawMessage(honest[q.Message()]) }

// scenarios has the tools and the prompt that the suite calls, with their final texts and questions.
var scenarios = []struct {
	name, done string
	asks       []string
}{
	{"elicitation", "Hello, Alice!", []string{"What is your name?"}},
	{"sampling", "Paris", []string{"sampling/createMessage"}},
	{"list_roots", "1 roots: file:///work", []string{"roots/list"}},
	{"request_state", "state-ok", []string{"Please confirm"}},
	{"tampered_state", "state-ok", []string{"Please confirm"}},
	{"multiple_inputs", "Paris Alice, with 1 roots", []string{"What is your name?", "sampling/createMessage", "roots/list"}},
	{"multi_round", "Alice likes blue", []string{"Step 1: What is your name?", "Step 2: What is your favorite color?"}},
	{"capabilities", "thank you", []string{"What is your name?", "sampling/createMessage"}},
	{"prompt", "With this in mind: tests", []string{"What context should the prompt use?"}},
}

func call(name string, answer func(mutate.Question) any) mutate.Call {
	method := "tools/call"
	if name == "prompt" {
		method = "prompts/get"
	}
	return mutate.Call{Revision: mutate.Newer, Method: method, Params: map[string]any{"name": prefix + name}, Answer: answer}
}

func onEachSDK(t *testing.T, test func(t *testing.T, sdk string)) {
	for _, sdk := range []string{"go-sdk", "mcp-go"} {
		t.Run(sdk, func(t *testing.T) { test(t, sdk) })
	}
}

func serve(t *testing.T, sdk string) mutate.Client {
	t.Helper()
	handler, err := newHandler(settings{sdk: sdk, config: tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "conformance"}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return mutate.Client{URL: web.URL + "/mcp", HTTP: web.Client(), Listens: sdk == "mcp-go"}
}

func TestHonestAnswersAreTaken(t *testing.T) { onEachSDK(t, honestAnswersAreTaken) }

func honestAnswersAreTaken(t *testing.T, sdk string) {
	client := serve(t, sdk)
	for _, s := range scenarios {
		for _, revision := range []string{mutate.Newer, mutate.Older} {
			c := call(s.name, answer)
			c.Revision = revision
			outcome, err := client.Call(t.Context(), c)
			if err != nil || outcome.String() != s.done {
				t.Errorf("%s, %s: %v, %v", s.name, revision, outcome, err)
			}
		}
	}
}

func TestADeclinedOrCancelledQuestionDoesNothing(t *testing.T) {
	onEachSDK(t, aDeclinedOrCancelledQuestionDoesNothing)
}

func aDeclinedOrCancelledQuestionDoesNothing(t *testing.T, sdk string) {
	client := serve(t, sdk)
	for _, s := range scenarios {
		for _, question := range s.asks {
			if question == "sampling/createMessage" || question == "roots/list" {
				continue // a client declines such a question with an error
			}
			for _, action := range []string{"decline", "cancel"} {
				for _, revision := range []string{mutate.Newer, mutate.Older} {
					c := call(s.name, func(q mutate.Question) any {
						if q.Message() == question {
							return map[string]any{"action": action}
						}
						return answer(q)
					})
					c.Revision = revision
					outcome, err := client.Call(t.Context(), c)
					if err != nil || outcome.String() != "nothing was done" {
						t.Errorf("%s, %s, %s %q: %v, %v", s.name, revision, action, question, outcome, err)
					}
				}
			}
		}
	}
}

// TestAnAnswerThatDoesNotFitIsAskedForAgain sends an answer that does not fit, and then an honest
// one, so that every call ends.
func TestAnAnswerThatDoesNotFitIsAskedForAgain(t *testing.T) {
	onEachSDK(t, anAnswerThatDoesNotFitIsAskedForAgain)
}

func anAnswerThatDoesNotFitIsAskedForAgain(t *testing.T, sdk string) {
	client := serve(t, sdk)
	for _, s := range scenarios {
		for _, question := range s.asks {
			for _, misfit := range misfits(question) {
				asked := 0
				outcome, err := client.Call(t.Context(), call(s.name, func(q mutate.Question) any {
					if q.Message() == question {
						if asked++; asked == 1 {
							return json.RawMessage(misfit)
						}
					}
					return answer(q)
				}))
				if err != nil || asked != 2 || outcome.String() != s.done {
					t.Errorf("%s, %s for %q: asked %d times, then %v, %v", s.name, misfit, question, asked, outcome, err)
				}
			}
		}
	}
}

func misfits(question string) (all []string) {
	switch question {
	case "sampling/createMessage":
		return []string{
			`{"roots":[]}`, `{"action":"accept"}`, `{"role":"assistant","model":"m","content":[]}`,
			`{"role":"assistant","model":"m","content":{"type":"text","text":""}}`,
			`{"role":"assistant","model":"m","content":{"type":"image","data":"","mimeType":"image/png"}}`,
		}
	case "roots/list":
		return []string{`{"action":"accept"}`, `{"roots":null}`, `{"roots":[null]}`, `{"roots":[{}]}`, `{"roots":[{"uri":"file:///work"},null]}`}
	}
	var form struct{ Content map[string]any }
	json.Unmarshal([]byte(honest[question]), &form)
	for field, value := range form.Content {
		contents := []string{`null`, `{}`, `{%q:null}`, `{%q:7}`, `{%q:[]}`, `{%q:{}}`}
		if value == true {
			contents = append(contents, `{%q:"true"}`, `{%q:true,"also":1}`)
		} else {
			contents = append(contents, `{%q:""}`, `{%q:true}`, `{%q:"x","also":1}`)
		}
		for _, content := range contents {
			if content != `null` && content != `{}` {
				content = fmt.Sprintf(content, field)
			}
			all = append(all, `{"action":"accept","content":`+content+`}`)
		}
	}
	return append(all, `{"action":"accept"}`, `{"roots":[]}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"Alice"}}`)
}

func TestAConfirmationThatSaysNoDoesNothing(t *testing.T) {
	onEachSDK(t, aConfirmationThatSaysNoDoesNothing)
}

func aConfirmationThatSaysNoDoesNothing(t *testing.T, sdk string) {
	client := serve(t, sdk)
	outcome, err := client.Call(t.Context(), call("request_state", func(mutate.Question) any {
		return json.RawMessage(`{"action":"accept","content":{"ok":false}}`)
	}))
	if err != nil || outcome.String() != "nothing was done" {
		t.Errorf("%v, %v", outcome, err)
	}
}
