package elicit_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

// FuzzAnswers runs a handler with arbitrary states and answers. Nothing panics, and an answer reaches the handler only
// if the state has the question's wording.
func FuzzAnswers(f *testing.F) {
	sampled := func(ask *elicit.Asker) *elicit.Answer[map[string]any] {
		return elicit.Sample[map[string]any](ask, "sample", map[string]any{"maxTokens": 1})
	}
	words := map[string]string{
		"form":   elicit.WordingOf(elicit.Question{Kind: tripseal.KindForm, Message: "?", Schema: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}`)}),
		"sample": elicit.WordingOf(elicit.Question{Kind: tripseal.KindSampling, Params: json.RawMessage(`{"maxTokens":1}`)}),
		"roots":  elicit.WordingOf(elicit.Question{Kind: tripseal.KindRoots}),
	}
	var reached []string
	run := func(state, given string) (*elicit.Pending, error) {
		var list map[string]json.RawMessage
		json.Unmarshal([]byte(given), &list) // no answers if it fails
		reached = nil
		ctx := elicit.Arrive(context.Background(), &elicit.Arrival{Target: "t", State: state, Answers: list, Logger: slog.New(slog.DiscardHandler)})
		return elicit.Run(ctx, elicit.Call{Target: "t"}, func(_ context.Context, ask *elicit.Asker) error {
			form, sample, roots := elicit.Form[value](ask, "form", "?"), sampled(ask), elicit.Roots(ask, "roots")
			url := elicit.URL(ask, "url", "?", "https://example.com")
			if _, _, err := form.Outcome(); err == nil {
				reached = append(reached, "form")
			}
			if _, _, err := sample.Outcome(); err == nil {
				reached = append(reached, "sample")
			}
			if _, _, err := roots.Outcome(); err == nil {
				reached = append(reached, "roots")
			}
			id, _ := elicit.Once(ask, "id", func() (string, error) { return "x", nil })
			elicit.Form[value](ask, "later", id).Outcome()
			if action, _, err := url.Outcome(); err == nil && action == elicit.Accept {
				return url.NotYet()
			}
			return nil
		})
	}
	s := newService(f)
	h := func(ask *elicit.Asker) (string, error) {
		elicit.Form[value](ask, "form", "?")
		elicit.Roots(ask, "roots")
		_, err := sampled(ask).Value()
		return "", err
	}
	genuine := func(token string) string {
		round, err := s.Open(f.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, token)
		if err != nil {
			f.Fatal(err)
		}
		state, _ := round.Elicit()
		return state
	}
	first := s.round(h, "", nil)
	good := `{"form":{"action":"accept","content":{"value":"x"}},"sample":{"role":"assistant","model":"m","content":{"type":"text","text":"x"}},"roots":{"roots":[]},"url":{"action":"accept"}}`
	f.Add(genuine(first.token), good)
	f.Add(genuine(first.token), `{"form":{"action":"decline"},"sample":{"roots":[]},"roots":{"action":"accept"},"ghost":{"action":"accept"}}`)
	second := s.round(h, first.token, answers{"form": form("x")})
	f.Add(genuine(second.token), good)
	f.Add(strings.Replace(genuine(second.token), "4:true", "5:false", 1), good)
	f.Add(strings.Replace(genuine(second.token), "6:accept", "6:cancel", 1), good)
	f.Add("1:11:01:00:1:0", good)
	f.Add("step=1", good)
	f.Add("", "{}")
	f.Fuzz(func(t *testing.T, state, given string) {
		pending, err := run(state, given)
		for _, key := range reached {
			if !strings.Contains(state, words[key]) {
				t.Fatalf("an answer to %s reached the handler, which the state %q did not ask", key, state)
			}
		}
		if pending != nil && err != nil {
			t.Fatal("questions beside an error")
		}
		if again, ok := elicit.Reads(state); ok {
			if third, ok := elicit.Reads(again); !ok || third != again {
				t.Fatalf("%q is written as %q, and that as %q", state, again, third)
			}
		}
	})
}
