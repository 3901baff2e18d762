package probe

import (
	"fmt"
	"slices"
	"strings"
)

// maxRounds is the maximum number of rounds of an honest call.
const maxRounds = 8

// exchange is a request that was sent, and its answer.
type exchange struct {
	message message
	id      int
	reply   *reply
}

// flow is an honest call that has reached one of its rounds. The server has asked the questions
// of that round; the honest retry that answers them is ready but not sent.
type flow struct {
	target Target
	round  int        // the number of the round that the retry answers, from 1
	before []exchange // the requests so far, with their answers
	state  string     // the state in the last answer
	retry  message    // the honest retry
	keys   []string   // the keys of the questions that the retry answers
	all    []member   // the answers of all rounds so far, with those of the retry
}

// honest is what the probe learned from honest calls of a target.
type honest struct {
	asks       []string // for each round, the keys of its questions, joined with line breaks
	shown      string   // the text of the last result, as reply.shown returns it
	same       bool     // whether the last results of two calls had the same text
	failed     bool     // whether an honest call ends with a tool's error
	refusal    string   // the text of the result if the user refuses
	unanswered string   // the text of the result after a retry without answers
	madeUp     string   // what reply.form returned for the server's reply to a made-up state
}

// begin sends the first request of a call. It returns an error if the server does not answer
// with questions.
func (p *probe) begin(t Target, arguments string, as user) (f *flow, err error) {
	f = &flow{target: t, round: 1, retry: t.call(arguments).sentBy(as)}
	err = p.advance(f, false)
	if err == nil {
		p.valid[f.retry.call()] = true
	}
	return f, err
}

// advance sends the flow's retry. If the server answers with questions, advance prepares the
// retry that answers them. If the server answers with a final result instead, advance returns nil
// if mayEnd is true. In all other cases it returns an error.
func (p *probe) advance(f *flow, mayEnd bool) error {
	sent := p.send(f.retry)
	f.before = append(f.before, sent)
	r := sent.reply
	switch got := r.outcome(); {
	case mayEnd && (got == complete || got == failed):
		return nil
	case got != asked:
		return fmt.Errorf("%s: %s%s", f.target, notAnswered, r)
	}
	state, ok := r.state()
	if !ok {
		return fmt.Errorf("%s: %w", f.target, errNoState)
	}
	answers, err := p.answers(f.target, r)
	if err != nil {
		return fmt.Errorf("%s: %w", f.target, err)
	}
	f.state, f.keys = state, r.keys()
	f.all = append(slices.Clone(f.all), answers...)
	f.retry = f.retry.with("requestState", quoted(state)).with("inputResponses", object(answers))
	return nil
}

const notAnswered = "an honest request was not answered as it should be: "

const errNoState = textError("the server asks without a state, so there is nothing to attack")

type textError string

func (e textError) Error() string { return string(e) }

// mint makes an honest call up to its last round. It does not send the last retry.
func (p *probe) mint(t Target) (*flow, error) { return p.mintAs(t, t.arguments(), firstUser) }

func (p *probe) mintAs(t Target, arguments string, as user) (*flow, error) {
	return p.mintAt(t, arguments, as, len(p.honest[t.String()].asks))
}

// mintAt makes an honest call up to the given round. It does not send the retry of that round.
func (p *probe) mintAt(t Target, arguments string, as user, round int) (*flow, error) {
	f, err := p.begin(t, arguments, as)
	for err == nil && f.round < round {
		err = p.advance(f, false)
		f.round++
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// control makes a whole honest call. It returns, for each round, the keys of its questions,
// joined with line breaks. It also returns the last reply.
func (p *probe) control(t Target, as user) (asks []string, last *reply, err error) {
	f, err := p.begin(t, t.arguments(), as)
	if err != nil {
		return nil, nil, err
	}
	for range maxRounds {
		asks = append(asks, strings.Join(f.keys, "\n"))
		if err := p.advance(f, true); err != nil {
			return nil, nil, err
		}
		if last = f.before[len(f.before)-1].reply; last.outcome() != asked {
			return asks, last, nil
		}
	}
	return nil, nil, fmt.Errorf("%s: an honest call did not complete in %d rounds", t, maxRounds)
}

// learn makes honest calls of a target, and records in p.honest what they show.
func (p *probe) learn(t Target) (err error) {
	defer func() {
		if err != nil {
			delete(p.honest, t.String())
		}
	}()
	var h honest
	for i := range 2 {
		asks, last, err := p.control(t, firstUser)
		if err != nil {
			return err
		}
		h.same = i > 0 && last.shown() == h.shown
		h.asks, h.shown, h.failed = asks, last.shown(), last.outcome() == failed
	}
	p.honest[t.String()] = h
	// The following calls are no attacks. They show how the target replies to a made-up state,
	// to a refusal by the user, and to a retry without answers. The probe can then tell such a
	// reply from a success.
	try := func(change func(f *flow) message) (*reply, error) {
		f, err := p.mint(t)
		if err != nil {
			return nil, err
		}
		return p.send(change(f)).reply, nil
	}
	r, err := try(func(f *flow) message { return f.retry.with("requestState", quoted(madeUp)) })
	if err != nil {
		return err
	}
	h.madeUp = r.form()
	if r.outcome() == complete && p.Refusal == "" && r.shown() != h.shown {
		p.notes = append(p.notes, fmt.Sprintf("%s: a made-up state got the result %s; if this is how the server refuses, say so with --refusal TEXT", t, r.brief(quoted(r.shown()), 200)))
	}
	if h.failed && r.outcome() == failed && r.shown() == h.shown {
		return fmt.Errorf("%s: an honest call and one with a made-up state end with the same error, so nothing can be told", t)
	}
	if p.Decline && r.outcome() == complete && r.shown() == h.shown {
		return fmt.Errorf("%s: the server takes a refusal by the user whatever the state is, so nothing can be told with declined calls", t)
	}
	if r, err = try(func(f *flow) message {
		answers, _ := refusals(f, declined)
		return f.retry.with("inputResponses", answers)
	}); err != nil {
		return err
	}
	h.refusal = r.shown()
	if r, err = try(func(f *flow) message { return f.retry.with("inputResponses", "{}") }); err != nil {
		return err
	}
	h.unanswered = r.shown()
	p.honest[t.String()] = h
	return nil
}

// refusals returns the answers of the honest retry, but with formAnswer as the answer to every
// form. ok is false if there is no form.
func refusals(f *flow, formAnswer string) (answers string, ok bool) {
	all, _ := members(f.retry.value("inputResponses"))
	for i, m := range all {
		if kindOf(m.value) == "elicitation" {
			all[i].value, ok = formAnswer, true
		}
	}
	return object(all), ok
}

// madeUp is a state that no server has issued.
const madeUp = "tripseal-probe-made-this-up"

// through reports whether a request got through. The parameter r is the reply to the request. The
// request got through if the target went on in the same way as after the honest retry of the flow
// f.
func (p *probe) through(f *flow, r *reply) bool {
	h := p.honest[f.target.String()]
	shown := r.shown()
	switch r.outcome() {
	case asked:
		// A server that starts over asks the first questions again. So these questions do not
		// show that the request got through.
		return f.round < len(h.asks) && h.asks[f.round] != h.asks[0] && strings.Join(r.keys(), "\n") == h.asks[f.round]
	case complete:
		if p.Refusal != "" && strings.Contains(shown, p.Refusal) || shown != "" && shown == h.refusal && shown != h.shown {
			return false
		}
		return !h.failed
	case failed:
		return h.failed && shown == h.shown && f.round == len(h.asks)
	}
	return false
}
