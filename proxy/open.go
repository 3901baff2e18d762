package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/exactjson"
)

// open reads a message of the client. It sets e.Forward if it changes the message. It sets
// e.Reply or e.Malformed, or both, if the server must not see the message. If it sets none of
// these three, the message is forwarded as it came.
func (e *Exchange) open(ctx context.Context, text string, caller tripseal.Principal) {
	m, why := readEnvelope(text, nil)
	if why != "" {
		e.refuse(ctx, invalidRequest, why)
		return
	}
	e.Method = m.method
	if m.isAnswer() { // a client of an older revision answers a question of the server
		if m.result != nil && carriesState(m.result.Raw) {
			e.refuse(ctx, invalidRequest, "a state in an answer of the client")
		}
		return
	}
	e.ID, e.sameID, e.kind = m.id, m.sameID, kinds[m.method]
	if m.isNotification() && e.kind != plain {
		e.refuse(ctx, invalidRequest, "a call without an id, which nobody could answer")
		return
	}
	switch e.kind {
	case call:
		e.openCall(ctx, &m, caller)
	case list:
		e.openList(ctx, &m, caller)
	default:
		if m.params != nil && carriesState(m.params.Raw) {
			e.refuse(ctx, invalidParams, "a state in a request whose method carries none")
		}
	}
}

// refuse logs that a message of the client has the wrong form, and sets e.Malformed. If the message
// needs an answer, refuse sets e.Reply to an error.
func (e *Exchange) refuse(ctx context.Context, wire tripseal.WireError, why string) {
	e.proxy.logger().WarnContext(ctx, "proxy: a message of the client was refused", "method", tripseal.PlainText(e.Method), "cause", why)
	e.Malformed = true
	if e.ID != "" || e.Method == "" { // a notification gets no answer
		e.Reply = errorMessage(e.ID, wire)
	}
}

// carriesState reports whether the JSON text is an object with a member requestState, in any
// spelling. It also returns true if the object cannot be read. It returns false for a text that
// is not an object.
func carriesState(text string) bool {
	if text[0] != '{' {
		return false
	}
	fields, ok := plainNames.read(text)
	return !ok || fields[0].present
}

// readParams reads the params of a request. It treats missing params, and null, as an object
// without members.
func readParams(m *envelope, n *names) ([]field, bool) {
	if m.params == nil || m.params.Raw == "null" {
		return make([]field, len(n.list)), true
	}
	return n.read(m.params.Raw)
}

func (e *Exchange) openCall(ctx context.Context, m *envelope, caller tripseal.Principal) {
	params, ok := readParams(m, callNames)
	if !ok {
		e.refuse(ctx, invalidParams, "params that are not an object, or that two parsers read differently")
		return
	}
	target := &params[atName]
	if m.method == "resources/read" {
		target = &params[atURI]
	}
	state, answers := &params[atState], &params[atAnswers]
	given, why := readAnswers(answers)
	switch {
	case !target.isString():
		why = "a call without the name of what it calls"
	case state.present && state.Text == "": // to the boundary, "" means that there is no token
		e.reject(ctx, tripseal.ErrRejected, "a state that is empty, or not a text")
		return
	}
	if why != "" {
		e.refuse(ctx, invalidParams, why)
		return
	}
	e.Target, e.can = target.Text, declaredIn(params[atMeta].Raw)
	var err error
	e.round, err = e.proxy.boundary.Open(ctx, tripseal.Request{
		Method: m.method, Target: e.Target, Arguments: []byte(params[atArguments].Raw), Principal: caller,
	}, state.Text)
	if err != nil {
		e.reject(ctx, err, "")
		return
	}
	change := changes{}
	// foreign is true if another server sealed the state. That server has the same keys, and uses
	// gosdk/elicit or a similar package. The proxy's server cannot read such a state.
	foreign := adapter.PinsWording(&e.round)
	if plaintext, has := e.round.State(); has && !foreign {
		change["requestState"] = quoted(plaintext)
	} else if state.present {
		change["requestState"] = ""
	}
	if kept, all := e.keepAnswers(ctx, answers.Raw, given, foreign); !all {
		change["inputResponses"] = kept
	}
	e.Forward = change.apply(m.text, m.params.From, m.params.Raw)
}

