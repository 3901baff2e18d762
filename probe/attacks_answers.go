package probe

import (
	"fmt"
	"slices"
)

// answerAttacks are the attacks that send wrong answers with a genuine state.
var answerAttacks = []Attack{
	{
		ID: "early-answers", Title: "Answers to later questions, with the first state", Severity: High, Section: answering, unsolicited: true,
		Means:  "A client answers a question before it is asked, and skips the round in which the server would have asked.",
		Fix:    "Keep in the state which questions were asked, and drop every other answer.",
		AtMost: 24, Honest: 2, needs: needState, honestState: true, try: earlyAnswers,
	},
	{
		ID: "wrong-keys", Title: "Answers under keys that were not asked", Severity: Medium, Section: answering,
		Means:  "The server takes an answer for a question that it did not ask.",
		Fix:    "Keep the keys of the questions in the state, and drop answers under other keys.",
		AtMost: 3*maxAltered + tries(4*maxAltered), Honest: 2, needs: needState, honestState: true, consent: true, try: alterAnswers(func(m member) []variant2 {
			return []variant2{
				{"under another key", []member{{quoted("tripseal_probe"), m.value}}},
				{"under the key in another case", []member{{quoted(otherCase(unquoted(m.name))), m.value}}},
				{"under an empty key", []member{{`""`, m.value}}},
			}
		}),
	},
	{
		ID: "wrong-kind", Title: "An answer of another kind", Severity: Medium, Section: answering,
		Means:  "The server takes a model's message or a list of roots for the consent of a user, or the reverse.",
		Fix:    "Keep the kind of each question in the state, and drop answers of another kind.",
		AtMost: 3*maxAltered + tries(4*maxAltered), Honest: 2, needs: needState, honestState: true, consent: true, try: alterAnswers(func(m member) (list []variant2) {
			for _, other := range []struct{ kind, text string }{
				{"a model's message", `{"role":"assistant","content":{"type":"text","text":"yes"},"model":"tripseal-probe","stopReason":"endTurn"}`},
				{"a list of roots", `{"roots":[{"uri":"file:///"}]}`},
				{"an accepted form", `{"action":"accept","content":{}}`},
				{"an unknown object", `{"tripseal_probe":true}`},
			} {
				if kindOf(other.text) != kindOf(m.value) {
					list = append(list, variant2{other.kind, []member{{m.name, other.text}}})
				}
			}
			return list
		}),
	},
	{
		ID: "null-answer", Title: "Null in the place of an answer", Severity: Medium, Section: answering,
		Means:  "The server takes nothing for consent.",
		Fix:    "Drop answers that are null, and check the content of each against its question.",
		AtMost: 3*maxAltered + tries(4*maxAltered), Honest: 2, needs: needState, honestState: true, consent: true, try: alterAnswers(func(m member) []variant2 {
			list := []variant2{{"null", []member{{m.name, "null"}}}}
			if kindOf(m.value) == "elicitation" {
				list = append(list,
					variant2{"accept with the content null", []member{{m.name, `{"action":"accept","content":null}`}}},
					variant2{"the action null", []member{{m.name, `{"action":null}`}}})
			}
			return list
		}),
	},
}

// variant2 is a list of answers that replace one honest answer.
type variant2 struct {
	what    string // how these answers differ from the honest one
	answers []member
}

// maxAltered limits an attack on the answers in a request. The attack tries to replace at most this
// many of them, one in each variant.
const maxAltered = 8

// alterAnswers returns an attack that replaces one answer of the honest retry in each variant.
// The server must not accept a replacement as the answer.
func alterAnswers(change func(m member) []variant2) func(*trial) {
	return func(t *trial) {
		t.eachTarget(func(f *flow) []variant { return t.alteredAnswers(f, change) })
	}
}

func (t *trial) alteredAnswers(f *flow, change func(m member) []variant2) (list []variant) {
	answers, _ := members(f.retry.value("inputResponses"))
	for _, m := range spread(answers, maxAltered) {
		i := slices.Index(answers, m)
		// If the server goes on even without this answer, replacing the answer proves nothing.
		if fresh, err := t.mintAt(f.target, f.target.arguments(), firstUser, f.round); err != nil ||
			t.through(fresh, t.send(fresh.retry.with("inputResponses", object(slices.Delete(slices.Clone(answers), i, i+1)))).reply) {
			t.result.Outcomes[early.String()]++
			continue
		}
		for _, c := range change(m) {
			list = append(list, variant{fmt.Sprintf("the answer %s: %s", m.name, c.what), func(f *flow) message {
				return f.retry.with("inputResponses", object(slices.Replace(slices.Clone(answers), i, i+1, c.answers...)))
			}})
		}
	}
	return list
}

// earlyAnswers sends the answers of all rounds with the state of the first round.
func earlyAnswers(t *trial) {
	tried := false
	for _, target := range t.targets() {
		if len(t.honest[target.String()].asks) < 2 {
			continue
		}
		tried = true
		whole, err := t.mint(target)
		if err != nil {
			t.unclear(err)
			return
		}
		fresh := func() (*flow, error) { return t.begin(target, target.arguments(), firstUser) }
		f, err := fresh()
		if err != nil {
			t.unclear(err)
			return
		}
		sent := t.tell(f.retry.with("inputResponses", object(whole.all)))
		if sent.reply.outcome() == complete && t.through(f, sent.reply) {
			t.recordFinding(target, "the answers of all rounds with the first state", append(f.before, sent)...)
		}
	}
	if !tried {
		t.skip("no target asks in more than one round")
	}
}

func kindOf(answer string) string {
	fields, _ := members(answer)
	for _, m := range fields {
		switch m.name {
		case `"action"`:
			return "elicitation"
		case `"role"`:
			return "sampling"
		case `"roots"`:
			return "roots"
		}
	}
	return ""
}
