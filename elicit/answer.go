package elicit

import (
	"errors"
	"fmt"

	"github.com/tripseal/tripseal"
)

// Action is what a user did with a question: see [Answer.Outcome].
type Action string

const (
	Accept  Action = "accept"  // the user answered
	Decline Action = "decline" // the user said no
	Cancel  Action = "cancel"  // the user gave no answer
)

func (a Action) valid() bool { return a == Accept || a == Decline || a == Cancel }

// ErrPending means that an answer has not arrived yet. A handler returns it, or any other error: the call asks anyway.
var ErrPending error = tripseal.PlainError("elicit: the answer has not arrived yet: return this error")

// AnswerError means that a question has no answer to use: the user declined or cancelled it, or the answer does not
// fit what was asked. If a tool returns it, the client gets a tool error; if a prompt or a resource does, the JSON-RPC
// error -32602. To go on after a refusal, call [Answer.Outcome]. An answer that does not fit fails the call, whatever
// the handler returns.
type AnswerError struct {
	Key    string // the key of the question
	Action Action // Decline or Cancel; Accept if the answer does not fit
}

// Error returns a text that names the question, for the client. It repeats nothing of the answer.
func (e *AnswerError) Error() string {
	switch key := tripseal.PlainText(e.Key); e.Action {
	case Cancel:
		return fmt.Sprintf("the question %s was cancelled", key)
	case Decline:
		return fmt.Sprintf("the question %s was declined", key)
	default:
		return fmt.Sprintf("the answer to the question %s does not fit what was asked", key)
	}
}

// IsForClient reports whether an error of [Run] has a text for the client: it is, or wraps, an [*AnswerError]. A
// binding sends such an error with the code -32602 where the SDK has no tool errors.
func IsForClient(err error) bool {
	var e *AnswerError
	return errors.As(err, &e)
}

// Answer is the answer to a question. It is pending until the user has answered. The question is sent when the handler
// reads a pending answer. A refusal must be read before the handler returns a result: otherwise the call fails.
type Answer[T any] struct {
	ask      *Asker
	asked    Question
	recorded *question // nil while the answer is pending
	to       wording   // the wording of the question that was answered
	value    T         // zero unless the answer was accepted
}

// newAnswer asks a question. If the user accepted, decode reads the content. If checked is false, the content is as the
// client sent it: then decode also returns it in the spelling to keep.
func newAnswer[T any](
	ask *Asker, q Question, decode func(content string, checked bool) (value T, kept string, err error),
) *Answer[T] {
	a := &Answer[T]{ask: ask, asked: q}
	recorded := ask.ask(&a.asked)
	if recorded == nil {
		return a
	}
	a.recorded, a.to = recorded, recorded.to
	if recorded.action != Accept {
		return a
	}
	value, kept, err := decode(recorded.content, recorded.checked)
	switch {
	case err == nil:
		a.value = value
		if !recorded.checked {
			recorded.content, recorded.checked = kept, true
		}
	case recorded.fresh: // the client sent a wrong answer, so the call fails
		ask.misfit = &AnswerError{q.Key, Accept}
	default: // an earlier round took the answer, so ask again
		a.recorded = nil
		ask.drop(q.Key)
		ask.send(recorded, &a.asked)
	}
	return a
}

// Value returns the accepted answer. The handler returns its error: there is no answer yet, or the error is a
// [*AnswerError].
func (a *Answer[T]) Value() (value T, err error) {
	action, value, err := a.Outcome()
	if err == nil && action != Accept {
		err = &AnswerError{a.asked.Key, action}
	}
	return value, err
}

// Outcome returns what the user did, and the answer if the user accepted. Use it if the handler goes on after a
// refusal. The handler returns its error: there is no answer yet, or the error is an [*AnswerError].
func (a *Answer[T]) Outcome() (action Action, value T, err error) {
	if err := a.ask.stopped(); err != nil {
		return "", value, err
	}
	if !a.hasArrived() {
		return "", value, a.ask.pending()
	}
	a.ask.noteRead(a.recorded)
	return a.recorded.action, a.value, nil
}

// hasArrived reports whether the answer has arrived, and was not dropped since.
func (a *Answer[T]) hasArrived() bool { return a.recorded != nil && a.recorded.to == a.to }

// NotYet drops the answer and asks the same question again, and returns the error to return. Call it if the user agreed
// to open a URL, but has not finished there. The answers to questions that the handler asked after it had read this one
// are dropped too; if [Once] computed a value after that, the call fails.
func (a *Answer[T]) NotYet() error {
	if a.hasArrived() && a.ask.stopped() == nil {
		a.ask.progress = a.ask.progress || a.recorded.fresh
		read, number := a.recorded.read, a.recorded.number
		a.ask.drop(a.asked.Key)
		a.ask.send(a.recorded, &a.asked)
		if read != 0 && (a.ask.lost == 0 || number < a.ask.lost) {
			a.ask.lost = number
		}
	}
	return a.ask.pending()
}
