package elicit

import (
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
)

// Action is what a user did with a question.
type Action string

const (
	Accept  Action = "accept"
	Decline Action = "decline" // the user said no
	Cancel  Action = "cancel"  // the user gave no answer
)

func (a Action) valid() bool { return a == Accept || a == Decline || a == Cancel }

// errPending is returned when a pending answer is read. Whatever the handler does with
// this error, the call asks.
var errPending = errors.New("elicit: not answered yet")

// RefusedError means that the user declined or cancelled a question. Its text names
// the question. Returned by a tool it becomes a tool error; returned by a prompt or
// a resource, a JSON-RPC error with the code -32602.
type RefusedError struct {
	Key    string
	Action Action
}

func (e *RefusedError) Error() string {
	if e.Action == Cancel {
		return fmt.Sprintf("the question %s was cancelled", mcpseal.PlainText(e.Key))
	}
	return fmt.Sprintf("the question %s was declined", mcpseal.PlainText(e.Key))
}

// MisfitError means that an accepted answer does not fit what was asked. The call
// fails, with the same kinds of errors as for a [RefusedError]. The text of the error
// repeats nothing of the answer.
type MisfitError struct{ Key string }

func (e *MisfitError) Error() string {
	return fmt.Sprintf("the answer to the question %s does not fit what was asked", mcpseal.PlainText(e.Key))
}

// Answer is the answer to a question, or pending. Read it with Value or Outcome:
// questions go out only when a pending answer is read. If the user declined or
// cancelled a question of the last run, and the handler completes without having read
// that answer, the call fails.
type Answer[T any] struct {
	ask      *Asker
	key      string
	question mcp.InputRequest
	digest   string
	recorded *answer // nil while the answer is pending
	value    T       // zero unless the answer was accepted
}

// newAnswer asks a question. The function read decodes an accepted answer. If the
// answer came in this round, the state keeps only the bytes that read returns as kept.
func newAnswer[T any](ask *Asker, key string, question mcp.InputRequest, read func(content []byte) (value T, kept []byte, err error)) *Answer[T] {
	a := &Answer[T]{ask: ask, key: key, question: question}
	a.recorded = ask.ask(key, question)
	a.digest = ask.digests[key]
	if a.recorded == nil || a.recorded.Action != Accept {
		return a
	}
	value, kept, err := read(a.recorded.Content)
	_, fresh := ask.fresh[key]
	switch {
	case err == nil:
		a.value = value
		if fresh {
			a.recorded.Content = kept
			ask.state.Answers[key] = *a.recorded
		}
	case fresh: // the client sent a wrong answer, so the call fails
		ask.misfit = &MisfitError{key}
	default: // the answer could be read in an earlier round, but not now: ask again
		delete(ask.state.Answers, key)
		a.recorded = nil
		if !ask.asks {
			ask.put(key, a.digest, question)
		}
	}
	return a
}

// Value returns the accepted answer. If it fails, return its error: there is no
// answer yet, or the error is a *[RefusedError] or a *[MisfitError].
func (a *Answer[T]) Value() (value T, err error) {
	action, value, err := a.Outcome()
	if err == nil && action != Accept {
		err = &RefusedError{a.key, action}
	}
	return value, err
}

// Outcome returns what the user did, and the answer if they accepted. If it fails,
// return its error: there is no answer yet, or the error is a *[MisfitError].
func (a *Answer[T]) Outcome() (action Action, value T, err error) {
	if a.ask.mistake != "" {
		return "", value, errPending
	}
	if a.ask.misfit != nil {
		return "", value, a.ask.misfit // another answer does not fit, so the call fails and the handler must not go on
	}
	if a.recorded == nil {
		a.ask.asks = true
		return "", value, errPending
	}
	a.ask.read[a.key] = true
	return a.recorded.Action, a.value, nil
}

// again drops the answer and asks the same question once more.
func (a *Answer[T]) again() error {
	if before, ok := a.ask.state.Answers[a.key]; ok && before.Action != Accept && !a.ask.read[a.key] {
		a.ask.state.Answers[a.key] = answer{Action: before.Action} // for no question, but checkRefusals finds it
	} else {
		delete(a.ask.state.Answers, a.key)
	}
	a.recorded = nil
	if a.question != nil {
		a.ask.put(a.key, a.digest, a.question)
	}
	a.ask.asks = true
	return errPending
}
