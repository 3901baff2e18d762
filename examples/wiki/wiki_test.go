package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/test/attacks"
	"github.com/tripseal/tripseal/test/mutate"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
	"github.com/tripseal/tripseal/replay"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // otherwise every server would log that its keys are ephemeral
	os.Exit(m.Run())
}

func TestTheFormIsAllowed(t *testing.T) {
	if err := elicit.CheckForm[Confirm](); err != nil {
		t.Error(err)
	}
}

// start serves two replicas, which share the pages.
func start(t testing.TB, newReplica func(*pages) (http.Handler, error)) attacks.Fleet {
	t.Helper()
	pages := newPages()
	fleet := attacks.Fleet{Alice: "alice-token", Bob: "bob-token", Holds: pages.String, Reset: pages.reset}
	for i := range fleet.URLs {
		handler, err := newReplica(pages)
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(usersOnly(handler))
		t.Cleanup(web.Close)
		fleet.URLs[i] = web.URL
	}
	return fleet
}

func protected(t testing.TB) attacks.Fleet {
	t.Helper()
	once, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "wiki.example.com", Replay: once}
	return start(t, func(p *pages) (http.Handler, error) {
		server, err := newProtected(p, config)
		return gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil), err
	})
}

// trusting is the confirmer of a server without tripseal. Its state has the keys of the questions
// to which the user said yes.
func trusting(_ context.Context, req *mcp.CallToolRequest, key, message string) error {
	var agreed []string
	json.Unmarshal([]byte(req.Params.RequestState), &agreed)
	for key, answer := range req.Params.InputResponses {
		form, ok := answer.(*mcp.ElicitResult)
		if !ok || form.Action != "accept" || form.Content["ok"] != true {
			return errDeclined
		}
		agreed = append(agreed, key)
	}
	if slices.Contains(agreed, key) {
		return nil
	}
	state, err := json.Marshal(append([]string{}, agreed...))
	if err != nil {
		return err
	}
	return &asking{&mcp.CallToolResult{RequestState: string(state), InputRequests: mcp.InputRequestMap{
		key: &mcp.ElicitParams{Message: message, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}},
		}},
	}}}
}

func unprotected(t testing.TB) attacks.Fleet {
	t.Helper()
	return start(t, func(p *pages) (http.Handler, error) {
		server := newServer(p, trusting)
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}), nil
	})
}

func target(start func(testing.TB) attacks.Fleet) attacks.Target {
	return attacks.Target{
		Start: start,
		Tool:  "delete_page", Other: "publish_page",
		Arguments: map[string]any{"page": "plan"}, OtherArguments: map[string]any{"page": "diary"},
		Yes: map[string]any{"confirm": yes},
		// Tamper writes a state which says that the user said yes, and drops the answers.
		Tamper: func(c *attacks.Call) bool {
			readable := c.State == "" || c.State == "[]"
			if readable {
				c.State, c.Answers = `["confirm"]`, nil
			}
			return readable
		},
	}
}

var yes = json.RawMessage(`{"action":"accept","content":{"ok":true}}`)

func TestAttacksAreRefused(t *testing.T) { attacks.AreRefused(t, target(protected)) }

func TestEveryAttackWorksWithoutTripseal(t *testing.T) { attacks.Work(t, target(unprotected)) }

// TestAYesToTheFirstQuestionIsNoYesToTheSecond checks that the server deletes nothing if the client
// answers the second question before it is asked, sends the first answer again, or uses a state
// twice.
func TestAYesToTheFirstQuestionIsNoYesToTheSecond(t *testing.T) {
	fleet := protected(t)
	before := fleet.Holds()
	call := attacks.Call{Bearer: fleet.Alice, Tool: "delete_page", Arguments: map[string]any{"page": "manual"}}
	first := fleet.Send(t, call)
	call.Replica, call.State, call.Answers = 1, first.State, map[string]any{"confirm": yes, "below": yes}
	second := fleet.Send(t, call)
	if !second.Asks() || second.Asked["below"] == nil || fleet.Holds() != before {
		t.Fatalf("an answer before its question: %s", second)
	}
	call.State, call.Answers = second.State, map[string]any{"confirm": yes}
	if reply := fleet.Send(t, call); !reply.Asks() || fleet.Holds() != before {
		t.Errorf("the first answer again: %s", reply)
	}
	call.Answers = map[string]any{"below": yes}
	if reply := fleet.Send(t, call); !reply.Rejected() || fleet.Holds() != before {
		t.Errorf("a state that was used: %s", reply)
	}
}

