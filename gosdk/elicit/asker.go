package elicit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// Asker asks the questions of one call. It is not safe for concurrent use. A handler gets
// its Asker as a parameter, and passes it to [Form], [URL] or [Once].
type Asker struct {
	by      *gosdk.Protection // nil in a test that calls a handler directly
	passing *passage.Call     // nil if the call has not come through the middleware of this Protection
	req     mcp.Request
	name    string

	state state
	fresh mcp.InputResponseMap // the answers that came in this round

	made      map[string]made         // every question of this run, by its key
	onces     map[string]reflect.Type // the type of the value that Once keeps under each key
	questions mcp.InputRequestMap     // the questions of this round; they are sent only if asks is true
	read      map[string]bool         // true for the keys whose answers the handler has read
	after     int                     // the highest answer.Number on which the next question, or the next value of Once, may depend
	asks      bool                    // true if the handler needs an answer that has not arrived yet: the call then sends its questions
	mistake   string                  // the first mistake made by the author of the handler; "" for none
	busy      atomic.Bool             // true while Within runs
	own       bool                    // true if the handler was registered with elicit
	parts     int                     // how often this run has called Within; the n-th call is part n of the run, and all other code is part 0
	part      int                     // the number of the running call of Within; 0 if none is running
	used      map[usedKey]int         // maps each used key to the number of its part: see parts
	pended    bool                    // true if a call of Within returned a Pending
	over      bool                    // true between calls of Within and after the last one; always false if the handler was registered with elicit
	misfit    error                   // not nil if an answer does not fit its question
}

// A made holds a question of this run, and how often the run asked it.
type made struct {
	question
	times int
}

// usedKey is a key that the handler used, for a question or in a call of Once.
type usedKey struct {
	once bool // true if the key was passed to the function Once
	key  string
}

const insideWithin = " after Within returned: do it inside the function that is passed to Within"

// claimKey records that this part of the run uses a key. It returns false if another part
// has used the key already.
func (a *Asker) claimKey(key usedKey) bool {
	if before, ok := a.used[key]; ok {
		return before == a.part
	}
	if a.used == nil {
		a.used = make(map[usedKey]int)
	}
	a.used[key] = a.part
	return true
}

// maxRewordings limits how often a question may change after it was answered. The call
// fails when a question has changed maxRewordings times in a row. One change may come
// from a new release of the server. The cause of so many changes is a text that is
// different each time: it contains the current time, for example.
const maxRewordings = 3

// maxAsks limits how often one run may ask under one key. An answer does not change
// within a run, so a loop that waits for another answer would never end.
const maxAsks = 1000

// Request returns the request of this call: a *mcp.CallToolRequest, a
// *mcp.GetPromptRequest or a *mcp.ReadResourceRequest. The state and the answers in it
// are for this package only. Use the request to read the caller, the headers or the
// progress token, for example.
func (a *Asker) Request() mcp.Request { return a.req }

// ask registers a question. It returns the recorded answer, or nil if the answer is
// pending.
func (a *Asker) ask(key string, params mcp.InputRequest) *answer {
	if a.over {
		a.recordMistake("a question was asked, or Once called," + insideWithin)
		return nil
	}
	digest, ok := digestOf(params)
	if len(key) > tripseal.MaxQuestionKey || !utf8.ValidString(key) {
		a.recordMistake("the key %s has more than %d bytes, or is not UTF-8", tripseal.PlainText(key), tripseal.MaxQuestionKey)
		return nil
	}
	if !ok {
		a.recordMistake("the question %s is nil, has a nil message, content, tool or hint, or cannot be written as JSON", tripseal.PlainText(key))
		return nil
	}
	if !a.claimKey(usedKey{key: key}) {
		a.recordMistake("two parts of the handler (calls of Within, or the handler itself) ask under the key %s, or inner middleware ran the handler twice: "+
			"use different keys; with Within, run the handler once", tripseal.PlainText(key))
		return nil
	}
	before, repeated := a.made[key]
	if repeated && before.Digest != digest {
		a.recordMistake("two different questions are asked under the key %s in one run: give each a key of its own", tripseal.PlainText(key))
		return nil
	}
	if !repeated {
		before.question = question{digest, a.after}
	}
	if before.times++; before.times > maxAsks {
		a.recordMistake("the question %s is asked more than %d times in one run, and its answer stays the same: "+
			"if an answer breaks a rule of yours, ask under another key, or return an error", tripseal.PlainText(key), maxAsks)
		return nil
	}
	a.made[key] = before
	recorded, ok := a.state.Answers[key]
	if ok && recorded.Digest == digest {
		delete(a.state.Reworded, key)
		return &recorded
	}
	if ok && !repeated {
		a.dropReworded(key)
	}
	// If the handler has tried to read an answer that has not arrived yet, this question may depend
	// on that answer. So this round does not send the question.
	if !a.asks {
		a.put(key, params)
	}
	return nil
}

