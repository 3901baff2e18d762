package probe

import (
	"errors"
	"fmt"
	"slices"
)

// enough is the number of findings after which an attack on one target stops. More findings
// would only burden the server.
const enough = 3

// trial is one attack while it is tried.
type trial struct {
	*probe
	attack *Attack
	result *Result
	busy   int // how often the server said that it is too busy
}

// variant is one way to do an attack.
type variant struct {
	what string // describes the variant
	// make returns the message to send, a changed copy of the honest retry of the flow f. It
	// must not change f.
	make func(f *flow) message
}

// targets returns the targets that issue a state.
func (t *trial) targets() (all []Target) {
	for _, target := range t.Targets {
		if _, ok := t.honest[target.String()]; ok {
			all = append(all, target)
		}
	}
	return all
}

// eachTarget tries the variants that makeVariants returns. It tries them on each target: in the
// last round and, if the target asks more than once, also in the first round.
func (t *trial) eachTarget(makeVariants func(f *flow) []variant) {
	for _, target := range t.targets() {
		rounds := []int{len(t.honest[target.String()].asks)}
		if rounds[0] > 1 {
			rounds = append(rounds, 1)
		}
		for _, round := range rounds {
			fresh := func() (*flow, error) { return t.mintAt(target, target.arguments(), firstUser, round) }
			f, err := fresh()
			if err != nil {
				t.unclear(err)
				return
			}
			t.tryVariants(f, makeVariants(f), fresh)
		}
	}
}

// tryVariants tries each variant of the list on the flow f. The function newFlow returns another
// flow that has reached the same round.
func (t *trial) tryVariants(f *flow, list []variant, newFlow func() (*flow, error)) {
	if t.Decline { // leave out variants that accept a question, because they could have an effect on the server
		list = slices.DeleteFunc(slices.Clone(list), func(v variant) bool { return accepts(v.make(f)) })
	}
	found, used := 0, false
	for i, v := range list {
		if t.ended != nil {
			return
		}
		if used || t.burns && i > 0 {
			var err error
			if f, err = newFlow(); err != nil {
				t.unclear(err)
				return
			}
			used = false
		}
		sent := t.tell(v.make(f))
		h := t.honest[f.target.String()]
		if t.through(f, sent.reply) && !(t.attack.consent && (sent.reply.shown() == h.refusal || sent.reply.shown() == h.unanswered)) {
			used = true
			t.recordFinding(f.target, v.what, append(slices.Clone(f.before), sent)...)
			if found++; found == enough && i < len(list)-1 {
				return
			}
		} else if t.attack.ranFirst && sent.reply.outcome() == failed && sent.reply.form() != h.madeUp {
			t.unclear(fmt.Errorf("%s: with %s the tool ran and failed, so it cannot be told whether its state was checked: %s; give other arguments that it takes", f.target, v.what, sent.reply))
		}
	}
	if used || t.burns || len(list) == 0 || t.ended != nil {
		return
	}
	// The refusals mean something only if the state is still valid after them.
	if r := t.send(f.retry).reply; !t.through(f, r) && !t.repeats(f) {
		t.burns = true
		t.tryVariants(f, spread(list, 64), newFlow)
		if again, err := newFlow(); err != nil || !t.through(again, t.send(again.retry).reply) {
			t.unclear(fmt.Errorf("%s: the state that was attacked no longer worked for an honest retry: %s", f.target, r))
		}
	}
}

// repeats reports whether the next round of the flow asks the same questions as the first round.
// If so, nobody can tell these two rounds apart.
func (t *trial) repeats(f *flow) bool {
	asks := t.honest[f.target.String()].asks
	return f.round < len(asks) && asks[f.round] == asks[0]
}

// tell sends an attack and counts its outcome. It keeps the exchange if the answer is a refusal
// of the state.
func (t *trial) tell(m message) exchange {
	sent := t.send(m)
	got := sent.reply.outcome()
	if got == early && m.as != noUser && t.comparable(m) && (slices.Contains([]int{401, 403}, sent.reply.status) || sent.reply.message.Error != nil && sent.reply.message.Error.Code == -32600) {
		got = rejected // the server accepted these arguments in an honest call, so here it refuses the state and not the arguments
	}
	if sent.reply.status == 429 || sent.reply.status == 503 {
		t.busy++
	}
	t.result.Outcomes[got.String()]++
	if (got == rejected || got == failed && !t.attack.ranFirst) && !t.attack.honestState &&
		len(m.value("requestState")) <= maxCompared && len(sent.reply.raw) <= maxKept {
		t.rejections = append(t.rejections, sent)
	}
	return sent
}

// recordFinding records a finding, with the requests that show it.
func (t *trial) recordFinding(target Target, what string, shown ...exchange) {
	if t.stopped() {
		return // the probe did not send the attack, or did not wait for the answer
	}
	t.result.Findings = append(t.result.Findings, t.finding(target.String(), what, shown))
	if t.attack.unsolicited && slices.Contains(t.Unsolicited, target.Name) || slices.Contains(t.Accept, t.attack.ID) {
		t.verdict(AcceptedRisk)
		return
	}
	t.verdict(Found)
}

// inform records something that is worth knowing but is no hole by itself.
func (t *trial) inform(target Target, what string, shown ...exchange) {
	t.result.Findings = append(t.result.Findings, t.finding(target.String(), what, shown))
	t.verdict(Information)
}

func (t *trial) unclear(err error) {
	if t.result.Why == "" {
		t.result.Why = err.Error()
	}
	t.verdict(Unclear)
}

// skip records why the attack could not be tried.
func (t *trial) skip(why string) {
	if t.result.Verdict == "" {
		t.result.Why = why
		t.verdict(NotTried)
	}
}

// verdict sets the verdict of the attack, unless it already has a worse one.
func (t *trial) verdict(v Verdict) {
	if t.result.Verdict == "" || slices.Index(worstFirst, v) < slices.Index(worstFirst, t.result.Verdict) {
		t.result.Verdict = v
	}
}

// settle sets the verdict at the end of the attack, unless there already is one.
func (t *trial) settle() {
	if t.result.Verdict != "" {
		return
	}
	o := t.result.Outcomes
	checked := o[rejected.String()] + o[failed.String()] + o[asked.String()] + o[complete.String()]
	switch {
	case t.busy > checked:
		t.unclear(errors.New("the server said that it is too busy more often than it answered; lower the rate"))
	case checked > 0, t.attack.early && len(o) > 0:
		t.result.Verdict = Refused
	case len(o) > 0:
		t.result.Verdict = Early
		t.result.Why = "the server refused every variant before it can have looked at the state"
	default:
		t.skip("there was nothing to send")
	}
}

// spread returns at most n items of the list, evenly spread over it.
func spread[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	var some []T
	for i := range n {
		some = append(some, list[i*(len(list)-1)/(n-1)])
	}
	return some
}