// onBothRevisions calls delete_page once on each protocol revision. It passes each result to the
// function check.
func onBothRevisions(t *testing.T, page string, answer func(question string) string, check func(name, said, holds string)) {
	t.Helper()
	for _, revision := range []string{mutate.Newer, mutate.Older} {
		fleet := protected(t)
		client := mutate.Client{URL: fleet.URLs[0], Bearer: fleet.Alice, HTTP: http.DefaultClient}
		outcome, err := client.Call(t.Context(), mutate.Call{
			Revision: revision, Method: "tools/call", Params: map[string]any{"name": "delete_page", "arguments": map[string]any{"page": page}},
			Answer: func(q mutate.Question) any { return json.RawMessage(answer(q.Message())) },
		})
		if err != nil {
			t.Fatalf("%s: %v", revision, err)
		}
		check(revision, outcome.String(), fleet.Holds())
	}
}

func TestAUserWhoAgreesGetsMarkdown(t *testing.T) {
	for page, want := range map[string]string{
		"plan":   "# Deleted\n\n- `plan`\n",
		"manual": "# Deleted\n\n- `manual`\n- `manual/setup`\n- `manual/usage`\n",
	} {
		onBothRevisions(t, page, func(string) string { return string(yes) }, func(name, said, holds string) {
			if said != want || strings.Contains(holds, page) {
				t.Errorf("%s, %s: %q, holds %s", name, page, said, holds)
			}
		})
	}
}

func TestADeclineHasATextOfItsOwnAndDeletesNothing(t *testing.T) {
	for _, question := range []string{"Delete the page manual?", "Delete also manual/setup, manual/usage?"} {
		for _, no := range []string{`{"action":"decline"}`, `{"action":"cancel"}`, `{"action":"accept","content":{"ok":false}}`} {
			asked := 0
			answer := func(q string) string {
				if q == question {
					asked++
					return no
				}
				return string(yes)
			}
			onBothRevisions(t, "manual", answer, func(name, said, holds string) {
				if said != "**Declined.** `manual` is as it was." || holds != newPages().String() {
					t.Errorf("%s, %s to %q: %q, holds %s", name, no, question, said, holds)
				}
			})
			if asked != 2 { // once on each revision
				t.Errorf("%q was asked %d times", question, asked)
			}
		}
	}
}

func TestAToolThatDoesNotAskJustAnswers(t *testing.T) {
	fleet := protected(t)
	for page, want := range map[string]string{"diary": "# Diary\n", "none": errNoPage.Error()} {
		reply := fleet.Send(t, attacks.Call{Bearer: fleet.Bob, Tool: "show_page", Arguments: map[string]any{"page": page}})
		if reply.Text != want {
			t.Errorf("%s: %s", page, reply)
		}
	}
}

func TestAServerWithoutItsProtectLineActsForNobody(t *testing.T) {
	fleet := start(t, func(p *pages) (http.Handler, error) {
		server := newServer(p, confirm)
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}), nil
	})
	before := fleet.Holds()
	for _, state := range []string{"", `["confirm"]`} {
		reply := fleet.Send(t, attacks.Call{
			Bearer: fleet.Alice, Tool: "delete_page", Arguments: map[string]any{"page": "plan"}, State: state, Answers: map[string]any{"confirm": yes},
		})
		if reply.Code != -32603 || reply.Asks() || fleet.Holds() != before {
			t.Errorf("%q: %s", state, reply)
		}
	}
}
