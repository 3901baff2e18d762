package elicit

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/gosdk/internal/passage"
)

// Asker asks the questions of one call. It is not safe for concurrent use.
type Asker struct {
	p       *gosdk.Protected
	passing *passage.Call // nil if the call has not passed p
	req     mcp.Request
	name    string

	state state
	fresh mcp.InputResponseMap // answers of this round

	digests   map[string]string // of every question of this run
	onces     map[string]reflect.Type
	questions mcp.InputRequestMap // to go out if the call asks
	read      map[string]bool     // answers that the handler has looked at
	asks      bool                // a pending answer was read
	mistake   string              // of the author
	misfit    error               // an answer that does not fit its question
}

// maxRewordings is how often in a row a question may change after it was answered.
// Once may be a new release; this often means a clock in its text.
const maxRewordings = 3

// Request returns the request: a *mcp.CallToolRequest, a *mcp.GetPromptRequest or
// a *mcp.ReadResourceRequest. Its state and answers belong to this package.
func (a *Asker) Request() mcp.Request { return a.req }

// ask registers a question. It returns the answer that it has, or nil.
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
	if before, ok := a.digests[key]; ok && before != digest {
		a.wrong("two different questions are asked under the key %s in one run: give each a key of its own", mcpseal.PlainText(key))
		return nil
	}
	a.digests[key] = digest
	recorded, ok := a.state.Answers[key]
	if ok && recorded.Digest == digest {
		delete(a.state.Reworded, key)
		return &recorded
	}
	if ok {
		a.reworded(key)
	}
	if !a.asks { // what is asked after a pending answer was read may depend on it
		a.put(key, digest, question)
	}
	return nil
}

// put adds a question to the next round, if there is one.
func (a *Asker) put(key, digest string, question mcp.InputRequest) {
	a.questions[key] = question
	if a.state.Asked == nil {
		a.state.Asked = make(map[string]string)
	}
	a.state.Asked[key] = digest
}

// reworded drops an answer whose question has changed since.
func (a *Asker) reworded(key string) {
	delete(a.state.Answers, key)
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

// checkQuestions makes sure that the questions that go out are those that were digested.
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

// checkRefusals makes sure that a handler which completes has read what the user
// refused: otherwise it may have done what was refused.
func (a *Asker) checkRefusals() {
	for _, key := range slices.Sorted(maps.Keys(a.digests)) {
		if recorded, ok := a.state.Answers[key]; ok && recorded.Action != Accept && !a.read[key] {
			a.wrong("the question %s was declined or cancelled, and nobody read its answer: read it with Value or Outcome before you act, "+
				"or ask it only where it is read", mcpseal.PlainText(key))
		}
	}
}

// wrong notes a mistake of the author. The first one counts.
func (a *Asker) wrong(format string, args ...any) {
	if a.mistake == "" {
		a.mistake = fmt.Sprintf(format, args...)
	}
}

// Once computes a value in the first round that gets here, and returns the same value
// in later rounds: a random id, a price, a time. It keeps the value in the sealed
// state, so it computes it again if the call never asked afterwards.
//
// A value must come back from JSON as it was written; otherwise the call fails, as
// an author's mistake. A call also fails if it began with a release that kept another
// type under the key, even if only a field was added or moved: nothing is computed
// twice, or read with something missing. If the type of a value changes, give it
// another key, and it is computed anew. Or add fields with omitempty: they are empty
// in calls that began before.
func Once[T any](ask *Asker, key string, compute func() (T, error)) (T, error) {
	if !utf8.ValidString(key) {
		ask.wrong("the key %s of a Once is not UTF-8, so its value would not come back", mcpseal.PlainText(key))
		return *new(T), errPending
	}
	of := reflect.TypeFor[T]()
	if before, ok := ask.onces[key]; ok && before != of {
		ask.wrong("two values of different types are computed by Once under the key %s: give each a key of its own", mcpseal.PlainText(key))
		return *new(T), errPending
	}
	ask.onces[key] = of
	if text, ok := ask.state.Kept[key]; ok {
		kept, ok := reread[T](string(text))
		if !ok {
			ask.wrong("what Once keeps under the key %s was written by another release and is not a whole %v: it is not computed again, so the call fails; "+
				"give a value whose type changes another key", mcpseal.PlainText(key), of)
			return kept, errPending
		}
		return kept, nil
	}
	value, err := compute()
	if err != nil {
		return value, err
	}
	// Return what later rounds will get: a time, for example, loses its monotonic
	// part in JSON.
	text, err := mcpseal.EncodeState(value)
	same, ok := reread[T](text)
	if err != nil || !ok {
		ask.wrong("what Once computes under the key %s, a %v, cannot be written as JSON and read again as it was", mcpseal.PlainText(key), of)
		return same, errPending
	}
	if ask.state.Kept == nil {
		ask.state.Kept = make(map[string]json.RawMessage)
	}
	ask.state.Kept[key] = json.RawMessage(text)
	return same, nil
}

// reread reads what Once wrote. It is ok only if the value encodes to the same text
// again: then nothing was lost or added.
func reread[T any](text string) (value T, ok bool) {
	if json.Unmarshal([]byte(text), &value) == nil {
		if again, err := mcpseal.EncodeState(value); err == nil && again == text {
			return value, true
		}
	}
	return *new(T), false
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
