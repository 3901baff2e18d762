package probe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// useAttacks send honest requests as the wrong user, or at the wrong time.
var useAttacks = []Attack{
	{
		ID: "other-user", Title: "The state of another user", Severity: High, Section: replay,
		Means:  "Whoever steals a state acts on another user's confirmation.",
		Fix:    "Seal the authenticated user into the state, and refuse it from anybody else.",
		AtMost: 2 + tries(2), Honest: 2, needs: needState | needUsers, early: true, try: otherUsers,
	},
	{
		ID: "used-again", Title: "A state that was used before, and a state sent eight times at once", Severity: Medium, Section: once,
		Means:  "A state works until it expires, or as often as it comes at the same moment. Where an effect must happen once, a replay repeats it.",
		Fix:    "Where it matters, remember used states until they expire, in a store that all replicas share. Look up and record in one step.",
		AtMost: 48, Honest: 5, needs: needState, try: usedAgain,
	},
	{
		ID: "forked", Title: "Two different answers to one state", Severity: Medium, Section: once,
		Means:  "A client tries one answer, and then another one.",
		Fix:    "Where it matters, spend the state with the first answer, whatever it is.",
		AtMost: 8, Honest: 2, needs: needState, try: forked,
	},
	{
		ID: "expired", Title: "A state that is too old", Severity: High, Section: replay,
		Means:  "A state that leaked years ago still works.",
		Fix:    "Seal an expiry into the state, minutes after it was issued.",
		AtMost: 8, Honest: 1, needs: needState | needMaxAge, try: expired,
	},
}

// otherUsers sends the state of one user as another user. Before that, it makes sure that the
// other user's own calls work.
func otherUsers(t *trial) {
	for _, target := range t.targets() {
		if _, _, err := t.control(target, otherUser); err != nil {
			t.unclear(fmt.Errorf("an honest call of the other user fails: %w", err))
			return
		}
	}
	t.eachTarget(func(*flow) []variant {
		return []variant{
			{"sent by the other user", func(f *flow) message { return f.retry.sentBy(otherUser) }},
			{"sent without an access token", func(f *flow) message { return f.retry.sentBy(noUser) }},
		}
	})
}

// recordReuse records that a state worked more than once: as a finding if Options.SingleUse is
// true, and otherwise as information.
func (t *trial) recordReuse(f *flow, what string, sent ...exchange) {
	shown := append(slices.Clone(f.before), sent...)
	if t.SingleUse {
		t.recordFinding(f.target, what, shown...)
		return
	}
	t.inform(f.target, what+"; the specification demands single use only for states that must be used at most once", shown...)
}

func usedAgain(t *trial) {
	for _, target := range t.targets() {
		f, err := t.mint(target)
		if err != nil {
			t.unclear(err)
			return
		}
		if r := t.send(f.retry).reply; !t.through(f, r) {
			t.unclear(t.not(target, r))
			return
		}
		if sent := t.tell(f.retry); t.through(f, sent.reply) {
			t.recordReuse(f, "it worked a second time", sent)
			continue
		}
		for range 3 {
			if t.atOnce(target) {
				break
			}
		}
	}
}

// atOnce sends one state eight times at the same moment. It returns false if exactly one
// request got through, which is correct. The caller may then try again. It returns true if none or
// several requests got through, or if the probe got no state.
func (t *trial) atOnce(target Target) bool {
	f, err := t.mint(target)
	if err != nil {
		t.unclear(err)
		return true
	}
	all := make([]exchange, 8)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i] = t.send(f.retry) })
	}
	group.Wait()
	passed := slices.DeleteFunc(slices.Clone(all), func(e exchange) bool { return !t.through(f, e.reply) })
	for _, e := range all {
		t.result.Outcomes[e.reply.outcome().String()]++
	}
	if len(passed) == 0 {
		t.unclear(t.not(target, all[0].reply))
	}
	if len(passed) > 1 {
		t.recordReuse(f, "it worked for more than one of eight requests at once", passed[:2]...)
	}
	return len(passed) != 1
}

