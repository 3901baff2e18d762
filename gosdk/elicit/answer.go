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
	Decline Action = "decline" // said no
	Cancel  Action = "cancel"  // said nothing
)

func (a Action) valid() bool { return a == Accept || a == Decline || a == Cancel }

// errPending is what reading a pending answer returns. What the handler makes of
// it does not matter: the call asks.
var errPending = errors.New("elicit: not answered yet")

// RefusedError is a question that the user declined or cancelled. Its text names
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

// MisfitError is an accepted answer that does not fit what was asked. It fails
// the call, with the same kinds of errors as a [RefusedError]. Its text repeats
// nothing of the answer.
type MisfitError struct{ Key string }

func (e *MisfitError) Error() string {
	return fmt.Sprintf("the answer to the question %s does not fit what was asked", mcpseal.PlainText(e.Key))
}

// Answer is a question that was asked, answered or not. Read it with Value or
// Outcome: a question goes out only with one that is read, and a call fails that
// completes although a question of its last run was declined or cancelled and nobody
// read that.
type Answer[T any] struct {
	ask      *Asker
	key      string
	question mcp.InputRequest
	digest   string
	recorded *answer // nil while it is pending
	value    T       // of an accepted one
}

// newAnswer asks a question whose accepted answer read reads. What read returns
// beside the value is all that is kept of a fresh answer.
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
	case fresh: // the client's fault, which fails the call
		ask.misfit = &MisfitError{key}
	default: // it was good once, so the question is new
		delete(ask.state.Answers, key)
		a.recorded = nil
		if !ask.asks {
			ask.put(key, a.digest, question)
		}
	}
	return a
}

// Value returns the accepted answer. The error says that there is none yet, or
// is a *[RefusedError] or a *[MisfitError]; return it.
func (a *Answer[T]) Value() (value T, err error) {
	action, value, err := a.Outcome()
	if err == nil && action != Accept {
		err = &RefusedError{a.key, action}
	}
	return value, err
}

// Outcome returns what the user did, and the answer if they accepted. The error
// says that there is none yet, or is a *[MisfitError]; return it.
func (a *Answer[T]) Outcome() (action Action, value T, err error) {
	if a.ask.mistake != "" {
		return "", value, errPending
	}
	if a.ask.misfit != nil {
		return "", value, a.ask.misfit // the call has failed: nothing may be done any more
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
	delete(a.ask.state.Answers, a.key)
	a.recorded = nil
	if a.question != nil {
		a.ask.put(a.key, a.digest, a.question)
	}
	a.ask.asks = true
	return errPending
}
