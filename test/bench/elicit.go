package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/elicit"
)

// elicitComparisons measure a question that the user answered in an earlier round: the
// handler asks it again in every round, and gets the recorded answer.
func elicitComparisons() []comparison {
	const about = "elicit, a question that was answered in an earlier round"
	limits := []limit{{"tripseal", moreAllocations, 60}}
	return []comparison{
		{title: about, limits: limits, contenders: []contender{answeredByHand(), {"tripseal", 0, answeredBefore()}}},
		{title: about + ", with an Enum", limits: limits, contenders: []contender{answeredByHand(), {"tripseal", 0, answeredBefore(regions())}}},
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
	form := func(ask *elicit.Asker, key string) error {
		got, err := elicit.Form[deployment](ask, key, whereTo, options...).Value()
		if err == nil && !got.Canary {
			panic("not the answer")
		}
		return err
	}
	i := newInterview(form, chosen)
	last, asked := i.call(2), 0
	return func() {
		if asked++; asked == 900 { // below the limit: one run may ask at most 1000 times under one key
			i.send(last)
			asked = 0
		}
		check(form(i.ask, question+"0"))
	}
}

// interview is a server with one tool, and its client. The tool asks a question in each round. The
// argument of a call is how many questions it asks.
type interview struct {
	session *mcp.ClientSession
	answer  *mcp.ElicitResult // the answer to every question
	ask     *elicit.Asker     // what the handler got in the last round
}

type interviewArguments struct {
	Rounds int `json:"rounds"`
}

func newInterview(form func(ask *elicit.Asker, key string) error, answer map[string]any) *interview {
	quiet := slog.New(slog.DiscardHandler)
	b, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: audience, Logger: quiet, MaxRounds: tripseal.NoLimit, MaxState: 1 << 20,
	})
	check(err)
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	protected := gosdk.Protect(server, b, &gosdk.Options{Logger: quiet})
	i := &interview{answer: &mcp.ElicitResult{Action: "accept", Content: answer}}
	elicit.AddTool(protected, &mcp.Tool{Name: target}, func(_ context.Context, ask *elicit.Asker, in interviewArguments) (string, error) {
		i.ask = ask
		for n := range in.Rounds {
			if err := form(ask, fmt.Sprint(question, n)); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	i.session = inMemory(server, sdkClient(false))
	return i
}

// call calls the tool, and answers its questions until the call is complete. It returns the last
// request, which has the answer to the last question.
func (i *interview) call(rounds int) (last *mcp.CallToolParams) {
	last = &mcp.CallToolParams{Name: target, Arguments: interviewArguments{rounds}}
	for range rounds {
		asking := i.send(last)
		last = &mcp.CallToolParams{
			Name: target, Arguments: last.Arguments, RequestState: asking.RequestState, InputResponses: mcp.InputResponseMap{},
		}
		for key := range asking.InputRequests {
			last.InputResponses[key] = i.answer
		}
	}
	if i.send(last).NeedsInput() {
		panic("the call asks more than it should")
	}
	return last
}

func (i *interview) send(params *mcp.CallToolParams) *mcp.CallToolResult {
	result, err := i.session.CallTool(context.Background(), params)
	check(err)
	if result.IsError {
		panic("the call failed")
	}
	return result
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
