package elicit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
)

// Asker asks the questions of one call. A handler gets it as a parameter or with [From], and passes it to [Form], [URL]
// or [Once]. It is not safe for concurrent use, and asks nothing after the handler has returned.
type Asker struct {
	memory
	request any
	can     func() adapter.Capabilities

	came     bool  // true if the call came with a state
	progress bool  // true if an answer of this round counted, although it must be given again
	asks     bool  // true if the handler needs an answer that has not arrived yet: then the call asks
	after    int   // the highest number of an answer on which the next question or value may depend
	lost     int   // the lowest number of an answer that this run has read and asks for again; 0 if there is none
	reads    int   // how many answers this run has read
	asked    int   // how often this run has asked
	misfit   error // not nil if an answer does not fit its question
	mistake  error // why the call fails, for the log; nil if nothing is wrong
	stop     error // not nil if this Asker asks nothing, because it belongs to no call, or the call is over
}

// maxAsks limits how often one run may ask: a loop that waits for another answer would never end.
const maxAsks = 1000

// maxIdle limits how many rounds in a row may bring no answer that counts. A client that sends none, or a question that
// reads differently each time, would otherwise use up all rounds.
const maxIdle = 3

type askerKey struct{}

const (
	errNoCall = tripseal.PlainError("elicit: the handler of this call cannot ask: wrap it where it is registered, and " +
		"pass its context on")
	errOver = tripseal.PlainError("elicit: a question was asked, or its answer read, after the handler had returned")
)

// From returns the Asker of the call that the context belongs to. It never returns nil: if the handler of the call was
// not wrapped where it was registered, all questions fail. Use it in a function that does not get the Asker otherwise.
func From(ctx context.Context) *Asker {
	if a, ok := ctx.Value(askerKey{}).(*Asker); ok {
		return a
	}
	return &Asker{memory: memory{questions: map[string]*question{}}, stop: errNoCall}
}

// Request returns the request as the SDK gave it to the handler, for example to read who is calling. The state and the
// answers in it are not for handlers.
func (a *Asker) Request() any { return a.request }

// Can reports whether this client can answer questions of a kind. A call whose questions the client cannot answer fails
// with the error -32021. Use Can to do without a question.
func (a *Asker) Can(kind tripseal.Kind) bool {
	return a.can != nil && a.can().Meet(adapter.Need{Kind: kind})
}

// stopped returns why the handler can read no answer, or nil if it can.
func (a *Asker) stopped() error {
	switch {
	case a.stop != nil:
		return a.stop
	case a.misfit != nil:
		return a.misfit
	case a.mistake != nil:
		return a.pending()
	}
	return nil
}

// pending makes the call ask.
func (a *Asker) pending() error {
	if a.stop != nil {
		return a.stop
	}
	a.asks = true
	return ErrPending
}

// fail records why the call fails. Only the first reason counts. The text is for the log.
func (a *Asker) fail(format string, args ...any) {
	if a.mistake == nil {
		a.mistake = tripseal.PlainError(fmt.Sprintf(format, args...))
	}
}

// ask asks a question. It returns the recorded answer, or nil if the answer is pending.
func (a *Asker) ask(asked *Question) *question {
	if a.stop != nil {
		return nil
	}
	key := asked.Key
	if len(key) > tripseal.MaxQuestionKey || !utf8.ValidString(key) {
		a.fail("the key %s has more than %d bytes, or is not UTF-8", tripseal.PlainText(key), tripseal.MaxQuestionKey)
		return nil
	}
	if a.asked++; a.asked > maxAsks {
		a.fail("more than %d questions are asked in one run; an answer stays the same however often it is asked for", maxAsks)
		return nil
	}
	q, words := a.questions[key], asked.wording()
	if q == nil {
		q = new(question)
		a.questions[key] = q
	}
	repeated := q.made != ""
	if repeated && q.made != words {
		a.fail("two different questions are asked under the key %s in one run", tripseal.PlainText(key))
		return nil
	}
	if !repeated {
		q.made, q.place = words, a.after
	}
	if q.action != "" && q.to == words {
		return q
	}
	if q.action != "" && q.to != "" {
		a.drop(key)
	}
	a.send(q, asked)
	return nil
}

// send sends a question with the others of this round, unless it may depend on an answer that has not arrived.
func (a *Asker) send(q *question, asked *Question) {
	if !a.waits() {
		q.toSend = asked
	}
}

// waits reports whether the next question or value may depend on an answer that has not arrived.
func (a *Asker) waits() bool { return a.asks || a.lost != 0 && a.after >= a.lost }

// toSend returns the questions of this round.
func (a *Asker) toSend() map[string]Question {
	list := make(map[string]Question)
	for key, q := range a.questions {
		if q.toSend != nil {
			list[key], q.asked, q.askedAfter = *q.toSend, q.made, q.place
		}
	}
	if len(list) == 0 {
		a.fail("every question of this round depends on an answer that must be given again: " +
			"ask in the same order in every round")
	}
	return list
}

// checkProgress counts the rounds that brought no answer that counts.
func (a *Asker) checkProgress() {
	for _, q := range a.questions {
		a.progress = a.progress || q.fresh
	}
	if !a.came || a.progress {
		a.idle = 0
		return
	}
	if a.idle++; a.idle > maxIdle {
		a.fail("more than %d rounds in a row brought no answer that counts: the client sends none, or a question "+
			"reads differently every time (compute what changes with Once)", maxIdle)
	}
}

// checkRefusals makes the call fail if the handler has not read a refusal: it may have done what the user refused.
func (a *Asker) checkRefusals() {
	for _, key := range slices.Sorted(maps.Keys(a.questions)) {
		q := a.questions[key]
		if q.made != "" && q.action != "" && q.action != Accept && q.read == 0 {
			a.fail("the question %s was declined or cancelled, and nobody read its answer: read it before you act, "+
				"or ask it only where it is read", tripseal.PlainText(key))
		}
	}
}
