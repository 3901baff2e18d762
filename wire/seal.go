package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/internal/strictjson"
)

// isPlainAnswer reports whether a message may reach the client as it is, because it is the answer to the client's
// request and clearly has no state, question or cursor. It may miss such a message, but never takes another one for it,
// if a JSON encoder of this process wrote the message: whoever chooses the strings in it cannot write a quotation mark
// that is not escaped. It is false for each answer of another process.
func (x *Exchange) isPlainAnswer(message []byte) bool {
	if x.engine.proxied || x.ID == "" || x.mark != "" || x.done || x.instead.Load() != nil {
		return false
	}
	rest, ok := bytes.CutPrefix(message, []byte(`{"jsonrpc":"2.0","id":`+x.ID+`,"result":{`))
	return ok && bytes.HasSuffix(bytes.TrimRight(rest, "\n"), []byte("}}")) &&
		!slices.ContainsFunc(guardedEnds, func(end string) bool { return bytes.Contains(rest, []byte(end)) })
}

// guardedEnds has an end of each name and value that tells of a state, a question or a cursor.
var guardedEnds = []string{`State"`, `Requests"`, `_required"`, `Cursor"`}

// seal does the work of [Exchange.Seal], for a message that has been read.
func (x *Exchange) seal(ctx context.Context, m *envelope, why string) string {
	switch {
	case why == "" && !(m.isAnswer() && m.sameID == x.sameID):
		return x.engine.pass(ctx, m, why)
	case x.done:
		return x.engine.drop(ctx, "a second answer to one request")
	}
	x.done = true
	if instead := x.instead.Load(); instead != nil {
		return errorMessage(x.ID, *instead)
	}
	if why != "" { // this message may be the answer, and perhaps no other message follows
		return x.fail(ctx, why)
	}
	if m.isError {
		return m.text
	}
	switch x.kind {
	case call:
		return x.sealCall(ctx, m)
	case list:
		return x.sealPage(ctx, m)
	}
	if fields, ok := m.inResult(plainNames); m.result.isObject() && (!ok || fields[0].present) {
		return x.fail(ctx, "a state in a result whose method carries none")
	}
	return m.text
}

// fail returns an internal error that replaces an answer that must not be sent. It logs the given reason.
func (x *Exchange) fail(ctx context.Context, why string) string {
	tripseal.Logger(x.engine.log).ErrorContext(ctx, "wire: an answer of the server was refused",
		"method", tripseal.PlainText(x.Method), "cause", why)
	return x.Failed()
}

// drop returns "", which means that the client does not get the message. It logs the given reason.
func (e *Engine) drop(ctx context.Context, why string) string {
	e.warn(ctx, "a message of the server was dropped", "cause", why)
	return ""
}

// pass takes a message of the server that is no answer to a request of an exchange. It returns the message, or "" if
// the client must not see it.
func (e *Engine) pass(ctx context.Context, m *envelope, why string) string {
	switch {
	case why != "":
		return e.drop(ctx, why)
	case m.result.isObject():
		fields, ok := m.inResult(guardedNames)
		if !ok || slices.ContainsFunc(fields, func(f field) bool { return f.present }) {
			return e.drop(ctx,
				"an answer that belongs to no request, and has a state or a cursor, or cannot be read in one way only")
		}
	case carriesState(&m.params):
		return e.drop(ctx, "a state in a message that must not have one")
	}
	return m.text
}

// guardedNames lists the members of a result that must not reach the client unsealed.
var guardedNames = namesOf("requestState", "inputRequests", "nextCursor")

