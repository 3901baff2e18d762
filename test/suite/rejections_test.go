package suite

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/tripseal/tripseal"
)

// rejectionPromises are the promises about states that do not belong to the request.
var rejectionPromises = slices.Concat(
	forCarriers(allCarriers, "a forged state is rejected", forgedState),
	forCarriers(allCarriers, "a state that is too long is rejected", longToken),
	forCarriers(allCarriers, "a state that is spelt in another way never reaches the handler unchecked", spelling),
	forCarriers(allCarriers, "a state for another target is rejected", otherTarget),
	[]promise{{"a state for a tool is rejected for the prompt of its name", otherMethod}},
	forCarriers(allCarriers, "a state for a target that does not exist is rejected like any other", missingTarget),
	forCarriers(allCarriers, "a state of another service is rejected", otherService),
	forCarriers(allCarriers, "a state under other keys is rejected", otherKeys),
	forCarriers(allCarriers, "an expired state is rejected", expiredState),
	forCarriers(allCarriers, "a state works once if it must", usedOnce),
	forCarriers(allCarriers, "a rejected state is not used up", notUsedUp),
	forCarriers(allCarriers, "all rejections look the same", sameRejections),
	forCarriers(allCarriers, "a rejected state can be asked for again", askedAgain),
	[]promise{{"RejectedText is the rejection of tools alone", rejectedText}},
)

// forgeries returns the state that a handler wrote, and texts that resemble a token.
func forgeries(token string) []string {
	all := []string{secretState, "x", ".", "ms1.", "ms1.AAAA", "\x00", "null", "{}", `"`, strings.Repeat("A", 200),
		token[:len(token)-1], token[:len(token)/2], token + "A", token + "=", token + "\n", " " + token, token + token,
		strings.ToUpper(token), strings.ToLower(token),
		strings.TrimPrefix(token, "ms1."), "mc1." + strings.TrimPrefix(token, "ms1.")}
	for i := 0; i < len(token); i += max(1, len(token)/16) {
		changed := byte('A')
		if token[i] == changed {
			changed = 'B'
		}
		all = append(all, token[:i]+string(changed)+token[i+1:])
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == token })
}

func forgedState(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	for _, forgery := range forgeries(retry.token) {
		rig.rejects(quoted(forgery), retry.bringing(forgery))
	}
	rig.completes(retry)
}

func longToken(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	rig.rejects("64 KiB and a byte", retry.bringing(strings.Repeat("A", 64<<10+1)))
	rig.rejects("a token and 64 KiB", retry.bringing(retry.token+strings.Repeat("A", 64<<10)))
}

// spelling sends requests in which different JSON decoders find different states.
func spelling(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	genuine, forged := quoted(retry.token), quoted(secretState)
	for _, fields := range []string{
		`"requestState":12345`, `"requestState":true`,
		`"requestState":[` + forged + `]`, `"requestState":{"a":` + forged + `}`,
		`"RequestState":` + forged, `"requeststate":` + forged,
		`"request\u0053tate":` + forged, `"requestState":null,"REQUESTSTATE":` + forged,
		`"requestState":` + genuine + `,"requestState":` + forged,
		`"requestState":` + forged + `,"requestState":` + genuine,
		`"requestState":` + genuine + `,"RequestState":` + forged,
		`"RequestState":` + forged + `,"requestState":` + genuine,
	} {
		for _, key := range []string{"inputResponses", "InputResponses"} {
			// The server may refuse the request, treat it as a first call, or open the genuine
			// state.
			before := rig.runCount()
			response := rig.send(c.from("alice").more(fields + `,"` + key + `":` + confirmedByAnswer))
			rig.tellsNothing(fields, response)
			last := rig.lastCall()
			opened := strings.Contains(fields, genuine) && last.state == secretState
			if rig.runCount() > before && !opened && (last.state != "" || len(last.answers) > 0) {
				a.failf("%.300s: the handler saw %+v", fields, last)
			}
		}
	}
	// Another user cannot open the state, whatever the spelling of the name requestState.
	before := rig.runCount()
	rig.send(retry.as("bob").more(`"RequestState":` + genuine))
	rig.send(retry.as("bob").more(`"RequestState":""`))
	if last := rig.lastCall(); rig.runCount() > before && (last.state != "" || len(last.answers) > 0) {
		a.failf("the handler saw the state of another user: %+v", last)
	}
	rig.completes(retry)
}

func otherTarget(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry, other := rig.begin(c.from("alice")), rig.begin(c.from("alice").to(c.other))
	rig.rejects("the state for the first at the second", retry.to(c.other))
	rig.rejects("the state for the second at the first", other.to(c.target))
	rig.completes(retry)
	rig.completes(other)
}

func otherMethod(a *trial) {
	rig := a.serve(confirm)
	tool, prompt := rig.begin(toolCarrier.from("alice")), rig.begin(promptCarrier.from("alice"))
	tool.token, prompt.token = prompt.token, tool.token
	rig.rejects("the prompt's state at the tool", tool)
	rig.rejects("the tool's state at the prompt", prompt)
}

func missingTarget(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	rig.rejects("a forged state", retry.bringing("ms1.AAAA"))
	rig.rejects("a good state at a target that does not exist", retry.to(c.missing))
	rig.rejects("a forged state at a target that does not exist", retry.to(c.missing).bringing("ms1.AAAA"))
}

// keyed returns an option that gives a server these keys.
func keyed(keys *tripseal.Ring) rigOption {
	return func(config *tripseal.Config, _ *Server) { config.Keys = keys }
}

