package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/examples/internal/mutate"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // many servers say that their keys are ephemeral
	os.Exit(m.Run())
}

func serve(t *testing.T) mutate.Client {
	t.Helper()
	server, err := newServer(mcpseal.Config{Keys: mcpseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(newHandler(server))
	t.Cleanup(web.Close)
	return mutate.Client{URL: web.URL + "/mcp", Bearer: "alice-token", HTTP: web.Client()}
}

var frontend = map[string]any{"service": "frontend", "version": "1.4.2"}

const (
	confirm = "Really do this to frontend 1.4.2?"
	region  = "In which region?"
)

// user accepts both questions.
func user(q mutate.Question) any {
	if q.Message() == region {
		return accept(`{"name":"eu"}`)
	}
	return accept(`{"ok":true}`)
}

func accept(content string) json.RawMessage {
	return json.RawMessage(`{"action":"accept","content":` + content + `}`)
}

// each calls both tools, on both revisions.
func each(t *testing.T, answer func() func(mutate.Question) any, check func(name, done, said string)) {
	t.Helper()
	client := serve(t)
	for tool, done := range map[string]string{"deploy": "deployed", "rollback": "restored"} {
		for _, revision := range []string{mutate.Newer, mutate.Older} {
			outcome, err := client.Call(t.Context(), mutate.Call{
				Revision: revision, Method: "tools/call", Params: map[string]any{"name": tool, "arguments": frontend}, Answer: answer(),
			})
			if err != nil {
				t.Fatalf("%s, %s: %v", tool, revision, err)
			}
			check(fmt.Sprintf("%s, %s", tool, revision), done, outcome.String())
		}
	}
}

func TestAUserWhoAcceptsBothQuestionsIsServed(t *testing.T) {
	each(t, func() func(mutate.Question) any { return user }, func(name, done, said string) {
		if want := done + " frontend 1.4.2 in eu, 10% of traffic"; said != want {
			t.Errorf("%s: %s", name, said)
		}
	})
}

func TestADeclinedOrCancelledQuestionDoesNothing(t *testing.T) {
	for _, question := range []string{confirm, region} {
		for _, action := range []string{"decline", "cancel"} {
			// With content, as a client that means well would not send it.
			for _, content := range []string{"", `,"content":{"ok":true}`, `,"content":{"name":"eu"}`} {
				refuse := func() func(mutate.Question) any {
					return func(q mutate.Question) any {
						if q.Message() == question {
							return json.RawMessage(fmt.Sprintf(`{"action":%q%s}`, action, content))
						}
						return user(q)
					}
				}
				each(t, refuse, func(name, done, said string) {
					if said != "nothing was done" {
						t.Errorf("%s, %s %q%s: %s", name, action, question, content, said)
					}
				})
			}
		}
	}
}

func TestAnAnswerThatDoesNotFitDoesNothing(t *testing.T) {
	for question, contents := range map[string][]string{
		confirm: {`null`, `{}`, `{"ok":null}`, `{"ok":"true"}`, `{"ok":1}`, `{"ok":[true]}`, `{"ok":false}`, `{"OK":true}`, `{"name":"eu"}`, `{"ok":true,"force":true}`},
		region:  {`null`, `{}`, `{"name":null}`, `{"name":""}`, `{"name":" "}`, `{"name":7}`, `{"name":true}`, `{"name":["eu"]}`, `{"Name":"eu"}`, `{"ok":true}`, `{"name":"eu","traffic":"100"}`},
	} {
		for _, content := range contents {
			// The answer does not fit; asked again, the user gives up.
			misfit := func() func(mutate.Question) any {
				asked := 0
				return func(q mutate.Question) any {
					if q.Message() != question {
						return user(q)
					}
					if asked++; asked > 1 {
						return json.RawMessage(`{"action":"cancel"}`)
					}
					return accept(content)
				}
			}
			each(t, misfit, func(name, done, said string) {
				// An older client's answer is held to the form by the SDK, and kept from the
				// handler with a null in it.
				refused := strings.Contains(said, "does not match requested schema") || strings.Contains(said, "does not fit what was asked")
				if said != "nothing was done" && !refused {
					t.Errorf("%s, %s: %s", name, content, said)
				}
			})
		}
	}
}

func TestAnAnswerOfAnotherKindDoesNothing(t *testing.T) {
	client := serve(t)
	for _, question := range []string{confirm, region} {
		for _, other := range []string{`{"roots":[]}`, `{"roots":[null]}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"eu"}}`} {
			asked := 0
			outcome, err := client.Call(t.Context(), mutate.Call{
				Revision: mutate.Newer, Method: "tools/call", Params: map[string]any{"name": "deploy", "arguments": frontend},
				Answer: func(q mutate.Question) any {
					if q.Message() != question {
						return user(q)
					}
					if asked++; asked > 1 {
						return json.RawMessage(`{"action":"cancel"}`)
					}
					return json.RawMessage(other)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if said := outcome.String(); said != "nothing was done" || asked != 2 {
				t.Errorf("%s for %q: %s, asked %d times", other, question, said, asked)
			}
		}
	}
}

func TestWithoutABearerTokenNothingIsServed(t *testing.T) {
	client := serve(t)
	for _, bearer := range []string{"", "mallory-token", "alice"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, client.URL, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+bearer)
		response, err := client.HTTP.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %s", bearer, response.Status)
		}
	}
}
