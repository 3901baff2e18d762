package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

// elicitComparisons measure a question that the user answered in an earlier round: the
// handler asks it again in every round, and gets the recorded answer.
func elicitComparisons() []comparison {
	const about = "elicit, a question that was answered in an earlier round"
	return []comparison{
		{title: about, most: 60, contenders: []contender{answeredByHand(), {"tripseal", 0, answeredBefore()}}},
		{title: about + ", with an Enum", most: 60, contenders: []contender{answeredByHand(), {"tripseal", 0, answeredBefore(regions())}}},
	}
}

type deployment struct {
	Region   string `json:"region" jsonschema:"where to deploy"`
	Canary   bool   `json:"canary" jsonschema:"whether to deploy to one machine first"`
	Replicas int    `json:"replicas" jsonschema:"how many machines"`
}

const whereTo = "Where shall version 1.4.2 of the frontend be deployed?"

var chosen = map[string]any{"region": "eu-west", "canary": true, "replicas": 3}

func regions() elicit.FormOption { return elicit.Enum("region", "eu-west", "eu-north", "us-east") }

// answeredByHand does the least that a handler without package elicit must do. It computes a
// digest of a question whose schema it has as text, and decodes the answer without checking it.
func answeredByHand() contender {
	schema := []byte(`{"type":"object","properties":{"region":{"type":"string","description":"where to deploy","enum":["eu-west","eu-north","us-east"]},` +
		`"canary":{"type":"boolean","description":"whether to deploy to one machine first"},` +
		`"replicas":{"type":"integer","description":"how many machines"}},"required":["region","canary","replicas"]}`)
	answer, err := json.Marshal(chosen)
	check(err)
	return contender{"by hand: SHA-256 and json.Unmarshal", 0, func() {
		sha256.Sum256(append([]byte(whereTo), schema...))
		var got deployment
		check(json.Unmarshal(answer, &got))
		if !got.Canary {
			panic("not the answer")
		}
	}}
}

// answeredBefore returns a function that asks a question as a handler does in the last of
// three rounds. The question was answered in the first round.
func answeredBefore(options ...elicit.FormOption) func() {
	next := thirdRound(options...)
	ask, asked := next(), 0
	return func() {
		if asked++; asked == 900 { // below the limit: one run may ask at most 1000 times under one key
			ask, asked = next(), 0
		}
		got, err := elicit.Form[deployment](ask, "where", whereTo, options...).Value()
		check(err)
		if !got.Canary {
			panic("not the answer")
		}
	}
}

// thirdRound begins a call, and sends its first two rounds. The returned function sends the third
// round, and returns the Asker of the call. The benchmark uses this Asker after the call.
func thirdRound(options ...elicit.FormOption) func() *elicit.Asker {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	protected := gosdk.Protect(server, boundary(tripseal.Ephemeral()), &gosdk.Options{Logger: quiet})
	var third *elicit.Asker
	elicit.AddTool(protected, &mcp.Tool{Name: target}, func(_ context.Context, ask *elicit.Asker, _ map[string]any) (string, error) {
		if _, err := elicit.Form[deployment](ask, "where", whereTo, options...).Value(); err != nil {
			return "", err
		}
		_, err := elicit.Form[struct {
			Note string `json:"note,omitempty"`
		}](ask, "note", "A note?").Value()
		third = ask
		return "done", err
	})
	session := inMemory(server, mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}))
	params := &mcp.CallToolParams{Name: target, Arguments: deployArguments}
	send := func() string {
		result, err := session.CallTool(context.Background(), params)
		check(err)
		if result.IsError {
			panic("the call failed")
		}
		return result.RequestState
	}
	for _, answers := range []mcp.InputResponseMap{
		{"where": &mcp.ElicitResult{Action: "accept", Content: chosen}},
		{"note": &mcp.ElicitResult{Action: "accept"}},
	} {
		params.RequestState = send()
		params.InputResponses = answers
	}
	return func() *elicit.Asker {
		if send() != "" {
			panic("the call asks again")
		}
		return third
	}
}