func (x *Exchange) sealCall(ctx context.Context, m *envelope) string {
	result, ok := m.inResult(askingNames)
	if !ok {
		return x.fail(ctx, "a result that is not an object, or that two parsers read differently")
	}
	kind, state, asked := &result[0], &result[1], &result[2]
	if kind.Text != "input_required" {
		if state.present || asked.present {
			return x.fail(ctx, "a state or questions in a result that does not ask")
		}
		return m.text
	}
	if x.inSession { // some servers send an answer to another request of the session that has the same id
		return x.fail(ctx,
			"a result that asks in a session: only older revisions have sessions, and they have no such results")
	}
	if state.present && !state.isString() {
		return x.fail(ctx, "a state that is not a text")
	}
	questions, needs, why := readQuestions(asked)
	if why != "" {
		return x.fail(ctx, why)
	}
	can, declared := declaredIn(x.declared)
	if declared && slices.ContainsFunc(needs, func(n adapter.Need) bool { return !can.Meet(n) }) {
		return errorMessage(x.ID, adapter.MissingCapabilities(needs...))
	}
	var plaintext *string
	if state.present {
		plaintext = &state.Text
	}
	token, err := x.engine.boundary.Seal(ctx, &x.round, plaintext, questions...)
	if err != nil {
		return errorMessage(x.ID, tripseal.Wire(err))
	}
	// A result with questions but no state gets a token too. The token pins the questions.
	return changes{{"requestState", strictjson.Quote(token)}}.apply(m.text, m.result.From, m.result.Raw)
}

// readQuestions reads the questions of a result. It also returns what a client must be able to do to answer them. If
// the questions must not be sent, reason says why. Otherwise reason is "".
func readQuestions(asked *field) (questions []tripseal.Question, needs []adapter.Need, reason string) {
	if !asked.present || asked.Raw == "null" {
		return nil, nil, ""
	}
	all, ok := readAll(asked.Raw)
	for _, f := range all {
		need := needOf(f.Raw)
		ok = ok && need.Kind != 0
		needs = append(needs, need)
		questions = append(questions, tripseal.Question{Key: f.Name, Kind: need.Kind})
	}
	if !ok {
		return nil, nil, "questions that are not an object, are of an unknown kind, or that two parsers read differently"
	}
	return questions, needs, ""
}

// needOf returns what a client must be able to do to answer a question. The Kind of the result is 0 if the question
// must not be sent. The parameter text is the JSON text of the question.
func needOf(text string) adapter.Need {
	fields, ok := questionNames.read(text)
	if !ok {
		return adapter.Need{}
	}
	method, params := &fields[0], &fields[1]
	if method.Text == "roots/list" {
		return adapter.Need{Kind: tripseal.KindRoots}
	}
	how, ok := modeNames.read(params.Raw)
	switch {
	case !ok:
		return adapter.Need{}
	case method.Text == "elicitation/create" && how[0].Text == "url":
		return adapter.Need{Kind: tripseal.KindURL}
	case method.Text == "elicitation/create":
		return adapter.Need{Kind: tripseal.KindForm}
	case method.Text == "sampling/createMessage":
		return adapter.Need{Kind: tripseal.KindSampling, Tools: how[1].present || how[2].present}
	}
	return adapter.Need{}
}

// maxCached is the longest caching time that the engine assumes for a page and its cursor, even if the server allows
// more.
const maxCached = 365 * 24 * time.Hour

func (x *Exchange) sealPage(ctx context.Context, m *envelope) string {
	page, ok := m.inResult(pageNames)
	next, state, ttl, scope := &page[0], &page[1], &page[2], &page[3]
	switch {
	case !ok || state.present:
		return x.fail(ctx, "a page that is not an object, that two parsers read differently, or that has a state")
	case !next.present || next.Raw == "null":
		return m.text
	case !next.isString():
		return x.fail(ctx, "a cursor that is not a text")
	}
	of := cursor.NextPage{Position: []byte(next.Text)}
	var milliseconds float64
	if json.Unmarshal([]byte(ttl.Raw), &milliseconds) == nil && milliseconds > 0 {
		// If a cache may serve the page to other users, the cursor must work for them too.
		of.Shared = scope.Text == "public"
		of.Cached = time.Duration(min(milliseconds, float64(maxCached.Milliseconds()))) * time.Millisecond
	}
	sealed, err := x.page.Next(ctx, of)
	if err != nil {
		return errorMessage(x.ID, cursor.Wire(err))
	}
	return changes{{"nextCursor", strictjson.Quote(sealed)}}.apply(m.text, m.result.From, m.result.Raw)
}