// declaredIn returns the capabilities that a request declares in its _meta. It returns nil if
// the request has no such declaration: then it is of an older protocol revision. If two
// parsers could read the declaration differently, the result is not nil, but has no
// capabilities.
func declaredIn(meta string) *adapter.Capabilities {
	fields, ok := metaNames.read(meta)
	if ok && !fields[0].present || !strings.HasPrefix(meta, "{") {
		return nil
	}
	var declared map[string]any
	if ok {
		json.Unmarshal([]byte(fields[0].Raw), &declared) // if the declaration is not an object, it declares no capability
	}
	can := adapter.CapabilitiesIn(declared)
	return &can
}

// reject sets the answer to a call whose token was rejected, or for which the boundary failed.
// It logs the given reason, unless that is "".
func (e *Exchange) reject(ctx context.Context, err error, why string) {
	if why != "" {
		e.proxy.logger().WarnContext(ctx, "proxy: a token was rejected", "method", tripseal.PlainText(e.Method), "cause", why)
	}
	if errors.Is(err, tripseal.ErrRejected) && e.Method == "tools/call" && e.proxy.rejectedText != "" {
		e.Reply = resultMessage(e.ID, e.proxy.rejectedText)
		return
	}
	e.Reply = errorMessage(e.ID, tripseal.Wire(err))
}

// answer is an answer of the client to one question.
type answer struct {
	field
	kind tripseal.Kind
}

// readAnswers reads the client's answers. If they must be refused, reason says why. Otherwise
// reason is "".
func readAnswers(answers *field) (list []answer, reason string) {
	if !answers.present || answers.Raw == "null" {
		return nil, ""
	}
	all, ok := readAll(answers.Raw)
	for _, f := range all {
		a := answer{field: f}
		if f.Raw[0] == '{' {
			fields, clear := answerNames.read(f.Raw)
			ok = ok && clear && exactjson.Unmistakable([]byte(f.Raw), exactjson.Names{})
			a.kind = kindOf(f.Raw, fields)
		}
		list = append(list, a)
	}
	if !ok {
		return nil, "answers that are not an object, or that two parsers read differently"
	}
	return list, ""
}

// kindOf returns the kind of an answer. It returns 0 if the answer fits no kind or several
// kinds, or has a null in it.
func kindOf(text string, fields []field) (kind tripseal.Kind) {
	for i, of := range []tripseal.Kind{tripseal.KindForm, tripseal.KindSampling, tripseal.KindRoots} {
		if fields[i].present {
			if kind != 0 {
				return 0
			}
			kind = of
		}
	}
	var value any
	if json.Unmarshal([]byte(text), &value) != nil || adapter.HasNull(value) {
		return 0
	}
	return kind
}

// keepAnswers returns the JSON text of the answers that the server may see, or "" if it may
// see none. The second result is true if the server may see all answers.
func (e *Exchange) keepAnswers(ctx context.Context, text string, given []answer, foreign bool) (kept string, all bool) {
	unsolicited := e.round.First() && e.Method == "tools/call" && e.proxy.unsolicited[e.Target]
	drop := changes{}
	for i := range given {
		a := &given[i]
		if a.kind == 0 || foreign || !unsolicited && !e.round.Accepts(a.Name, a.kind) {
			drop[a.Name] = ""
		}
	}
	e.round.Dropped(ctx, len(drop))
	if len(drop) < len(given) {
		kept = string(drop.apply(text, 0, text))
	}
	return kept, len(drop) == 0
}

func (e *Exchange) openList(ctx context.Context, m *envelope, caller tripseal.Principal) {
	params, ok := readParams(m, listNames)
	if !ok || params[1].present {
		e.refuse(ctx, invalidParams, "a list with params that are not an object, that two parsers read differently, or that have a state")
		return
	}
	at := &params[0]
	if at.present && at.Raw != "null" && !at.isString() {
		e.refuse(ctx, invalidParams, "a cursor that is not a text")
		return
	}
	var err error
	if e.page, err = e.proxy.lists.Open(ctx, tripseal.Request{Method: m.method, Principal: caller}, at.Text); err != nil {
		e.Reply = errorMessage(e.ID, cursor.Wire(err))
		return
	}
	if !at.present {
		return
	}
	// Some servers do not return the first page if the cursor is empty or null. All servers return
	// it if there is no cursor, so remove an empty or null cursor.
	change := changes{"cursor": ""}
	if at.Text != "" {
		change["cursor"] = quoted(string(e.page.Position()))
	}
	e.Forward = change.apply(m.text, m.params.From, m.params.Raw)
}
