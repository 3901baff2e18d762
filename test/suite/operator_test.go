package suite

import (
	"slices"
	"strings"

	"github.com/tripseal/tripseal"
)

// operatorPromises are the promises about what the operator learns.
var operatorPromises = slices.Concat(
	forCarriers(allCarriers, "every seal and every open is one event", oneEventEach),
	forCarriers(allCarriers, "the event of a rejection has the reason", reasons),
	forCarriers(allCarriers, "answers that were dropped are an event", droppedEvent),
	forCarriers(allCarriers, "the log repeats no state, token, answer or user", quietLog),
)

func oneEventEach(a *trial, c carrier) {
	rig := a.serve(askInRounds(2))
	request := c.from("alice")
	for range 3 {
		request.token = rig.send(request).token()
	}
	var ops []tripseal.Op
	for _, e := range rig.events.All() {
		ops = append(ops, e.Op)
		if e.Reason != "" || e.Method != c.method || e.Target == tripseal.TargetUnknown || e.Flow == "" {
			a.failf("an event: %+v", e)
		}
		if c.takesArguments() && e.Target != c.target {
			a.failf("an event about the target %q", e.Target)
		}
	}
	if !slices.Equal(ops, []tripseal.Op{tripseal.OpSeal, tripseal.OpOpen, tripseal.OpSeal, tripseal.OpOpen}) {
		a.failf("the events of two questions: %v", ops)
	}
}

func reasons(a *trial, c carrier) {
	keys := tripseal.Ephemeral()
	rig := a.serve(confirm, keyed(keys), once, failing)
	other := a.serve(confirm, keyed(keys), anotherService)
	retry := rig.begin(c.from("alice"))
	spent := rig.begin(c.from("alice"))
	rig.completes(spent)
	want := func(request request, reason tripseal.Reason) {
		before := len(rig.events.All())
		rig.send(request)
		events := rig.events.All()[before:]
		if len(events) != 1 || events[0].Op != tripseal.OpOpen || events[0].Reason != reason ||
			events[0].Method != c.method {
			a.failf("the events of a token that is rejected with the reason %s: %+v", reason, events)
		}
	}
	want(retry.bringing("junk"), tripseal.ReasonMalformed)
	want(retry.bringing(retry.token[:len(retry.token)-6]+"AAAAAA"), tripseal.ReasonForged)
	want(a.serve(confirm).begin(c.from("alice")), tripseal.ReasonUnknownKey)
	want(retry.bringing(strings.Repeat("A", 70_000)), tripseal.ReasonTooLarge)
	want(retry.to(c.other), tripseal.ReasonRequest)
	want(retry.as("bob"), tripseal.ReasonUser)
	want(retry.as("nameless"), tripseal.ReasonPrincipalFailed)
	want(other.begin(c.from("alice")), tripseal.ReasonAudience)
	want(a.serve(confirm, aged(keys)).begin(c.from("alice")), tripseal.ReasonExpired)
	want(spent, tripseal.ReasonReplayed)
	if c.takesArguments() {
		want(retry.with(`{"region":"us"}`), tripseal.ReasonArguments)
	}
}

func droppedEvent(a *trial, c carrier) {
	rig := a.serve(confirm)
	rig.send(c.from("alice").answering(`{"a":` + accepted + `,"b":` + accepted + `}`))
	rig.send(rig.begin(c.from("alice")).answering(`{"a":` + accepted + `,"confirm":` + accepted + `}`))
	var dropped []int
	for _, e := range rig.events.All() {
		if e.Op == tripseal.OpDrop {
			dropped = append(dropped, e.Dropped)
		}
	}
	if !slices.Equal(dropped, []int{2, 1}) {
		a.failf("the numbers of answers dropped: %v", dropped)
	}
}

func quietLog(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice-hush"))
	answer := `{"confirm":{"action":"accept","content":{"value":"hush"}}}`
	rig.send(retry.as("bob-hush"))
	rig.send(retry.bringing("hush"))
	rig.send(retry.to(c.other))
	rig.send(c.from("alice-hush").answering(answer))
	rig.send(retry.answering(answer))
	if c.takesArguments() {
		rig.send(retry.with(`{"region":"hush"}`))
	}
	log := rig.log.String()
	for _, secret := range []string{"hush", retry.token, retry.token[len(retry.token)/4 : len(retry.token)/2]} {
		if strings.Contains(log, secret) {
			a.failf("the log has %.20q: %.2000s", secret, log)
		}
	}
	if !strings.Contains(log, "token rejected") {
		a.failf("the log does not tell of the rejections: %.2000s", log)
	}
}
