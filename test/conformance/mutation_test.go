package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// mutation is one way to change a request.
type mutation struct {
	name  string
	apply func(*attacker, *shot)
}

// mutations has all mutations, grouped by what they change. Each can be applied to every
// request.
var mutations = [][]mutation{
	{
		{"the token dropped", func(a *attacker, s *shot) { at := a.token(s); delete(at.object, at.member) }},
		{"the token changed", func(a *attacker, s *shot) { at := a.token(s); at.set(a.changed(at.text())) }},
		{"the token cut", func(a *attacker, s *shot) { at := a.token(s); at.set(at.text()[:a.rand.IntN(len(at.text())+1)]) }},
		{"another token", func(a *attacker, s *shot) { at := a.token(s); at.set(a.otherToken()) }},
		{"a token that is none", func(a *attacker, s *shot) { at := a.token(s); at.set(a.junk()) }},
		{"another user", func(a *attacker, s *shot) { s.user = pick(a, []string{"alice", "bob", "", "nobody"}) }},
	},
	{
		{"the answers dropped", func(a *attacker, s *shot) { delete(s.members, "inputResponses") }},
		{"an answer is null", func(a *attacker, s *shot) { at := a.answer(s); at.set(nil) }},
		{"a null in an answer", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.nulled(at.get())) }},
		{"an answer of nulls", func(a *attacker, s *shot) { at := a.answer(s); at.set(pick(a, nulls)) }},
		{"an answer of another kind", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.otherAnswer()) }},
		{"an answer under another key", func(a *attacker, s *shot) {
			at := a.answer(s)
			at.object[pick(a, names)] = at.get()
			delete(at.object, at.member)
		}},
		{"an unasked answer", func(a *attacker, s *shot) { at := a.answer(s); at.object[pick(a, names)] = a.otherAnswer() }},
		{"a refusal", func(a *attacker, s *shot) {
			at := a.answer(s)
			at.set(map[string]any{"action": pick(a, []string{"decline", "cancel"})})
		}},
		{"an odd action", func(a *attacker, s *shot) {
			at := a.answer(s)
			at.set(map[string]any{"action": a.junk(), "content": a.junk()})
		}},
		{"an answer changed", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.twist(at.get())) }},
		{"the answers changed", func(a *attacker, s *shot) {
			s.members["inputResponses"] = a.twist(s.members["inputResponses"])
		}},
	},
	{
		{"another name", func(a *attacker, s *shot) { s.members["name"] = a.name() }},
		{"an argument changed", func(a *attacker, s *shot) { s.members["arguments"] = a.twist(s.members["arguments"]) }},
		{"another argument", func(a *attacker, s *shot) {
			s.members["arguments"] = withMember(s.members["arguments"], pick(a, names), a.junk())
		}},
		{"few capabilities", func(a *attacker, s *shot) { s.members["_meta"] = meta(pick(a, fewCapabilities)) }},
		{"junk in _meta", func(a *attacker, s *shot) { s.members["_meta"] = a.twist(s.members["_meta"]) }},
		{"the params changed", func(a *attacker, s *shot) { s.members = a.twistObject(s.members) }},
		{"a member twice", func(a *attacker, s *shot) { s.change(a.doubled) }},
	},
	{
		{"another method", func(a *attacker, s *shot) { s.method = pick(a, methods) }},
		{"an odd id", func(a *attacker, s *shot) { s.id = pick(a, ids) }},
		{"another revision", func(a *attacker, s *shot) { s.headers["Mcp-Protocol-Version"] = pick(a, revisions) }},
		{"a header that differs", func(a *attacker, s *shot) {
			s.headers[pick(a, []string{"Mcp-Method", "Mcp-Name"})] = pick(a, []string{"", "tools/call", "x"})
		}},
		{"nobody's session", func(a *attacker, s *shot) {
			s.headers["Mcp-Session-Id"] = pick(a, []string{"x", strings.Repeat("y", 512)})
		}},
		{"the body cut", func(a *attacker, s *shot) { s.change(func(b []byte) []byte { return b[:a.rand.IntN(len(b))] }) }},
		{"a bit of the body changed", func(a *attacker, s *shot) { s.change(a.flipped) }},
		{"a list of requests", func(a *attacker, s *shot) {
			s.change(func(b []byte) []byte { return fmt.Appendf(nil, "[%s,%s]", b, b) })
		}},
		{"two bodies", func(a *attacker, s *shot) { s.change(func(b []byte) []byte { return append(b, b...) }) }},
		{"white space", func(a *attacker, s *shot) {
			s.change(func(b []byte) []byte { return append([]byte(" \n"), b...) })
		}},
	},
}

