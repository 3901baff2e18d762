package wire

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/internal/strictjson"
	"github.com/tripseal/tripseal/internal/whose"
)

// open does the work of [Engine.Open]. A door may have more to check before anything of the message is opened: the
// function ready is called for each message of the right form. If it returns false, nothing is opened.
func (e *Engine) open(
	ctx context.Context, text string, caller tripseal.Principal, ready func(*Exchange) bool,
) *Exchange {
	defer e.turn(text)()
	x := &Exchange{engine: e, caller: caller}
	m, why := readEnvelope(text, nil)
	switch x.Method = m.method; {
	case why != "":
		x.refuse(ctx, invalidRequest, why)
		return x
	case m.isAnswer():
	case m.id != "" && !fitsRequest(m.id):
		x.ID = m.id // for the error
		x.refuse(ctx, invalidRequest, "a request whose id is neither a string nor an integer of at most 53 bits")
		return x
	default:
		x.ID, x.sameID, x.kind = m.id, m.sameID, kinds[m.method]
	}
	switch {
	case !ready(x):
	case m.isAnswer(): // a client of an older revision answers a question of the server
		if carriesState(&m.result) {
			x.refuse(ctx, invalidRequest, "a state in an answer of the client")
			break
		}
		x.Forward = m.text
		raw := m.result.Raw
		if fields, clear := answerNames.read(raw); clear && hasNull(raw) && kindOf(fields) == tripseal.KindForm {
			at := m.result.From
			x.Forward = m.text[:at] + withoutNulls(raw, &fields[3]) + m.text[at+len(raw):]
		}
	case m.isNotification() && x.kind != plain:
		x.refuse(ctx, invalidRequest, "a call without an id, which nobody could answer")
	case x.kind == call:
		x.openCall(ctx, &m)
	case x.kind == list:
		x.openList(ctx, &m)
	case carriesState(&m.params):
		x.refuse(ctx, invalidParams, "a state in a request whose method carries none")
	default:
		x.Forward = m.text
	}
	return x
}

// refuse logs that a message of the client has the wrong form, and sets x.Malformed. If the message needs an answer,
// refuse sets x.Reply to an error.
func (x *Exchange) refuse(ctx context.Context, wire tripseal.WireError, why string) {
	x.engine.warn(ctx, "a message of the client was refused", "method", tripseal.PlainText(x.Method), "cause", why)
	x.Malformed = true
	if x.ID != "" || x.Method == "" { // a notification gets no answer
		x.Reply = errorMessage(x.ID, wire)
	}
}

// carriesState reports whether a value is an object with a member requestState, in any spelling, or one that cannot be
// read.
func carriesState(value *field) bool {
	if !value.isObject() {
		return false
	}
	fields, ok := plainNames.read(value.Raw)
	return !ok || fields[0].present
}

// readParams reads the params of a request. It treats missing params, and null, as an object without members.
func readParams(m *envelope, n *names) ([]field, bool) {
	if !m.params.present || m.params.Raw == "null" {
		return make([]field, len(n.list)), true
	}
	return n.read(m.params.Raw)
}

func (x *Exchange) openCall(ctx context.Context, m *envelope) {
	params, ok := readParams(m, callNames)
	if !ok {
		x.refuse(ctx, invalidParams, "params that are not an object, or that two parsers read differently")
		return
	}
	target, arguments, state, answers, meta := &params[0], &params[2], &params[3], &params[4], &params[5]
	if m.method == "resources/read" {
		target = &params[1]
	}
	given, why := readAnswers(answers)
	switch {
	case !target.isString():
		why = "a call without the name of what it calls"
	case state.present && state.Raw != "null" && state.Text == "": // to the boundary, "" means that there is no token
		x.reject(ctx, tripseal.ErrRejected, "a state that is empty, or not a text")
		return
	}
	if why != "" {
		x.refuse(ctx, invalidParams, why)
		return
	}
	if x.Target, x.declared = target.Text, meta.Raw; x.agrees != nil && !x.agrees() { // before the token is spent
		x.refuse(ctx, headerMismatch, "Mcp-Method or Mcp-Name differs from the message")
		return
	}
	var err error
	x.round, err = x.engine.boundary.Open(ctx, tripseal.Request{
		Method: m.method, Target: x.Target, Arguments: []byte(arguments.Raw), Principal: x.caller,
	}, state.Text)
	if err != nil {
		x.reject(ctx, err, "")
		return
	}
	var edits changes
	if plaintext, has := x.round.State(); has {
		edits = append(edits, change{"requestState", strictjson.Quote(plaintext)})
	} else if state.present {
		edits = append(edits, change{"requestState", ""})
	}
	x.arrival.Method, x.arrival.Target, x.arrival.Logger = x.Method, x.Target, x.engine.log
	if kept, all := x.keepAnswers(ctx, answers.Raw, given); !all {
		edits = append(edits, change{"inputResponses", kept})
	}
	if x.mark != "" {
		edits = append(edits, change{"_meta", marked(meta.Raw, x.mark)})
	} else if hasMark(meta.Raw) {
		edits = append(edits, change{"_meta", changes{{MarkName, ""}}.apply(meta.Raw, 0, meta.Raw)})
	}
	x.Forward = edits.apply(m.text, m.params.From, m.params.Raw)
}

