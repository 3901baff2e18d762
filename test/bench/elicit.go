package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/elicit"
)

// answeredQuestions is how many answered questions one run of the comparisons below has.
const answeredQuestions = 8

// elicitComparisons measure questions that the user answered in earlier rounds: the handler asks them again in every
// round, and gets the recorded answers. The last round of a call of package elicit is compared with handlers that keep
// the answers by hand.
func elicitComparisons() []comparison {
	about := fmt.Sprintf("elicit, %d questions that were answered in earlier rounds", answeredQuestions)
	limits := []limit{{"tripseal", moreAllocations, 16 * answeredQuestions}, {"tripseal", moreNanoseconds, 2000 * answeredQuestions}}
	return []comparison{{title: about, limits: limits, contenders: []contender{answeredByHand(), {"tripseal", 0, answeredBefore()}}}}
}

type deployment struct {
	Region   string `json:"region" jsonschema:"where to deploy"`
	Canary   bool   `json:"canary" jsonschema:"whether to deploy to one machine first"`
	Replicas int    `json:"replicas" jsonschema:"how many machines"`
}

const whereTo = "Where shall version 1.4.2 of the frontend be deployed?"

var chosen = map[string]any{"region": "eu-west", "canary": true, "replicas": 3}

// answeredByHand does the least that a handler without package elicit must do. It computes a
// digest of each question, whose schema it has as text, and decodes the answer without checking it.
func answeredByHand() contender {
	schema := []byte(`{"type":"object","properties":{"region":{"type":"string","description":"where to deploy","enum":["eu-west","eu-north","us-east"]},` +
		`"canary":{"type":"boolean","description":"whether to deploy to one machine first"},` +
		`"replicas":{"type":"integer","description":"how many machines"}},"required":["region","canary","replicas"]}`)
	answer, err := json.Marshal(chosen)
	check(err)
	return contender{"by hand: SHA-256 and json.Unmarshal", 0, func() {
		for range answeredQuestions {
			sha256.Sum256(append([]byte(whereTo), schema...))
			var got deployment
			check(json.Unmarshal(answer, &got))
			if !got.Canary {
				panic("not the answer")
			}
		}
	}}
}

// answeredBefore returns a function that runs the last round of a call. All its questions were answered before.
func answeredBefore() func() {
	i := newInterview(func(ask *elicit.Asker, key string) error {
		got, err := elicit.Form[deployment](ask, key, whereTo).Value()
		if err == nil && !got.Canary {
			panic("not the answer")
		}
		return err
	}, chosen)
	last := i.call(answeredQuestions)
	return func() { i.run(last) }
}

// interview is a handler that asks one question in each round.
type interview struct {
	boundary *tripseal.Boundary
	form     func(ask *elicit.Asker, key string) error
	answer   json.RawMessage // the answer to every question
}

// visit is a request of an interview.
type visit struct {
	token   string
	arrival elicit.Arrival
	rounds  int // how many questions the call asks
}

func newInterview(form func(ask *elicit.Asker, key string) error, content map[string]any) *interview {
	b, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: audience, Logger: slog.New(slog.DiscardHandler), MaxRounds: tripseal.NoLimit, MaxState: 1 << 20,
	})
	check(err)
	answer, err := json.Marshal(map[string]any{"action": "accept", "content": content})
	check(err)
	return &interview{b, form, answer}
}

// run runs the handler with what arrived. It returns nil if the call is done.
func (i *interview) run(v *visit) *elicit.Pending {
	pending, err := elicit.Run(elicit.Arrive(context.Background(), &v.arrival), elicit.Call{}, func(_ context.Context, ask *elicit.Asker) error {
		for n := range v.rounds {
			if err := i.form(ask, fmt.Sprint(question, n)); err != nil {
				return err
			}
		}
		return nil
	})
	check(err)
	return pending
}

// send opens the token of a request, and runs the handler. If it asks, send returns the next request, with the answers.
func (i *interview) send(v *visit) (next *visit) {
	round, err := i.boundary.Open(context.Background(), tripseal.Request{Method: "tools/call", Target: target}, v.token)
	check(err)
	v.arrival.State, _ = round.Elicit()
	pending := i.run(v)
	if pending == nil {
		return nil
	}
	next = &visit{rounds: v.rounds, arrival: elicit.Arrival{Answers: map[string]json.RawMessage{}}}
	next.token, err = i.boundary.Seal(context.Background(), &round, &pending.State, pending.Asked()...)
	check(err)
	for key := range pending.Questions {
		next.arrival.Answers[key] = i.answer
	}
	return next
}

// call answers the questions of a call until it is complete. It returns the last request.
func (i *interview) call(rounds int) (last *visit) {
	for next := (&visit{rounds: rounds}); next != nil; next = i.send(last) {
		last = next
	}
	return last
}

// remarks returns an interview with answers of 512 bytes.
func remarks() *interview {
	type remark struct {
		Text string `json:"text"`
	}
	return newInterview(func(ask *elicit.Asker, key string) error {
		_, err := elicit.Form[remark](ask, key, "What else?").Value()
		return err
	}, map[string]any{"text": strings.Repeat("x", 512)})
}