// The mutations replace recorded values with these values. The list of methods leaves out
// subscriptions/listen, because the response to it is an endless stream.
var (
	methods = []string{
		"tools/call", "prompts/get", "resources/read", "tools/list", "prompts/list", "resources/list",
		"resources/templates/list", "initialize", "ping", "server/discover", "completion/complete", "logging/setLevel",
		"resources/subscribe", "resources/unsubscribe",
		"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
		"elicitation/create", "sampling/createMessage", "roots/list", "tools/Call", "", "rpc.discover", "\x00",
	}
	revisions = []string{"", "2024-11-05", "2025-03-26", older, "2025-11-25", newer, "2026-07-29", "9999-99-99", "x"}
	ids       = []string{
		"", "0", "-1", "1.5", "9223372036854775808", "1e400", `""`, `"1"`, `"\ud800"`, "null", "true", "[]", "{}",
		`"` + strings.Repeat("i", 4096) + `"`,
	}
	names = []string{
		"", "confirm", "name", "sample", "roots", "user_name", "step1", "step2", "client_roots", "greeting", "cursor",
		"service", "__proto__", "\x00", "ünï", strings.Repeat("n", 300),
	}
	fewCapabilities = []json.RawMessage{
		[]byte(`{}`), []byte(`null`), []byte(`{"elicitation":{}}`), []byte(`{"elicitation":{"url":{}}}`),
		[]byte(`{"elicitation":null}`), []byte(`{"sampling":{}}`), []byte(`{"roots":{}}`), []byte(`[]`), []byte(`"all"`),
		[]byte(`{"elicitation":{"form":{}},"sampling":null,"roots":7}`),
	}
	// nulls has answers that contain null or lack a value, so a handler may find nil in them.
	nulls = []json.RawMessage{
		[]byte(`{"roots":[null]}`), []byte(`{"roots":null}`), []byte(`{"roots":[{"uri":"file:///a"},null,{}]}`),
		[]byte(`{"roots":[{"uri":null,"_meta":{"a":null}}]}`), []byte(`{"action":"accept","content":null}`),
		[]byte(`{"action":"accept","content":{"ok":null,"name":null}}`), []byte(`{"action":"accept","_meta":null}`),
		[]byte(`{"role":"assistant","model":"m","content":null}`),
		[]byte(`{"role":"assistant","model":"m","content":[null]}`),
		[]byte(`{"role":"assistant","model":"m","content":{"type":"text","text":null,"annotations":null}}`),
		[]byte(`{"role":"assistant","model":"m","content":[{"type":"tool_result","toolUseId":"x","content":[null]}]}`),
		[]byte(`{"role":"assistant","model":"m","content":[{"type":"tool_use","id":null,"name":null,"input":null}]}`),
		[]byte(`{"role":null,"model":null,"content":[]}`), []byte(`{"action":null}`),
	}
	kinds = []any{
		json.RawMessage(`{"action":"accept","content":{"ok":true}}`), json.RawMessage(`{"action":"accept"}`),
		json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}`),
		json.RawMessage(`{"roots":[]}`), json.RawMessage(`{"roots":[],"action":"accept","role":"user"}`),
	}
	oddValues = []any{
		nil, true, false, 0, -1, 1.5, json.Number("1e308"), json.Number("-9223372036854775809"),
		json.Number("123456789012345678901234567890"), "", "x", "\x00", "null", "true", "\u202e\ufeff\U0001f600e\u0301",
		json.RawMessage(`"\ud800"`), json.RawMessage(`"\udc00\ud800"`), []any{}, map[string]any{}, []any{nil},
		map[string]any{"": nil}, []any{[]any{[]any{}}}, map[string]any{"a": map[string]any{"a": nil}},
		strings.Repeat("long ", 2000), strings.Repeat("\u0000", 1000), strings.Repeat("X", 70<<10),
		json.RawMessage(strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)),
		json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)),
		json.RawMessage("[" + strings.Repeat("0,", 20000) + "0]"),
	}
)

// junk returns a copy of an odd value, because later mutations may change what junk returns, and
// must not change oddValues.
func (a *attacker) junk() any { return cloned(pick(a, oddValues)) }

func cloned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		v = maps.Clone(v)
		for name := range v {
			v[name] = cloned(v[name])
		}
		return v
	case []any:
		v = slices.Clone(v)
		for i := range v {
			v[i] = cloned(v[i])
		}
		return v
	}
	return value
}

func (a *attacker) name() any {
	if len(a.recorded.names) > 0 && a.chance(70) {
		return pick(a, a.recorded.names)
	}
	return a.junk()
}

// token returns the place of a token in the request s. If s has no token, it adds one.
func (a *attacker) token(s *shot) place {
	if held := tokens(s.members); len(held) > 0 {
		return pick(a, held)
	}
	s.members["requestState"] = a.otherToken()
	return place{s.members, "requestState"}
}

func (a *attacker) otherToken() string {
	if len(a.recorded.tokens) == 0 {
		return "ms1.AAAA"
	}
	return pick(a, a.recorded.tokens)
}

// changed returns the token with one character replaced or inserted.
func (a *attacker) changed(token string) string {
	at := a.rand.IntN(len(token) + 1)
	char := pick(a, []string{"A", "b", "9", "-", "_", "=", ".", " ", "\n", "\x00", "é", "+", "/"})
	if at < len(token) && a.chance(70) {
		return token[:at] + char + token[at+1:]
	}
	return token[:at] + char + token[at:]
}

// answer returns the place of an answer in the request s. If s has no answer, it adds one.
func (a *attacker) answer(s *shot) place {
	answers, ok := s.members["inputResponses"].(map[string]any)
	if !ok || len(answers) == 0 {
		answers = map[string]any{pick(a, names): a.otherAnswer()}
		s.members["inputResponses"] = answers
	}
	return place{answers, pick(a, slices.Sorted(maps.Keys(answers)))}
}

func (a *attacker) otherAnswer() any {
	if len(a.recorded.answers) > 0 && a.chance(50) {
		text, _ := json.Marshal(pick(a, a.recorded.answers))
		return decode(text)
	}
	return pick(a, kinds)
}

// badAnswer returns a message of the older protocol revision. The message answers the question
// with the given id in a wrong way.
func (a *attacker) badAnswer(id, recorded json.RawMessage) []byte {
	text := func(value any) json.RawMessage {
		text, err := json.Marshal(value)
		if err != nil {
			return json.RawMessage("null")
		}
		return text
	}
	switch a.rand.IntN(12) {
	case 0:
		return answerText(json.RawMessage(pick(a, ids[1:])), recorded)
	case 1:
		code, message := pick(a, ids[1:]), text(a.junk())
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":%s}}`, id, code, message)
	case 2:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s}`, id)
	case 3:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s,"error":{"code":1,"message":"both"}}`, id, recorded)
	case 4:
		return answerText(id, text(map[string]any{"action": pick(a, []string{"decline", "cancel", "maybe"})}))
	case 5:
		return answerText(id, text(a.junk()))
	case 6:
		return answerText(id, text(a.otherAnswer()))
	case 7:
		return answerText(id, pick(a, nulls))
	case 8:
		return a.doubled(answerText(id, recorded))
	case 9, 10:
		return answerText(id, text(a.nulled(decode(recorded))))
	}
	return answerText(id, text(a.twist(decode(recorded))))
}