// declaredIn returns the capabilities that a request declares in its _meta. It returns false if the request has no such
// declaration: then it is of an older protocol revision. If two parsers could read the declaration differently, it
// declares nothing.
func declaredIn(meta string) (can adapter.Capabilities, declared bool) {
	fields, ok := metaNames.read(meta)
	if !ok || !fields[0].present {
		return can, !ok && strings.HasPrefix(meta, "{")
	}
	if fields, ok = capabilityNames.read(fields[0].Raw); !ok {
		return can, true
	}
	modes, _ := optionNames.read(fields[0].Raw)
	options, _ := optionNames.read(fields[1].Raw)
	can.URL = modes[1].present
	can.Form = modes[0].present || fields[0].isObject() && !can.URL
	can.Sampling, can.SamplingTools = fields[1].isObject(), options[2].present
	can.Roots = fields[2].isObject()
	return can, true
}

// reject sets the answer to a call whose token was rejected, or for which the boundary failed. It logs the given
// reason, unless that is "".
func (x *Exchange) reject(ctx context.Context, err error, why string) {
	if why != "" {
		x.engine.warn(ctx, "a token was rejected", "method", tripseal.PlainText(x.Method), "cause", why)
	}
	if errors.Is(err, tripseal.ErrRejected) && x.Method == "tools/call" && x.engine.rejectedText != "" {
		x.Reply = resultMessage(x.ID, x.engine.rejectedText)
		return
	}
	x.Reply = errorMessage(x.ID, tripseal.Wire(err))
}

// answer is an answer of the client to one question.
type answer struct {
	field
	kind tripseal.Kind
	text string // what the server may get of it
}

// readAnswers reads the client's answers. If they must be refused, reason says why. Otherwise reason is "".
func readAnswers(answers *field) (list []answer, reason string) {
	if !answers.present || answers.Raw == "null" {
		return nil, ""
	}
	all, ok := readAll(answers.Raw)
	for _, f := range all {
		a := answer{field: f, text: f.Raw}
		if f.Raw[0] == '{' {
			fields, clear := answerNames.read(f.Raw)
			_, twice := strictjson.Sum([]byte(f.Raw)) // it fails if any object has two members with one name
			ok = ok && clear && twice == nil
			if a.kind = kindOf(fields); hasNull(a.text) {
				if a.kind == tripseal.KindForm {
					a.text = withoutNulls(f.Raw, &fields[3])
				}
				if hasNull(a.text) {
					a.kind = 0
				}
			}
		}
		list = append(list, a)
	}
	if !ok {
		return nil, "answers that are not an object, or that two parsers read differently"
	}
	return list, ""
}

// kindOf returns the kind of an answer. It returns 0 if the answer fits no kind or several kinds.
func kindOf(fields []field) (kind tripseal.Kind) {
	for i, of := range []tripseal.Kind{tripseal.KindForm, tripseal.KindSampling, tripseal.KindRoots} {
		if fields[i].present {
			if kind != 0 {
				return 0
			}
			kind = of
		}
	}
	return kind
}

