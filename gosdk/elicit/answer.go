package elicit

import (
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// Action is what a user did with a question. [Answer.Outcome] returns an Action, for
// handlers that treat a refusal as an answer.
type Action string

const (
	Accept  Action = "accept"  // the user answered
	Decline Action = "decline" // the user said no
	Cancel  Action = "cancel"  // the user gave no answer
)

func (a Action) valid() bool { return a == Accept || a == Decline || a == Cancel }

// RefusedError means that the user declined or cancelled a question. Its text names the
// question. If a tool returns it, the client gets a tool error. If a prompt or a
// resource returns it, the client gets a JSON-RPC error with the code -32602. To go on
// after a refusal, call [Answer.Outcome], or use errors.As to find a RefusedError in the
// error of [Within].
type RefusedError struct {
	Key    string // the key of the question
	Action Action // Decline or Cancel
}

// Error returns a text that names the question, for the client.
func (e *RefusedError) Error() string {
	if e.Action == Cancel {
		return fmt.Sprintf("the question %s was cancelled", tripseal.PlainText(e.Key))
	}
	return fmt.Sprintf("the question %s was declined", tripseal.PlainText(e.Key))
}

// MisfitError means that an accepted answer does not fit what was asked. The call then
// fails. The client gets a tool error from a tool, or a JSON-RPC error with the code
// -32602 from a prompt or a resource. The error's text repeats nothing of the answer. A
// handler need not look for a MisfitError, because it must return every error of Outcome.
type MisfitError struct {
	Key string // the key of the question
}

// Error returns a text that names the question, for the client.
func (e *MisfitError) Error() string {
	return fmt.Sprintf("the answer to the question %s does not fit what was asked", tripseal.PlainText(e.Key))
}

// Answer is the answer to a question. It is pending until the user has answered. Read it
// with Value or Outcome: questions are sent to the client only when the handler reads a
// pending answer. If the user declined or cancelled a question that the handler asks in
// its last run, the handler must read the answer. Otherwise the call fails.
type Answer[T any] struct {
	ask      *Asker
	key      string
	question mcp.InputRequest
	recorded *answer // nil while the answer is pending
	value    T       // zero unless the answer was accepted
}

// newAnswer asks a question. If the user accepted, newAnswer passes the content of the answer to
// decode, with true if the answer came in this round. In that case, the newContent that decode
// returns replaces the content in the state.
func newAnswer[T any](ask *Asker, key string, question mcp.InputRequest, decode func(content []byte, fresh bool) (value T, newContent []byte, err error)) *Answer[T] {
	a := &Answer[T]{ask: ask, key: key, question: question}
	a.recorded = ask.ask(key, question)
	if a.recorded == nil || a.recorded.Action != Accept {
		return a
	}
	_, fresh := ask.fresh[key]
	value, newContent, err := decode(a.recorded.Content, fresh)
	switch {
	case err == nil:
		a.value = value
		if fresh {
			a.recorded.Content = newContent
			ask.state.Answers[key] = *a.recorded
		}
	case fresh: // the client sent a wrong answer, so the call fails
		ask.misfit = &MisfitError{key}
	default: // the answer could be read in an earlier round, but not now: ask again
		ask.drop(key)
		a.recorded = nil
		if !ask.asks {
			ask.put(key, question)
		}
	}
	return a
}

// Value returns the accepted answer. If Value fails, the handler must return the error:
// there is no answer yet, or the error is a *[RefusedError] or a *[MisfitError]. Use
// Value if a refusal ends the call.
func (a *Answer[T]) Value() (value T, err error) {
	action, value, err := a.Outcome()
	if err == nil && action != Accept {
		err = &RefusedError{a.key, action}
	}
	return value, err
}

// Outcome returns what the user did, and the answer if the user accepted. If Outcome
// fails, the handler must return the error: there is no answer yet, or the error is a
// *[MisfitError]. Use Outcome if the handler goes on after a refusal.
func (a *Answer[T]) Outcome() (action Action, value T, err error) {
	if a.ask.mistake != "" {
		return "", value, a.ask.markPending()
	}
	if a.ask.misfit != nil {
		return "", value, a.ask.misfit // an answer of this run does not fit its question, so the call fails and the handler must not go on
	}
	if !a.hasArrived() {
		return "", value, a.ask.markPending()
	}
	a.ask.recordRead(a.key)
	return a.recorded.Action, a.value, nil
}

// hasArrived reports whether the answer has arrived, and has not been dropped since.
func (a *Answer[T]) hasArrived() bool {
	return a.recorded != nil && a.ask.state.Answers[a.key].Digest == a.recorded.Digest
}

// askAgain drops the answer and asks the same question once more.
func (a *Answer[T]) askAgain() error {
	if a.hasArrived() {
		a.ask.drop(a.key)
		a.ask.put(a.key, a.question)
	}
	return a.ask.markPending()
}
