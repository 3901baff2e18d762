package suite

import (
	"context"
	"slices"
	"strings"

	"github.com/tripseal/tripseal"
)

// answerPromises are the promises about questions, and about which answers reach the
// handler.
var answerPromises = slices.Concat(
	forCarriers(allCarriers, "answers of a first call never reach the handler", firstAnswers),
	forCarriers(allCarriers, "answers that were not asked for never reach the handler", unaskedAnswers),
	forCarriers(allCarriers, "answers of an earlier round never reach the handler", earlierAnswers),
	forCarriers(allCarriers, "an answer of another kind never reaches the handler", otherKinds),
	forCarriers(allCarriers, "an answer with a null never reaches the handler", nullAnswers),
	forCarriers(allCarriers, "a null in a form is a field that is absent", nullFields),
	forCarriers(allCarriers, "an answer that is not whole never reaches the handler", unsoundAnswers),
	forCarriers(allCarriers, "what comes with a no never reaches the handler", contentOfANo),
	forCarriers(allCarriers, "a question that the client has not declared is not asked", undeclared),
	forCarriers(allCarriers, "a state whose token pins the wording of its questions never reaches the handler",
		pinnedWording),
)

// kindCase is a kind of question, with a complete answer, several with a null, and several incomplete or wrong ones.
type kindCase struct {
	kind         tripseal.Kind
	capabilities string // client capabilities that do not cover this kind
	whole        string
	nulls        []string
	unsound      []string
}

const sampled = `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`

var kindCases = []kindCase{
	{tripseal.KindForm, `{"elicitation":{"url":{}},"sampling":{},"roots":{}}`, accepted, []string{
		`{"action":"accept","content":{"value":["a",null]}}`, `{"action":"accept","content":{"other":null,"value":[null]}}`,
		`{"action":"accept","content":{"value":{"a":{"b":[null]}}}}`, `{"action":null}`},
		[]string{`{"action":"ACCEPT"}`, `{"action":"bogus"}`}},
	{tripseal.KindURL, `{"elicitation":{"form":{}},"sampling":{},"roots":{}}`, `{"action":"accept"}`, []string{
		`{"action":"accept","content":{"value":[null]}}`}, []string{`{"action":"bogus"}`}},
	{tripseal.KindSampling, `{"elicitation":{"form":{},"url":{}},"roots":{}}`, sampled, []string{
		`{"role":"assistant","model":"m","content":null}`, `{"role":"assistant","model":"m","content":[null]}`,
		`{"role":"assistant","model":"m","content":[{"type":"resource","resource":null}]}`},
		[]string{`{"role":"assistant","model":"m","content":[]}`}},
	{tripseal.KindRoots, `{"elicitation":{"form":{},"url":{}},"sampling":{}}`, `{"roots":[{"uri":"file:///a"}]}`, []string{
		`{"roots":[null]}`, `{"roots":[{"uri":"file:///a"},null]}`}, nil},
}

// asking returns a handler that asks one question of this kind. The question's key is
// "confirm".
func asking(kind tripseal.Kind) Handler {
	return func(ctx context.Context, call Call) (Result, error) {
		result, err := confirm(ctx, call)
		if result.Questions != nil {
			result.Questions = map[string]tripseal.Kind{"confirm": kind}
		}
		return result, err
	}
}

// keptFrom sends the request, and fails the trial if the request's answers reach the
// handler. It accepts two outcomes: the handler runs and the client gets the question
// again, or the handler does not run and the client gets an error.
func (r *rig) keptFrom(what string, request request) {
	before := r.runCount()
	response := r.send(request)
	switch {
	case response.text() == "done" || r.runCount() > before && len(r.lastCall().answers) > 0:
		r.failf("%s reached the handler: %v", what, r.lastCall().answers)
	case r.runCount() > before && response.token() == "":
		r.failf("%s: the question does not come again: %.500s", what, response.raw)
	case r.runCount() == before && response.Error == nil:
		r.failf("%s: nothing ran: %.500s", what, response.raw)
	}
}

func firstAnswers(a *trial, c carrier) {
	rig := a.serve(confirm)
	rig.keptFrom("an answer of a first call", c.from("alice").answering(confirmedByAnswer))
	if rig.runCount() != 1 {
		a.failf("the handler ran %d times", rig.runCount())
	}
}

func unaskedAnswers(a *trial, c carrier) {
	rig := a.serve(confirm)
	retry := rig.begin(c.from("alice"))
	for _, answers := range []string{
		`{"other":` + accepted + `}`, `{"Confirm":` + accepted + `}`, `{"":` + accepted + `}`, `{}`,
	} {
		rig.keptFrom(answers, retry.answering(answers))
	}
	rig.completes(retry.answering(`{"other":` + accepted + `,"confirm":` + accepted + `}`))
	if last := rig.lastCall(); len(last.answers) != 1 || last.answers["confirm"] == "" {
		a.failf("the handler saw %v", last.answers)
	}
}

