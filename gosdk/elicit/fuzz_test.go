package elicit_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

// FuzzAnswers seals arbitrary states with the server's keys. It sends them to a handler, together
// with arbitrary answers. Nothing panics, and an answer reaches the handler only if the state says
// that its question was asked.
func FuzzAnswers(f *testing.F) {
	quiet := slog.New(slog.DiscardHandler)
	boundary, err := tripseal.New(tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "test", Logger: quiet})
	if err != nil {
		f.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	protected := gosdk.Protect(server, boundary, &gosdk.Options{Logger: quiet})
	var reached []string // the keys of the answers that the handler got; the key "form" is followed by the value of its answer
	elicit.AddTool(protected, &mcp.Tool{Name: "t"}, func(_ context.Context, ask *elicit.Asker, _ args) (result, error) {
		form := elicit.Form[value](ask, "form", "?")
		sample := elicit.Sample(ask, "sample", &mcp.CreateMessageParams{MaxTokens: 1})
		roots := elicit.Roots(ask, "roots")
		url := elicit.URL(ask, "url", "?", "https://example.com")
		if _, v, err := form.Outcome(); err == nil {
			reached = append(reached, "form", v.Value)
		}
		if _, v, err := sample.Outcome(); err == nil && v != nil {
			reached = append(reached, "sample")
		}
		if _, _, err := roots.Outcome(); err == nil {
			reached = append(reached, "roots")
		}
		if _, _, err := url.Outcome(); err == nil {
			reached = append(reached, "url")
		}
		id, _ := elicit.Once(ask, "id", func() (string, error) { return "x", nil })
		if _, _, err := elicit.Form[value](ask, "later", id).Outcome(); err == nil {
			reached = append(reached, "later")
		}
		return result{"done"}, nil
	})
	session := connect(f, server, reply(nil).options(true), revision2026)
	request := tripseal.Request{Method: "tools/call", Target: "t"}
	// Get a state that elicit wrote.
	first, err := session.CallTool(f.Context(), &mcp.CallToolParams{Name: "t"})
	if err != nil {
		f.Fatal(err)
	}
	opened, err := boundary.Open(f.Context(), request, first.RequestState)
	if err != nil {
		f.Fatal(err)
	}
	genuine, _ := opened.State()
	pins, _ := opened.Questions()
	type question struct{ D string }
	var asked struct{ Q map[string]question }
	if err := json.Unmarshal([]byte(genuine), &asked); err != nil || len(asked.Q) != 4 {
		f.Fatalf("the state is %s", genuine)
	}
	good := `{"form":{"action":"accept","content":{"value":"x"}},"sample":{"role":"assistant","model":"m","content":{"type":"text","text":"x"}},"roots":{"roots":[]},"url":{"action":"accept"}}`
	f.Add(genuine, good)
	f.Add(genuine, `{"form":{"action":"decline"},"sample":{"roots":[]},"roots":{"action":"accept"},"ghost":{"action":"accept"}}`)
	with := func(more string) string { return strings.TrimSuffix(genuine, "}") + "," + more + "}" }
	f.Add(with(`"a":{"form":{"d":"`+asked.Q["form"].D+`","o":"accept","c":{"value":7},"n":1},"later":{"d":"x","o":"accept","p":1}},"n":1`), good)
	f.Add(with(`"a":{"sample":{"d":"x","o":"decline","n":-1,"p":9223372036854775807}},"k":{"id":{"v":"y","p":9223372036854775807}},"n":9223372036854775807`), good)
	f.Add(with(`"a":{"form":{"o":"maybe"}},"k":{"id":{"v":7}},"r":{"form":99}`), good)
	f.Add("step=1", good)
	f.Add("", good)
	f.Add("[]", `{}`)
	f.Fuzz(func(t *testing.T, state, responses string) {
		var answers mcp.InputResponseMap
		if json.Unmarshal([]byte(responses), &answers) != nil {
			return // the SDK refuses such answers
		}
		r, err := boundary.Open(t.Context(), request, "")
		if err != nil {
			t.Fatal(err)
		}
		token, err := boundary.Seal(t.Context(), &r, &state, pins...)
		if err != nil {
			return // the state is too large
		}
		reached = nil
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "t", RequestState: token, InputResponses: answers}); err != nil && strings.Contains(err.Error(), "closed") {
			t.Fatal(err)
		}
		var given struct {
			Q, A map[string]question
		}
		_ = json.Unmarshal([]byte(state), &given)
		for i := 0; i < len(reached); i++ {
			key := reached[i]
			if key == "form" {
				i++ // skip the value
			}
			// The question "url" has an id that is made from the state, so its digest is not
			// compared. The question "later" was not asked in the first round, so only the
			// state can have an answer to it.
			isAsked := key == "url" || key == "later" && given.A[key].D != "" || asked.Q[key].D != "" && (given.Q[key] == asked.Q[key] || given.A[key] == asked.Q[key])
			if !isAsked {
				t.Fatalf("an answer to %s reached the handler, which the state %q did not ask", key, state)
			}
		}
	})
}
