package elicit

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/internal/whose"
)

// Arrival is a request that came to a protected server. Whatever opens the request's token, a middleware, a door, or a
// handler that opens and seals by itself, makes an Arrival of it, and passes it to [Arrive].
type Arrival struct {
	Method, Target string                     // as in [tripseal.Request]
	State          string                     // what [tripseal.Round.Elicit] returned
	Answers        map[string]json.RawMessage // the client's answers by key, unchecked; needed only if there is a State
	Logger         *slog.Logger               // gets a record for each call that fails; nil means slog.Default
}

// ArrivalKey is the key of a call's [*Arrival] in its context. Use it in a type of context that has the Arrival itself.
type ArrivalKey struct{}

// Arrive returns a context for the handler of a request. Call it for every request whose result will be sealed: also
// for a first one, because a handler asks only if the context says that its questions will be sealed.
func Arrive(ctx context.Context, a *Arrival) context.Context {
	return context.WithValue(ctx, ArrivalKey{}, a)
}

// Call is what a binding knows of the call of a handler.
type Call struct {
	Method, Target string
	Request        any                         // what [Asker.Request] returns
	Meta           map[string]any              // the call's _meta
	Can            func() adapter.Capabilities // what the client has declared

	// State is the state in the SDK's request, and Answers returns the answers beside it. They count only if this
	// process has written the state: if the SDK itself asks an older client, and runs the handler again.
	State   string
	Answers func() map[string]json.RawMessage
}

// Pending has what a call asks in place of its result.
type Pending struct {
	State     string              // for the result's requestState; signed, so that the boundary knows whose state it is
	Questions map[string]Question // for the result's inputRequests, which is the JSON of this map
}

// Asked returns the questions as [tripseal.Boundary.Seal] takes them.
func (p *Pending) Asked() (list []tripseal.Question) {
	for key, q := range p.Questions {
		list = append(list, tripseal.Question{Key: key, Kind: q.Kind})
	}
	return list
}

const notArrived = "the call has not come through a middleware or door that seals, or is not for this handler: " +
	"protect the server, and pass no context of a call to another tool"

// Run calls the handler of a tool, a prompt or a resource. If the handler needs an answer, Run returns the questions to
// send. Otherwise it returns the handler's error: the handler's result counts if that is nil. If the call must fail,
// the error is a [tripseal.WireError] for an internal error, after a record in the log, or a [*AnswerError].
func Run(ctx context.Context, call Call, handler func(context.Context, *Asker) error) (*Pending, error) {
	arrival := arrivalOf(ctx, &call)
	a := &Asker{request: call.Request, can: call.Can}
	if arrival != nil {
		state, answers := arrival.State, arrival.Answers
		if own, ok := whose.Verify(call.State); ok {
			state, answers = own, call.Answers()
		}
		a.remember(state, answers)
	}
	if !a.came {
		a.memory = memory{questions: map[string]*question{}, values: map[string]*value{}}
	}
	defer func() { a.stop = errOver }()
	err := handler(context.WithValue(ctx, askerKey{}, a), a)
	if err == nil && !a.asks && a.misfit == nil {
		a.checkRefusals()
	}
	if a.mistake == nil && a.misfit != nil {
		return nil, a.misfit
	}
	if a.mistake == nil && !a.asks {
		return nil, err
	}
	var questions map[string]Question
	switch {
	case a.mistake != nil:
	case arrival == nil:
		a.fail(notArrived)
	default:
		a.checkProgress()
		questions = a.toSend()
	}
	if a.mistake != nil {
		var logger *slog.Logger
		if arrival != nil {
			logger = arrival.Logger
		}
		tripseal.Logger(logger).ErrorContext(ctx, "elicit: "+a.mistake.Error(),
			"method", call.Method, "target", tripseal.PlainText(call.Target))
		return nil, tripseal.Wire(nil)
	}
	return &Pending{whose.Sign(a.text()), questions}, nil
}

// arrivalOf returns the arrival that a call belongs to, or nil. A handler may pass its context to another tool of the
// process: that tool gets neither the state nor the answers.
func arrivalOf(ctx context.Context, call *Call) *Arrival {
	arrival, _ := ctx.Value(ArrivalKey{}).(*Arrival)
	if mark, ok := call.Meta[whose.MarkName].(string); ok {
		if marked, ok := whose.Arrivals.Load(mark); ok {
			arrival, _ = marked.(*Arrival)
		}
	}
	if arrival == nil || arrival.Method != call.Method || arrival.Target != call.Target {
		return nil
	}
	return arrival
}

// remember reads the state, and records the answers to the questions of the last round.
func (a *Asker) remember(state string, answers map[string]json.RawMessage) {
	if a.memory, a.came = readMemory(state); !a.came {
		return
	}
	for key, q := range a.questions {
		if q.asked == "" {
			continue
		}
		if action, content, ok := readAnswer(answers[key], q.asked.kind()); ok {
			q.answer = answer{to: q.asked, after: q.askedAfter, action: action, content: content}
			q.fresh = true
		}
		q.asked, q.askedAfter = "", 0
	}
}

// readAnswer reads what a client sent as the answer to a question of a kind. ok is false if it is no such answer.
func readAnswer(raw json.RawMessage, kind tripseal.Kind) (action Action, content string, ok bool) {
	var members map[string]json.RawMessage
	if len(raw) == 0 || !utf8.Valid(raw) || json.Unmarshal(raw, &members) != nil {
		return "", "", false
	}
	tells := map[tripseal.Kind]string{tripseal.KindSampling: "role", tripseal.KindRoots: "roots"}[kind]
	tells = cmp.Or(tells, "action")
	for _, name := range [...]string{"action", "role", "roots"} {
		if _, has := members[name]; has != (name == tells) {
			return "", "", false
		}
	}
	if tells != "action" {
		return Accept, string(raw), !hasNull(string(raw)) // decoded, a null could be a nil that the handler does not expect
	}
	text, _ := textOf(members["action"])
	if action = Action(text); action == Accept && kind == tripseal.KindForm {
		content = string(members["content"])
	}
	return action, content, action.valid()
}

// hasNull reports whether a JSON text has a null in it, at any depth.
func hasNull(text string) bool {
	for {
		start, rest, more := strings.Cut(text, `"`)
		if strings.Contains(start, "n") { // outside texts, only a null begins with n
			return true
		}
		if !more {
			return false
		}
		for text = rest; text != "" && text[0] != '"'; text = text[1:] {
			if text[0] == '\\' {
				text = text[1:]
			}
		}
		text = strings.TrimPrefix(text, `"`)
	}
}
