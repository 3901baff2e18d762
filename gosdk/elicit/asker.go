package elicit

import (
	"crypto/rand"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// Asker asks the questions of one call. It is not safe for concurrent use.
type Asker struct {
	by      *gosdk.Protection // nil in a test that calls a handler directly
	passing *passage.Call     // nil if the call has not come through the middleware of this Protection
	req     mcp.Request
	name    string

	state state
	fresh mcp.InputResponseMap // the answers that came in this round

	digests   map[string]string       // the digest of every question of this run, by its key
	onces     map[string]reflect.Type // the type of the value that Once keeps under each key
	questions mcp.InputRequestMap     // the questions that go out if the call asks
	read      map[string]bool         // true for the keys whose answers the handler has read
	asks      bool                    // true if a pending answer was read, so that the call asks
	mistake   string                  // the author's first mistake; "" for none
	busy      atomic.Bool             // true while Within runs
	part      int                     // the number of the call of Within that runs; 0 if none does
	misfit    error                   // not nil if an answer does not fit its question
}

// maxRewordings limits how often in a row a question may change after it was answered:
// the change with this number fails the call. One change may come from a new release.
// This many mean that the text changes by itself: it has a time in it, for example.
const maxRewordings = 3

// Request returns the request: a *mcp.CallToolRequest, a *mcp.GetPromptRequest or
// a *mcp.ReadResourceRequest. Its state and answers belong to this package.
func (a *Asker) Request() mcp.Request { return a.req }

// ask registers a question. It returns the recorded answer, or nil if that is pending.
func (a *Asker) ask(key string, question mcp.InputRequest) *answer {
	digest, ok := digestOf(question)
	if len(key) > mcpseal.MaxQuestionKey || !utf8.ValidString(key) {
		a.wrong("the key %s has more than %d bytes, or is not UTF-8", mcpseal.PlainText(key), mcpseal.MaxQuestionKey)
		return nil
	}
	if !ok {
		a.wrong("the question %s is nil, has a nil message, content, tool or hint, or cannot be written as JSON", mcpseal.PlainText(key))
		return nil
	}
	if a.passing != nil && !a.passing.AsksIn(a.part, key) {
		a.wrong("two calls of Within, or one and the handler itself, ask under the key %s, or inner middleware ran the handler twice: "+
			"use different keys; with Within, run the handler once", mcpseal.PlainText(key))
		return nil
	}
	before, repeated := a.digests[key]
	if repeated && before != digest {
		a.wrong("two different questions are asked under the key %s in one run: give each a key of its own", mcpseal.PlainText(key))
		return nil
	}
	a.digests[key] = digest
	recorded, ok := a.state.Answers[key]
	if ok && recorded.Digest == digest {
		delete(a.state.Reworded, key)
		return &recorded
	}
	if ok && !repeated {
		a.reworded(key, recorded.Action)
	}
	// After the handler has read a pending answer, its questions may depend on that
	// answer, so they are not asked yet.
	if !a.asks {
		a.put(key, digest, question)
	}
	return nil
}

// put adds a question to those that go out if the call asks.
func (a *Asker) put(key, digest string, question mcp.InputRequest) {
	a.questions[key] = question
	if a.state.Asked == nil {
		a.state.Asked = make(map[string]string)
	}
	a.state.Asked[key] = digest
}

// reworded drops the answer to a question that has changed since it was answered. A
// refusal stays until there is another answer, so that checkRefusals finds it.
func (a *Asker) reworded(key string, action Action) {
	if action == Accept {
		delete(a.state.Answers, key)
	}
	if _, justAnswered := a.fresh[key]; !justAnswered {
		return
	}
	if a.state.Reworded == nil {
		a.state.Reworded = make(map[string]int)
	}
	a.state.Reworded[key]++
	if a.state.Reworded[key] >= maxRewordings {
		a.wrong("the question %s reads differently every time it is asked, so it can never be answered: "+
			"keep what changes (a time, a random number, a count) out of it, or compute it with Once", mcpseal.PlainText(key))
	}
}

// checkQuestions notes a mistake if there are too many questions, or if one was changed
// after it was digested.
func (a *Asker) checkQuestions() {
	if len(a.questions) > mcpseal.MaxQuestions {
		a.wrong("%d questions are asked in one round, more than %d", len(a.questions), mcpseal.MaxQuestions)
	}
	for key, question := range a.questions {
		if digest, ok := digestOf(question); !ok || digest != a.state.Asked[key] {
			a.wrong("the question %s was changed after it was asked: give each question params of its own", mcpseal.PlainText(key))
		}
	}
}

// checkRefusals notes a mistake if the user declined or cancelled a question and the
// handler has not read that answer: the handler may have done what the user refused.
func (a *Asker) checkRefusals() {
	for _, key := range slices.Sorted(maps.Keys(a.digests)) {
		if recorded, ok := a.state.Answers[key]; ok && recorded.Action != Accept && !a.read[key] {
			a.wrong("the question %s was declined or cancelled, and nobody read its answer: read it with Value or Outcome before you act, "+
				"or ask it only where it is read", mcpseal.PlainText(key))
		}
	}
}

// wrong notes a mistake of the author. Only the first one is kept.
func (a *Asker) wrong(format string, args ...any) {
	if a.mistake == "" {
		a.mistake = fmt.Sprintf(format, args...)
	}
}

// elicitationID returns the id of a question about a URL, the same in every round.
func (a *Asker) elicitationID(key string) string {
	if a.state.URLs == nil {
		a.state.URLs = make(map[string]string)
	}
	if a.state.URLs[key] == "" {
		a.state.URLs[key] = rand.Text()
	}
	return a.state.URLs[key]
}