// put adds a question to a.questions, and records it in a.state.Asked.
func (a *Asker) put(key string, params mcp.InputRequest) {
	if q, ok := params.(*mcp.ElicitParams); ok {
		if f, ok := q.RequestedSchema.(*form); ok {
			schema, err := f.copySchema()
			if err != nil {
				a.recordMistake("the form of the question %s cannot be copied: %v", tripseal.PlainText(key), err)
				return
			}
			q.RequestedSchema = schema
		}
	}
	a.questions[key] = params
	if a.state.Asked == nil {
		a.state.Asked = make(map[string]question)
	}
	a.state.Asked[key] = a.made[key].question
}

// dropReworded drops an answer whose question has changed since the user answered it.
func (a *Asker) dropReworded(key string) {
	_, justAnswered := a.fresh[key]
	a.drop(key)
	if !justAnswered {
		return
	}
	if a.state.Reworded == nil {
		a.state.Reworded = make(map[string]int)
	}
	a.state.Reworded[key]++
	if a.state.Reworded[key] >= maxRewordings {
		a.recordMistake("the question %s reads differently every time it is asked, so it can never be answered: "+
			"keep what changes (a time, a random number, a count) out of it, or compute it with Once", tripseal.PlainText(key))
	}
}

// checkQuestions records a mistake of the author if there are too many questions or
// none, or if a question was changed after its digest was made.
func (a *Asker) checkQuestions() {
	if len(a.questions) == 0 {
		a.recordMistake("every question of this round depends on an answer that must be given again: ask the questions in the same order in every round")
	}
	if len(a.questions) > tripseal.MaxQuestions {
		a.recordMistake("%d questions are asked in one round, more than %d", len(a.questions), tripseal.MaxQuestions)
	}
	for key, question := range a.questions {
		if digest, ok := digestOf(question); !ok || digest != a.state.Asked[key].Digest {
			a.recordMistake("the question %s was changed after it was asked: use new params for each question", tripseal.PlainText(key))
		}
	}
}

// checkRefusals records a mistake of the author if the user declined or cancelled a
// question and the handler has not read that answer. The handler may have done what the
// user refused. In a handler of elicit, a call of Within checks only the questions asked
// inside that call: the handler may read its other answers later.
func (a *Asker) checkRefusals() {
	if key, ok := a.unreadRefusal(); ok {
		a.recordMistake("%s: read it with Value or Outcome before you act, or ask it only where it is read", unread(key))
	}
}

// unreadRefusal returns the key of a refused question whose answer the handler has not
// read: the first key in sorted order.
func (a *Asker) unreadRefusal() (key string, ok bool) {
	for _, key := range slices.Sorted(maps.Keys(a.made)) {
		if a.own && a.part != 0 && a.used[usedKey{key: key}] != a.part {
			continue
		}
		if recorded, ok := a.state.Answers[key]; ok && recorded.Action != Accept && !a.read[key] {
			return key, true
		}
	}
	return "", false
}

func unread(key string) string {
	return fmt.Sprintf("the question %s was declined or cancelled, and nobody read its answer", tripseal.PlainText(key))
}

// recordMistake records a mistake made by the author of the handler. Only the first
// mistake is kept. If Within has returned already, and so cannot report the mistake,
// the whole call fails.
func (a *Asker) recordMistake(format string, args ...any) {
	mistake := fmt.Sprintf(format, args...)
	if a.mistake == "" {
		a.mistake = mistake
	}
	if a.over && a.passing.Fail() {
		a.log(a.passing, "elicit: "+mistake)
	}
}

// markPending makes the call send its questions. It returns the error for an answer
// that is not there yet.
func (a *Asker) markPending() error {
	if a.over {
		a.recordMistake("an answer was read, or NotYet called," + insideWithin)
	}
	a.asks = true
	return passage.ErrPending
}