func earlierAnswers(a *trial, c carrier) {
	rig := a.serve(askInRounds(3))
	request := c.from("alice")
	for _, answers := range []string{"", `{"q1":` + accepted + `}`} {
		response := rig.send(request.answering(answers))
		if request.token = response.token(); request.token == "" {
			a.stopf("%.500s", response.raw)
		}
	}
	rig.send(request.answering(`{"q1":` + accepted + `,"q2":` + accepted + `,"q3":` + accepted + `}`))
	if last := rig.lastCall(); len(last.answers) != 1 || last.answers["q2"] == "" {
		a.failf("the handler saw %v", last.answers)
	}
}

func otherKinds(a *trial, c carrier) {
	for _, asked := range kindCases {
		rig := a.serve(asking(asked.kind))
		retry := rig.begin(c.from("alice"))
		for _, answered := range kindCases {
			request := retry.answering(`{"confirm":` + answered.whole + `}`)
			if asked.kind.Takes(answered.kind) {
				rig.completes(request)
			} else {
				rig.keptFrom(answered.whole, request)
			}
		}
	}
}

func nullAnswers(a *trial, c carrier) {
	wrongAnswers(a, c, func(k kindCase) []string { return k.nulls })
}

func unsoundAnswers(a *trial, c carrier) {
	wrongAnswers(a, c, func(k kindCase) []string { return k.unsound })
}

func wrongAnswers(a *trial, c carrier, answers func(kindCase) []string) {
	for _, k := range kindCases {
		rig := a.serve(asking(k.kind))
		retry := rig.begin(c.from("alice"))
		for _, answer := range answers(k) {
			rig.keptFrom(answer, retry.answering(`{"confirm":`+answer+`}`))
		}
	}
}

// nullFields sends a null for a field that the user left empty, as the types of the Python SDK allow.
func nullFields(a *trial, c carrier) {
	for _, content := range []string{`{"value":"yes","note":null}`, `{"note":null,"value":"yes"}`, `{"note":null}`, `null`} {
		rig := a.serve(confirm)
		rig.completes(rig.begin(c.from("alice")).answering(`{"confirm":{"action":"accept","content":` + content + `}}`))
		answer := rig.lastCall().answers["confirm"]
		if strings.Contains(answer, "note") || strings.Contains(answer, "null") || strings.Contains(content, "yes") != strings.Contains(answer, `"yes"`) {
			a.failf("the handler saw %s", answer)
		}
	}
}

func contentOfANo(a *trial, c carrier) {
	for _, action := range []string{"decline", "cancel"} {
		rig := a.serve(confirm)
		no := `{"confirm":{"action":"` + action + `","content":{"value":"hush"}}}`
		rig.completes(rig.begin(c.from("alice")).answering(no))
		answer := rig.lastCall().answers["confirm"]
		if !strings.Contains(answer, action) || strings.Contains(answer, "hush") {
			a.failf("the handler saw %s", answer)
		}
	}
}

func undeclared(a *trial, c carrier) {
	for _, k := range kindCases {
		rig := a.serve(asking(k.kind))
		for _, capabilities := range []string{k.capabilities, `{}`} {
			request := c.from("alice")
			request.capabilities = capabilities
			response := rig.send(request)
			if response.Error == nil {
				a.failf("a client with %s: %.500s", capabilities, response.raw)
			}
			rig.tellsNothing("a client that cannot be asked", response)
		}
		rig.completes(rig.begin(c.from("alice")).answering(`{"confirm":` + k.whole + `}`))
	}
}

// elicitFormat seals every state as one that package elicit wrote.
type elicitFormat struct{ tripseal.Format }

func (f elicitFormat) Seal(ctx context.Context, b *tripseal.Binding, claims *tripseal.Claims) (string, error) {
	written := *claims
	written.Elicit = true
	return f.Format.Seal(ctx, b, &written)
}

// pinnedWording sends back a token like one that package elicit sealed on another replica of
// the same service.
func pinnedWording(a *trial, c carrier) {
	rig := a.serve(confirm, func(config *tripseal.Config, _ *Server) {
		config.Format, config.Keys = elicitFormat{tripseal.NativeFormat(config.Keys)}, nil
	})
	retry := rig.begin(c.from("alice"))
	for _, request := range []request{retry, retry.answering("")} {
		rig.keptFrom("the answer to a question whose wording is pinned", request)
		if state := rig.lastCall().state; state != "" {
			a.failf("the handler got the state %q", state)
		}
	}
}
