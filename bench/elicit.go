package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/gosdk/elicit"
)

// elicitComparisons measure a question that the user answered in an earlier round: the
// handler asks it again in every round, and gets the recorded answer.
func elicitComparisons() []comparison {
	const about = "elicit, a question that was answered in an earlier round"
	return []comparison{
		{title: about, most: 60, contenders: []contender{answeredByHand(), {"mcpseal", 0, answeredBefore()}}},
		{title: about + ", with an Enum", most: 60, contenders: []contender{answeredByHand(), {"mcpseal", 0, answeredBefore(regions())}}},
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

// answeredByHand does what a handler without elicit would do at least: it computes a digest
// of a question whose schema it has as text, and decodes the answer without checking it.
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
	ask := thirdRound(options...)
	return func() {
		got, err := elicit.Form[deployment](ask, "where", whereTo, options...).Value()
		check(err)
		if !got.Canary {
			panic("not the answer")
		}
	}
}

// thirdRound returns the Asker of a call's third round, to use it after the call.
func thirdRound(options ...elicit.FormOption) (third *elicit.Asker) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	protected := gosdk.Protect(server, boundary(mcpseal.Ephemeral()), &gosdk.Options{Logger: quiet})
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
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if req.Params.Message == whereTo {
				return &mcp.ElicitResult{Action: "accept", Content: chosen}, nil
			}
			return &mcp.ElicitResult{Action: "accept"}, nil
		},
	})
	result, err := inMemory(server, client).CallTool(context.Background(), &mcp.CallToolParams{Name: target, Arguments: deployArguments})
	check(err)
	if result.IsError {
		panic("the call failed")
	}
	return third
}