func otherService(a *trial, c carrier) {
	keys := tripseal.Ephemeral()
	ours := a.serve(confirm, keyed(keys))
	theirs := a.serve(confirm, keyed(keys), anotherService)
	retry := ours.begin(c.from("alice"))
	theirs.rejects("the state of a service with the same keys", retry)
	ours.completes(retry)
	a.serve(confirm, keyed(keys)).completes(retry) // a replica accepts the state
}

func otherKeys(a *trial, c carrier) {
	a.serve(confirm).rejects("a state under other keys", a.serve(confirm).begin(c.from("alice")))
}

func anotherService(config *tripseal.Config, _ *Server) { config.Audience = "another" }

// agedFormat seals tokens as if they had been sealed a day ago.
type agedFormat struct{ tripseal.Format }

func (f agedFormat) Seal(ctx context.Context, b *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	const day = 24 * 60 * 60 * 1000
	old := *claims
	old.Issued, old.Expires, old.FlowStart = old.Issued-day, old.Expires-day, old.FlowStart-day
	return f.Format.Seal(ctx, b, &old)
}

func aged(keys *tripseal.Ring) rigOption {
	return func(config *tripseal.Config, _ *Server) {
		config.Keys, config.Format = nil, agedFormat{tripseal.NativeFormat(keys)}
	}
}

func expiredState(a *trial, c carrier) {
	keys := tripseal.Ephemeral()
	rig := a.serve(confirm, keyed(keys))
	rig.rejects("a state of yesterday", a.serve(confirm, aged(keys)).begin(c.from("alice")))
	rig.rejects("a forged state", c.from("alice").bringing("ms1.AAAA"))
}

// onceStore is a replay store that remembers every use.
type onceStore struct{ used sync.Map }

func (s *onceStore) Spend(_ context.Context, use tripseal.Use) (bool, error) {
	type id struct {
		flow  [16]byte
		round int
	}
	_, seen := s.used.LoadOrStore(id{use.Flow, use.Round}, true)
	return !seen, nil
}

func once(config *tripseal.Config, _ *Server) { config.Replay = &onceStore{} }

func usedOnce(a *trial, c carrier) {
	rig := a.serve(confirm, once)
	first, second := rig.begin(c.from("alice")), rig.begin(c.from("alice"))
	rig.completes(first)
	rig.rejects("a state that was used", first)
	rig.rejects("a state that was used, without an answer", first.answering(""))
	rig.completes(second)
}

func notUsedUp(a *trial, c carrier) {
	rig := a.serve(confirm, once)
	retry := rig.begin(c.from("alice"))
	rig.rejects("the state of another user", retry.as("bob"))
	rig.rejects("the state for another target", retry.to(c.other))
	rig.completes(retry)
}

func sameRejections(a *trial, c carrier) {
	keys := tripseal.Ephemeral()
	rig := a.serve(confirm, keyed(keys), once, failing)
	retry, spent := rig.begin(c.from("alice")), rig.begin(c.from("alice"))
	expired := a.serve(confirm, aged(keys)).begin(c.from("alice"))
	rig.completes(spent)
	for what, request := range map[string]request{
		"junk":                retry.bringing("junk"),
		"a forged state":      retry.bringing(retry.token[:len(retry.token)-4] + "AAAA"),
		"too long":            retry.bringing(strings.Repeat("A", 70_000)),
		"another target":      retry.to(c.other),
		"another user":        retry.as("bob"),
		"nobody":              retry.as(""),
		"a failing principal": retry.as("nameless"),
		"another key":         a.serve(confirm).begin(c.from("alice")),
		"expired":             expired,
		"spent":               spent,
	} {
		rig.rejects(what, request)
	}
	if c.takesArguments() {
		rig.rejects("other arguments", retry.with(`{"region":"us"}`))
	}
	rig.completes(retry)
}

func askedAgain(a *trial, c carrier) {
	rig := a.serve(confirm, func(config *tripseal.Config, _ *Server) { config.AskAgain = tripseal.AskAgainAlways })
	retry := rig.begin(c.from("alice"))
	response := rig.send(retry.as("bob"))
	if response.token() == "" || response.token() == retry.token {
		a.stopf("the question does not come again: %.500s", response.raw)
	}
	if last := rig.lastCall(); last.state != "" || len(last.answers) != 0 {
		a.failf("the handler saw %+v", last)
	}
	rig.completes(retry.as("bob").bringing(response.token()))
}

func rejectedText(a *trial) {
	rig := a.serve(confirm, func(_ *tripseal.Config, server *Server) { server.RejectedText = "start over" })
	first := ""
	for _, c := range allCarriers {
		retry := rig.begin(c.from("alice"))
		for what, request := range map[string]request{
			"forged": retry.bringing("ms1.AAAA"), "another user": retry.as("bob"), "another target": retry.to(c.other),
		} {
			if c.name != "tool" {
				rig.rejects(c.name+": "+what, request)
				continue
			}
			ran, response := rig.runCount(), rig.send(request)
			if response.Result == nil || !response.Result.IsError || response.text() != "start over" ||
				!strings.Contains(response.raw, `"resultType":"complete"`) ||
				rig.runCount() != ran {
				a.failf("%s: %.500s", what, response.raw)
			}
			if first == "" {
				first = response.raw
			}
			if response.raw != first {
				a.failf("%s: %s differs from %s", what, response.raw, first)
			}
		}
		rig.completes(retry)
	}
}
