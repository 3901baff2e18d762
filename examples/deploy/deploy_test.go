package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/mutate"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise every server would log that its keys are ephemeral
	os.Exit(m.Run())
}

func onEachSDK(t *testing.T, test func(t *testing.T, sdk string)) {
	for _, sdk := range []string{"go-sdk", "mcp-go"} {
		t.Run(sdk, func(t *testing.T) { test(t, sdk) })
	}
}

func serve(t *testing.T, sdk string) mutate.Client {
	t.Helper()
	handler, _, err := start(sdk, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return mutate.Client{URL: web.URL + "/mcp", Bearer: "alice-token", HTTP: web.Client()}
}

var frontend = map[string]any{"service": "frontend", "version": "1.4.2"}

const (
	confirm = "Really do this to frontend 1.4.2?"
	region  = "In which region?"
)

// user accepts the question q. The answer is eu if q asks for the region; otherwise it is yes.
func user(q mutate.Question) any {
	if q.Message() == region {
		return accept(`{"name":"eu"}`)
	}
	return accept(`{"ok":true}`)
}

func accept(content string) json.RawMessage {
	return json.RawMessage(`{"action":"accept","content":` + content + `}`)
}

// This function calls the tools deploy and rollback on both protocol revisions. After each of the
// four calls, it passes three texts to the function check: a name for the call, the first word of
// a successful result, and what the tool said.
func each(t *testing.T, sdk string, answer func() func(mutate.Question) any, check func(name, done, said string)) {
	t.Helper()
	client := serve(t, sdk)
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
	onEachSDK(t, aUserWhoAcceptsBothQuestionsIsServed)
}

func aUserWhoAcceptsBothQuestionsIsServed(t *testing.T, sdk string) {
	each(t, sdk, func() func(mutate.Question) any { return user }, func(name, done, said string) {
		if want := done + " frontend 1.4.2 in eu, 10% of traffic"; said != want {
			t.Errorf("%s: %s", name, said)
		}
	})
}

func TestADeclinedOrCancelledQuestionDoesNothing(t *testing.T) {
	onEachSDK(t, aDeclinedOrCancelledQuestionDoesNothing)
}

func aDeclinedOrCancelledQuestionDoesNothing(t *testing.T, sdk string) {
	for _, question := range []string{confirm, region} {
		for _, action := range []string{"decline", "cancel"} {
			// An honest client sends no content with a refusal.
			for _, content := range []string{"", `,"content":{"ok":true}`, `,"content":{"name":"eu"}`} {
				refuse := func() func(mutate.Question) any {
					return func(q mutate.Question) any {
						if q.Message() == question {
							return json.RawMessage(fmt.Sprintf(`{"action":%q%s}`, action, content))
						}
						return user(q)
					}
				}
				each(t, sdk, refuse, func(name, done, said string) {
					if said != "nothing was done" {
						t.Errorf("%s, %s %q%s: %s", name, action, question, content, said)
					}
				})
			}
		}
	}
}

func TestAnAnswerThatDoesNotFitDoesNothing(t *testing.T) {
	onEachSDK(t, anAnswerThatDoesNotFitDoesNothing)
}

func anAnswerThatDoesNotFitDoesNothing(t *testing.T, sdk string) {
	for question, contents := range map[string][]string{
		confirm: {`null`, `{}`, `{"ok":null}`, `{"ok":"true"}`, `{"ok":1}`, `{"ok":[true]}`, `{"ok":false}`, `{"OK":true}`, `{"name":"eu"}`, `{"ok":true,"force":true}`},
		region:  {`null`, `{}`, `{"name":null}`, `{"name":""}`, `{"name":" "}`, `{"name":7}`, `{"name":true}`, `{"name":["eu"]}`, `{"Name":"eu"}`, `{"ok":true}`, `{"name":"eu","traffic":"100"}`},
	} {
		for _, content := range contents {
			// The first answer does not fit. If the question is asked again, the user cancels it.
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
			each(t, sdk, misfit, func(name, done, said string) {
				// With the official SDK, a call of an older client can fail: the SDK refuses an
				// answer that does not match the form, and gosdk refuses an answer with a null
				// in a field.
				refused := strings.Contains(said, "does not match requested schema") || strings.Contains(said, "does not fit what was asked")
				if said != "nothing was done" && !refused {
					t.Errorf("%s, %s: %s", name, content, said)
				}
			})
		}
	}
}

func TestAnAnswerOfAnotherKindDoesNothing(t *testing.T) {
	onEachSDK(t, anAnswerOfAnotherKindDoesNothing)
}

func anAnswerOfAnotherKindDoesNothing(t *testing.T, sdk string) {
	client := serve(t, sdk)
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
	onEachSDK(t, withoutABearerTokenNothingIsServed)
}

func withoutABearerTokenNothingIsServed(t *testing.T, sdk string) {
	client := serve(t, sdk)
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

// TestTheSessionOfAnotherUserIsRefused opens a session as alice and uses it as bob, in
// every way that the transport has.
func TestTheSessionOfAnotherUserIsRefused(t *testing.T) {
	onEachSDK(t, theSessionOfAnotherUserIsRefused)
}

func theSessionOfAnotherUserIsRefused(t *testing.T, sdk string) {
	client := serve(t, sdk)
	send := func(method, user, session, body string) (status int, opened string) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel() // ends the stream that a GET opens
		request, err := http.NewRequestWithContext(ctx, method, client.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+user+"-token")
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			request.Header.Set("Mcp-Session-Id", session)
			request.Header.Set("Mcp-Protocol-Version", mutate.Older)
		}
		response, err := client.HTTP.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode, response.Header.Get("Mcp-Session-Id")
	}
	hello := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + mutate.Older + `","capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`
	status, session := send("POST", "alice", "", hello)
	if status != http.StatusOK || session == "" {
		t.Fatalf("no session: %d", status)
	}
	for _, use := range []struct{ method, body string }{
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{"POST", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"ok":true}}}`},
		{"GET", ""},
		{"DELETE", ""},
	} {
		if status, _ := send(use.method, "bob", session, use.body); status != http.StatusNotFound && status != http.StatusForbidden {
			t.Errorf("%s %s as bob: %d", use.method, use.body, status)
		}
	}
	send("POST", "alice", session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if status, _ := send("POST", "alice", session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusOK {
		t.Errorf("as alice: %d", status)
	}
}

func TestAnUnknownSDKIsRefused(t *testing.T) {
	if _, _, err := start("other", tripseal.Config{}); err == nil {
		t.Error("an unknown SDK is served")
	}
}