// withoutNulls returns the text of an answer without the members of its content that are null. Some clients write such
// a member for an optional field that the user left empty.
func withoutNulls(answer string, content *field) string {
	if content.Raw == "null" {
		return changes{{"content", ""}}.apply(answer, 0, answer)
	}
	if !strings.HasPrefix(content.Raw, "{") {
		return answer
	}
	var kept strings.Builder
	members := strictjson.ReadMembers(content.Raw)
	for member, ok := members.Next(); ok; member, ok = members.Next() {
		if member.Raw != "null" {
			if kept.Len() > 0 {
				kept.WriteByte(',')
			}
			kept.WriteString(content.Raw[member.At : member.From+len(member.Raw)])
		}
	}
	return answer[:content.From] + "{" + kept.String() + "}" + answer[content.From+len(content.Raw):]
}

// hasNull reports whether a JSON text has a null in it, at any depth. The text must be valid: outside strings, only a
// null begins with n.
func hasNull(text string) bool {
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case 'n':
			return true
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		}
	}
	return false
}

// keepAnswers returns the JSON text of the answers that the server may see, or "" if it may see none. The second result
// is true if the server may see all answers as they are.
func (x *Exchange) keepAnswers(ctx context.Context, text string, given []answer) (kept string, all bool) {
	if state, ok := x.round.Elicit(); ok {
		x.keepForElicit(ctx, state, given)
		return "", len(given) == 0
	}
	if len(given) == 0 {
		return text, true
	}
	unsolicited := x.round.First() && x.Method == "tools/call" && x.engine.unsolicited[x.Target]
	var edits changes
	dropped := 0
	for i := range given {
		a := &given[i]
		if a.kind == 0 || !unsolicited && !x.round.Accepts(a.Name, a.kind) {
			edits = append(edits, change{a.Name, ""})
			dropped++
		} else if a.text != a.Raw {
			edits = append(edits, change{a.Name, a.text})
		}
	}
	x.round.Dropped(ctx, dropped)
	if dropped < len(given) {
		kept = edits.apply(text, 0, text)
	}
	return kept, len(edits) == 0
}

// keepForElicit keeps the state that package elicit wrote, and the answers, which package elicit checks itself. Only
// the mark of the call leads to them: in a session, some SDKs give a call the context of another one.
func (x *Exchange) keepForElicit(ctx context.Context, state string, given []answer) {
	kinds, arrival := make(map[string]tripseal.Kind, len(given)), x.arrival
	arrival.State, arrival.Answers = state, make(map[string]json.RawMessage, len(given))
	for i := range given {
		kinds[given[i].Name], arrival.Answers[given[i].Name] = given[i].kind, json.RawMessage(given[i].text)
	}
	if !x.engine.proxied {
		if x.mark == "" {
			x.mark = rand.Text()
		}
		whose.Arrivals.Store(x.mark, &arrival)
	}
	dropped := len(given)
	for q := range x.round.Asked {
		if kind, ok := kinds[q.Key]; ok && q.Kind.Takes(kind) {
			dropped--
		}
	}
	x.round.Dropped(ctx, dropped)
}

func (x *Exchange) openList(ctx context.Context, m *envelope) {
	params, ok := readParams(m, listNames)
	if !ok || params[1].present {
		x.refuse(ctx, invalidParams,
			"a list with params that are not an object, that two parsers read differently, or that have a state")
		return
	}
	at, uri := &params[0], &params[2]
	switch {
	case at.present && at.Raw != "null" && !at.isString():
		x.refuse(ctx, invalidParams, "a cursor that is not a text")
		return
	case m.method == directory && !uri.isString():
		x.refuse(ctx, invalidParams, "a directory without a URI")
		return
	case m.method == directory:
		x.Target = uri.Text
	}
	var err error
	request := tripseal.Request{Method: m.method, Target: x.Target, Principal: x.caller}
	if x.page, err = x.engine.lists.Open(ctx, request, at.Text); err != nil {
		x.Reply = errorMessage(x.ID, cursor.Wire(err))
		return
	}
	x.Forward = m.text
	if !at.present {
		return
	}
	// Some servers do not return the first page if the cursor is empty or null. All servers return it if there is no
	// cursor, so remove an empty or null cursor.
	edits := changes{{"cursor", ""}}
	if at.Text != "" {
		edits[0].value = strictjson.Quote(string(x.page.Position()))
	}
	x.Forward = edits.apply(m.text, m.params.From, m.params.Raw)
}
