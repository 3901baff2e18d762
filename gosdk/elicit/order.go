package elicit

import (
	"maps"
	"slices"

	"github.com/tripseal/tripseal"
)

// recordRead is called when the handler reads an answer. It gives the answer the next number,
// unless the answer already has one. It also raises a.after to this number, unless a.after is
// higher already. The handler's later questions and values get a copy of a.after in question.After
// or kept.After, because they may depend on the answer.
func (a *Asker) recordRead(key string) {
	a.read[key] = true
	recorded := a.state.Answers[key]
	if recorded.Number == 0 {
		a.state.Numbers++
		recorded.Number = a.state.Numbers
		a.state.Answers[key] = recorded
	}
	a.after = max(a.after, recorded.Number)
}

// drop forgets an answer whose question must be asked again. It also forgets all answers
// to questions that the handler asked after it had read this answer. Those answers may be
// wrong if the user now answers differently. If Once computed a value after the answer
// was read, the call fails, because the value must be neither used nor computed again.
func (a *Asker) drop(key string) {
	number := a.state.Answers[key].Number
	a.forget(key)
	if number == 0 {
		return // the answer was never read, so nothing depends on it
	}
	for later, recorded := range a.state.Answers {
		if recorded.After >= number {
			if a.read[later] && !a.read[key] {
				// This run has read an answer that is now forgotten. What it asks or computes from
				// now on may depend on that answer.
				a.recordMistake("the question %s must be asked again, but this round has already read a later answer, to the question %s: "+
					"ask the questions in the same order in every round", tripseal.PlainText(key), tripseal.PlainText(later))
			}
			a.forget(later)
		}
	}
	for later, asked := range a.state.Asked {
		if asked.After >= number {
			delete(a.state.Asked, later)
			delete(a.questions, later)
		}
	}
	for _, later := range slices.Sorted(maps.Keys(a.state.Kept)) {
		if a.state.Kept[later].After >= number {
			a.recordMistake("the question %s must be asked again, but Once computed the value %s after its answer was read, and computes no value twice: "+
				"ask with the same words in every round, or call Once before you read the answer", tripseal.PlainText(key), tripseal.PlainText(later))
		}
	}
}

// forget removes an answer. If the answer was a refusal, its action stays until there is
// another answer, so that checkRefusals finds the refusal. Its digest is removed, so the
// refusal no longer counts as an answer to any question.
func (a *Asker) forget(key string) {
	before := a.state.Answers[key]
	delete(a.fresh, key)
	delete(a.state.Answers, key)
	if before.Action != Accept {
		a.state.Answers[key] = answer{Action: before.Action}
	}
}