func forked(t *trial) {
	for _, target := range t.targets() {
		f, err := t.mint(target)
		if err != nil {
			t.unclear(err)
			return
		}
		refusal := declined
		if t.Decline {
			refusal = cancelled
		}
		answers, ok := refusals(f, refusal)
		if !ok {
			continue
		}
		other := t.send(f.retry.with("inputResponses", answers))
		if got := other.reply.outcome(); got != complete && got != failed {
			t.result.Outcomes[got.String()]++
			continue // the server did not accept these answers, so the honest retry would be the first use of the state
		}
		if sent := t.tell(f.retry); t.through(f, sent.reply) {
			t.recordReuse(f, "first a refusal, then the consent", other, sent)
		}
	}
}

func expired(t *trial) {
	if t.old == nil {
		t.skip("no state could be kept until it is too old")
		return
	}
	if wait := t.MaxAge - time.Since(t.born); wait > 0 {
		t.sleep(wait + time.Second) // a second more, because some clocks count whole seconds
	}
	sent := t.tell(t.old.retry)
	if t.through(t.old, sent.reply) {
		t.recordFinding(t.old.target, "it still works after "+t.MaxAge.String(), append(slices.Clone(t.old.before), sent)...)
	}
}

func (p *probe) not(target Target, r *reply) error {
	return textError(target.String() + ": an honest retry was refused: " + r.String())
}

// lastAttacks come last, because they may end the server.
var lastAttacks = []Attack{
	{
		ID: "oversized", Title: "Huge, deep and wide requests", Severity: Medium, Section: security,
		Means:  "One request ends the server, or keeps it from answering.",
		Fix:    "Limit the size of a body, of a state and of the depth of JSON before you decode it.",
		AtMost: 44, Honest: 8, needs: needState, try: oversized,
	},
}

func oversized(t *trial) {
	target := t.targets()[0]
	levels := 9_000
	if t.server.kind() != "http" {
		// Many servers exit at a line that they cannot read. Over stdio, this harms only the client
		// that sent the line, and must not become a finding. So nest the arguments less deeply.
		// Common JSON parsers can read 900 levels.
		levels = 900
	}
	action := "accept"
	if t.Decline {
		action = "decline"
	}
	for _, v := range []variant{
		{"a state of 2 MiB", func(f *flow) message {
			return f.retry.with("requestState", quoted(strings.Repeat("A", 2<<20)))
		}},
		{"an answer of 2 MiB", func(f *flow) message {
			return f.retry.with("inputResponses", `{"tripseal_probe":{"action":"`+action+`","content":{"text":"`+strings.Repeat("A", 2<<20)+`"}}}`)
		}},
		{"10,000 answers", func(f *flow) message {
			return f.retry.with("inputResponses", wide(10_000, `{"action":"`+action+`","content":{}}`))
		}},
		{fmt.Sprintf("arguments %d levels deep", levels), func(f *flow) message {
			return f.retry.with("arguments", `{"tripseal_probe":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+`}`)
		}},
		{"50,000 arguments", func(f *flow) message { return f.retry.with("arguments", wide(50_000, "1")) }},
	} {
		f, err := t.mint(target)
		if err != nil {
			t.unclear(err)
			return
		}
		sent := t.send(v.make(f))
		t.result.Outcomes[sent.reply.outcome().String()]++
		if t.through(f, sent.reply) && strings.HasPrefix(v.what, "a state") {
			t.recordFinding(target, v.what, append(f.before, sent)...)
		}
		alive := false
		for range 3 {
			if _, _, err = t.control(target, firstUser); err == nil {
				alive = true
				break
			}
			t.sleep(200 * time.Millisecond)
		}
		if !alive {
			t.recordFinding(target, v.what+", and then no honest call worked any more: "+err.Error(), append(f.before, sent)...)
			return
		}
	}
}

// wide returns the JSON text of an object with n members, all with the same value.
func wide(n int, value string) string {
	all := make([]member, n)
	for i := range all {
		all[i] = member{`"m` + strconv.Itoa(i) + `"`, value}
	}
	return object(all)
}