var memberName = regexp.MustCompile(`[{,]"([A-Za-z_]+)":`)

// doubled repeats one member of an object in the body, and gives the copy another value.
func (a *attacker) doubled(body []byte) []byte {
	found := memberName.FindAllSubmatchIndex(body, 50)
	if len(found) == 0 {
		return body
	}
	at := pick(a, found)
	value, err := json.Marshal(a.junk())
	if err != nil {
		value = []byte("null")
	}
	var out bytes.Buffer
	out.Write(body[:at[0]+1])
	fmt.Fprintf(&out, `"%s":%s,`, body[at[2]:at[3]], value)
	out.Write(body[at[0]+1:])
	return out.Bytes()
}

func (a *attacker) flipped(body []byte) []byte {
	body = bytes.Clone(body)
	body[a.rand.IntN(len(body))] ^= 1 << a.rand.IntN(8)
	return body
}

// node is one place inside a JSON value: a member of an object or an element of a list.
type node struct {
	set  func(any)
	drop func() // removes the member; nil for an element of a list
	get  func() any
}

// nodes returns all places inside a JSON value, in the same order every time.
func nodes(value any) (all []node) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, node{func(x any) { v[name] = x }, func() { delete(v, name) }, func() any { return v[name] }})
			all = append(all, nodes(v[name])...)
		}
	case []any:
		for i := range v {
			all = append(all, node{func(x any) { v[i] = x }, nil, func() any { return v[i] }})
			all = append(all, nodes(v[i])...)
		}
	}
	return all
}

