package probe

import (
	"fmt"
	"slices"
	"strings"
)

// maxRounds is how many rounds an honest call may take.
const maxRounds = 8

// exchange is a request that was sent, and its answer.
type exchange struct {
	message message
	id      int
	reply   *reply
}

// flow is an honest call up to its last round: the retry that would complete it has not been
// sent.
type flow struct {
	target Target
	before []exchange // the rounds that were sent
	state  string     // what the last of them gave
	retry  message    // the honest retry
	keys   []string   // the keys of the questions that the retry answers
	all    []member   // the answers of all rounds
}

// honest is what the honest calls of a target showed.
type honest struct {
	rounds  int    // how many times the target asks
	shown   string // what its last result shows
	same    bool   // whether two calls showed the same
	failed  bool   // whether an honest call ends with a tool's error
	refusal string // what a result shows if the user refuses
	refuse  string // a complete result that is how the server refuses; "" if it has none
}

// first sends the first request of a call. The reply asks, or else err says why not.
func (p *probe) first(t Target, arguments string, as user) (f *flow, err error) {
	f = &flow{target: t, retry: t.call(arguments).sentBy(as)}
	err = p.next(f, false)
	if err == nil {
		p.valid[f.retry.call()] = true
	}
	return f, err
}

// next sends the flow's retry, which then is no longer the last one, and prepares the retry
// after it. If finish is true, the call must complete, and otherwise it must ask.
func (p *probe) next(f *flow, finish bool) error {
	sent := p.send(f.retry)
	f.before = append(f.before, sent)
	r := sent.reply
	switch got := r.outcome(); {
	case finish && (got == complete || got == failed):
		return nil
	case got != asked:
		return fmt.Errorf("%s: an honest request was not answered as it should be: %s", f.target, r)
	}
	state, ok := r.state()
	if !ok {
		return fmt.Errorf("%s: %w", f.target, errNoState)
	}
	var answers []member
	for _, key := range r.keys() {
		text, err := answer(key, r.message.Result.InputRequests[key], f.target.Answers[key], p.Decline)
		if err != nil {
			return fmt.Errorf("%s: %w", f.target, err)
		}
		answers = append(answers, member{quoted(key), text})
	}
	f.state, f.keys = state, r.keys()
	f.all = append(slices.Clone(f.all), answers...)
	f.retry = f.retry.with("requestState", quoted(state)).with("inputResponses", object(answers))
	return nil
}

const errNoState = textError("the server asks without a state, so there is nothing to attack")

type textError string

func (e textError) Error() string { return string(e) }

// mint makes an honest call up to its last round.
func (p *probe) mint(t Target) (*flow, error) { return p.mintAs(t, t.arguments(), firstUser) }

func (p *probe) mintAs(t Target, arguments string, as user) (*flow, error) {
	f, err := p.first(t, arguments, as)
	if err != nil {
		return nil, err
	}
	for range p.honest[t.String()].rounds - 1 {
		if err := p.next(f, false); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// control makes a whole honest call and returns what it showed.
func (p *probe) control(t Target) (rounds int, last *reply, err error) {
	f, err := p.first(t, t.arguments(), firstUser)
	if err != nil {
		return 0, nil, err
	}
	for rounds = 1; rounds <= maxRounds; rounds++ {
		if err := p.next(f, true); err != nil {
			return 0, nil, err
		}
		if last = f.before[len(f.before)-1].reply; last.outcome() != asked {
			return rounds, last, nil
		}
	}
	return 0, nil, fmt.Errorf("%s: an honest call did not complete in %d rounds", t, maxRounds)
}

// learn finds out how an honest call of a target goes.
func (p *probe) learn(t Target) error {
	var h honest
	for i := range 2 {
		rounds, last, err := p.control(t)
		if err != nil {
			return err
		}
		shown := last.shown()
		h.same = i > 0 && shown == h.shown
		h.rounds, h.shown, h.failed = rounds, shown, last.outcome() == failed
	}
	p.honest[t.String()] = h
	f, err := p.mint(t)
	if err != nil {
		return err
	}
	if answers, ok := refusals(f, declined); ok {
		h.refusal = p.send(f.retry.with("inputResponses", answers)).reply.shown()
		p.honest[t.String()] = h
		if f, err = p.mint(t); err != nil {
			return err
		}
	}
	// Some servers refuse with an ordinary result. Then that result does not mean that
	// an attack got through.
	r := p.send(f.retry.with("requestState", quoted(madeUp))).reply
	switch {
	case h.failed && r.outcome() == failed && r.shown() == h.shown:
		return fmt.Errorf("%s: an honest call and one with a made-up state end with the same error, so nothing can be told", t)
	case r.outcome() == complete && h.same && r.shown() != h.shown && !strings.Contains(h.shown, r.shown()):
		h.refuse = r.shown()
		p.honest[t.String()] = h
	}
	return nil
}

// refusals returns the answers of the honest retry in which every form is refused. ok is false
// if there is no form.
func refusals(f *flow, refusal string) (answers string, ok bool) {
	all, _ := members(f.retry.value("inputResponses"))
	for i, m := range all {
		if kindOf(m.value) == "elicitation" {
			all[i].value, ok = refusal, true
		}
	}
	return object(all), ok
}

// madeUp is a state that no server has issued.
const madeUp = "mcpseal-probe-made-this-up"

// through reports whether a reply shows that the target went on as after an honest retry.
func (p *probe) through(t Target, r *reply) bool {
	h := p.honest[t.String()]
	switch r.outcome() {
	case complete:
		return !h.failed && (h.refuse == "" || r.shown() != h.refuse)
	case failed:
		return h.failed && r.shown() == h.shown
	}
	return false
}
