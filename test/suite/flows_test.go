package suite

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/tripseal/tripseal"
)

// flowPromises are the promises about what honest clients get.
var flowPromises = slices.Concat(
	forCarriers(allCarriers, "a state never leaves in plaintext", neverInPlaintext),
	forCarriers(allCarriers, "a handler sees its state and the answer", handlerSeesItsState),
	forCarriers(allCarriers, "a flow has several rounds", severalRounds),
	forCarriers(allCarriers, "a question needs no state", questionWithoutState),
	forCarriers(allCarriers, "a state needs no question", stateWithoutQuestion),
	forCarriers(allCarriers, "a state on a complete result never leaves", strayState),
	forCarriers(allCarriers, "a call that asks nothing gets no token", asksNothing),
	forCarriers(allCarriers, "an empty state is none", emptyState),
	forCarriers(allCarriers, "a flow ends at its last round", lastRound),
)

func neverInPlaintext(a *trial, c carrier) {
	rig := a.serve(confirm)
	response := rig.send(c.from("alice"))
	token := response.token()
	if !strings.HasPrefix(token, tripseal.PurposeState.Prefix()) {
		a.stopf("not a token: %.500s", response.raw)
	}
	rig.tellsNothing("the question", response)
	for _, part := range strings.Split(token, ".") {
		decoded, _ := base64.RawURLEncoding.DecodeString(part)
		unhexed, _ := hex.DecodeString(part)
		if strings.Contains(string(decoded)+string(unhexed), "hush") {
			a.failf("the state can be read from the token %q", token)
		}
	}
	if again := rig.send(c.from("alice")).token(); again == token {
		a.failf("two calls got one token")
	}
}

func handlerSeesItsState(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	if first := rig.lastCall(); first.state != "" || len(first.answers) != 0 {
		a.failf("the first call of the handler had %+v", first)
	}
	rig.completes(retry)
	second := rig.lastCall()
	if second.state != secretState {
		a.failf("the handler saw the state %q", second.state)
	}
	if len(second.answers) != 1 || !containsAll(second.answers["confirm"], `"yes"`, `"accept"`) {
		a.failf("the handler saw the answers %v", second.answers)
	}
	if c.takesArguments() && !strings.Contains(second.arguments, `"eu"`) {
		a.failf("the handler saw the arguments %s", second.arguments)
	}
}

// askInRounds returns a handler that asks one question in each of n rounds. The keys of the
// questions are q1, q2 and so on.
func askInRounds(n int) Handler {
	return func(_ context.Context, call Call) (Result, error) {
		round := len(call.State) + 1
		if round > n {
			return Result{Text: "done"}, nil
		}
		questions := map[string]tripseal.Kind{questionOf(round): tripseal.KindForm}
		return Result{State: call.State + "x", Questions: questions}, nil
	}
}

func questionOf(round int) string { return "q" + string(rune('0'+round)) }

func severalRounds(a *trial, c carrier) {
	rig := a.serve(askInRounds(4))
	request := c.from("alice")
	for round := 1; round <= 4; round++ {
		response := rig.send(request)
		token := response.token()
		if token == "" || token == request.token || len(response.Result.InputRequests[questionOf(round)]) == 0 {
			a.stopf("round %d: %.500s", round, response.raw)
		}
		request = request.bringing(token).answering(`{"` + questionOf(round) + `":` + accepted + `}`)
	}
	rig.completes(request)
	if last := rig.lastCall(); last.state != "xxxx" || last.answers["q4"] == "" {
		a.failf("the handler saw %+v in the end", last)
	}
}

func questionWithoutState(a *trial, c carrier) {
	rig := a.serve(func(ctx context.Context, call Call) (Result, error) {
		result, err := confirm(ctx, call)
		result.State = ""
		return result, err
	})
	rig.completes(rig.begin(c.from("alice")))
	if last := rig.lastCall(); last.state != "" || last.answers["confirm"] == "" {
		a.failf("the handler saw %+v", last)
	}
}

func stateWithoutQuestion(a *trial, c carrier) {
	rig := a.serve(func(_ context.Context, call Call) (Result, error) {
		if call.State != "" {
			return Result{Text: "done"}, nil
		}
		return Result{State: secretState, Questions: map[string]tripseal.Kind{}}, nil
	})
	response := rig.send(c.from("alice"))
	rig.tellsNothing("come again", response)
	if response.token() == "" {
		a.stopf("no token: %.500s", response.raw)
	}
	rig.completes(c.from("alice").bringing(response.token()))
	if last := rig.lastCall(); last.state != secretState {
		a.failf("the handler saw %+v", last)
	}
}

func strayState(a *trial, c carrier) {
	rig := a.serve(func(context.Context, Call) (Result, error) {
		return Result{Text: "done", State: secretState}, nil
	})
	response := rig.send(c.from("alice")) // the result without the state, or an error
	if response.token() != "" || response.Error == nil && response.text() != "done" {
		a.failf("a complete result: %.500s", response.raw)
	}
	rig.tellsNothing("a complete result", response)
}

func asksNothing(a *trial, c carrier) {
	rig := a.serve(func(context.Context, Call) (Result, error) { return Result{Text: "done"}, nil })
	rig.completes(c.from("alice"))
	rig.completes(c.from("")) // a call without a user is allowed, because the handler asks nothing
	if events := rig.events.All(); len(events) != 0 {
		a.failf("events: %+v", events)
	}
}

func emptyState(a *trial, c carrier) {
	rig := a.serve(confirm)
	if response := rig.send(c.from("alice").more(`"requestState":""`)); response.token() == "" {
		a.failf("%.500s", response.raw)
	}
	if got := rig.events.Reasons(); len(got) != 0 {
		a.failf("rejected: %v", got)
	}
}

func lastRound(a *trial, c carrier) {
	rig := a.serve(askInRounds(4), func(config *tripseal.Config, _ *Server) { config.MaxRounds = 2 })
	request := c.from("alice")
	for range 2 {
		request.token = rig.send(request).token()
	}
	if request.token == "" {
		a.stopf("the second round does not ask")
	}
	rig.fails("a third round of two", rig.send(request))
}
