package elicit

import (
	"maps"
	"slices"

	"github.com/tripseal/tripseal"
)

// noteRead is called when the handler reads an answer. The answer gets the next number, unless it has one. All later
// questions and values of the run get at least this number in their field after, because they may depend on the answer.
func (a *Asker) noteRead(q *question) {
	if q.read == 0 {
		a.reads++
		q.read = a.reads
	}
	if q.number == 0 {
		a.numbers++
		q.number = a.numbers
	}
	a.after = max(a.after, q.number)
}

// drop forgets an answer whose question must be asked again. It also forgets the answers to all questions that the
// handler asked after it had read this one: they may be wrong if the user now answers differently. If [Once] computed a
// value after that, the call fails, because the value must be neither used nor computed again.
func (a *Asker) drop(key string) {
	dropped := a.questions[key]
	number := dropped.number
	dropped.forget()
	if number == 0 {
		return // the answer was never read, so nothing depends on it
	}
	for _, later := range slices.Sorted(maps.Keys(a.questions)) {
		q := a.questions[later]
		if q.action != "" && q.to != "" && q.after >= number {
			if q.read != 0 && (dropped.read == 0 || q.read < dropped.read) {
				// What this run has asked or computed since may depend on an answer that counts no more.
				a.fail("the question %s must be asked again, but this round has already read a later answer, to the question %s: "+
					"ask in the same order in every round", tripseal.PlainText(key), tripseal.PlainText(later))
			}
			q.forget()
		}
		if q.toSend != nil && q.place >= number {
			q.toSend = nil
		}
	}
	for _, later := range slices.Sorted(maps.Keys(a.values)) {
		if a.values[later].after >= number {
			a.fail("the question %s must be asked again, but Once computed the value %s after its answer was read: ask "+
				"with the same words in every round, or call Once before you read the answer",
				tripseal.PlainText(key), tripseal.PlainText(later))
		}
	}
}

// forget removes an answer. A refusal is remembered until there is another answer, so that it cannot go unread; it
// answers no question any more.
func (q *question) forget() {
	before := q.action
	q.answer, q.fresh = answer{}, false
	if before != Accept {
		q.action = before
	}
}

// All runs parts that do not depend on each other, so that their questions are sent together. It returns the first
// error that is not [ErrPending]; the parts after it do not run.
func All(ask *Asker, parts ...func() error) error {
	if err := ask.stopped(); err != nil {
		return err
	}
	if ask.asks {
		return ErrPending
	}
	before, after, pending := ask.after, ask.after, false
	var failed error
	for _, part := range parts {
		ask.after, ask.asks = before, false
		err := part()
		after, pending = max(after, ask.after), pending || ask.asks
		if err != nil && !ask.asks {
			failed = err
			break
		}
	}
	ask.after, ask.asks = after, pending
	if failed == nil && pending {
		return ErrPending
	}
	return failed
}