// twist either changes one place inside the value and returns the value, or it returns an odd
// value instead.
func (a *attacker) twist(value any) any {
	inside := nodes(value)
	if len(inside) == 0 || a.chance(10) {
		return a.junk()
	}
	n := pick(a, inside)
	switch a.rand.IntN(5) {
	case 0:
		n.set(nil)
	case 1:
		n.set([]any{n.get()})
	case 2:
		n.set(map[string]any{pick(a, names): n.get()})
	case 3:
		if n.drop != nil {
			n.drop()
			break
		}
		fallthrough
	default:
		n.set(a.junk())
	}
	return value
}

// nulled replaces one place inside the value by null and returns the value. If the value has
// nothing inside, it returns null.
func (a *attacker) nulled(value any) any {
	inside := nodes(value)
	if len(inside) == 0 {
		return nil
	}
	pick(a, inside).set(nil)
	return value
}

// twistObject does the same as twist, but always returns an object.
func (a *attacker) twistObject(value map[string]any) map[string]any {
	if object, ok := a.twist(value).(map[string]any); ok {
		return object
	}
	return map[string]any{}
}

// systematicShots returns functions that make the requests to send first. A random choice might
// miss these requests. Each request changes one place in the answers or the arguments of a
// recorded round: the place is removed, or gets null or a value of another type.
func systematicShots(r *recording) (shots []func(*attacker) *shot) {
	replacements := []any{nil, false, 0, "", []any{}, map[string]any{}, []any{nil}}
	for _, round := range r.rounds {
		if round.user != r.rounds[0].user {
			continue // the calls of all users are alike
		}
		for _, part := range []string{"inputResponses", "arguments"} {
			inside := len(nodes(decode(round.params).(map[string]any)[part]))
			for n := range inside {
				for by := range len(replacements) + 1 {
					shots = append(shots, func(a *attacker) *shot {
						params := decode(round.params).(map[string]any)
						s := a.shot(newer, "", round.user, round.method, params)
						s.honest, s.what = false, fmt.Sprintf("place %d of the %s, %d", n, part, by)
						at := nodes(params[part])[n]
						if by < len(replacements) {
							at.set(replacements[by])
						} else if at.drop != nil {
							at.drop()
						}
						return s
					})
				}
			}
		}
	}
	return shots
}
