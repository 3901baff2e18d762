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
		{"a null in an answer", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.nulled(at.get())) }},
		{"an answer of nulls", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.decoded(nulls)) }},
		{"an answer of another kind", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.otherAnswer()) }},
		{"an answer under another key", func(a *attacker, s *shot) {
			at := a.answer(s)
			at.object[pick(a, names)] = at.get()
			delete(at.object, at.member)
		}},
		{"an unasked answer", func(a *attacker, s *shot) { at := a.answer(s); at.object[pick(a, names)] = a.otherAnswer() }},
		{"a refusal", func(a *attacker, s *shot) {
			a.answer(s).set(map[string]any{"action": pick(a, []string{"decline", "cancel"})})
		}},
		{"an answer changed", func(a *attacker, s *shot) { at := a.answer(s); at.set(a.twist(at.get())) }},
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
		"", "0", "-1", "1.5", "9223372036854775808", "1e400", `""`, `"1"`, "null", "true", "[]", "{}",
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
	nulls = []string{
		`{"roots":[null]}`, `{"roots":null}`, `{"roots":[{"uri":"file:///a"},null,{}]}`,
		`{"roots":[{"uri":null,"_meta":{"a":null}}]}`, `{"action":"accept","content":null}`,
		`{"action":"accept","content":{"ok":null,"name":null}}`, `{"action":"accept","_meta":null}`,
		`{"role":"assistant","model":"m","content":null}`,
		`{"role":"assistant","model":"m","content":[null]}`,
		`{"role":"assistant","model":"m","content":{"type":"text","text":null,"annotations":null}}`,
		`{"role":"assistant","model":"m","content":[{"type":"tool_result","toolUseId":"x","content":[null]}]}`,
		`{"role":"assistant","model":"m","content":[{"type":"tool_use","id":null,"name":null,"input":null}]}`,
		`{"role":null,"model":null,"content":[]}`, `{"action":null}`,
	}
	kinds = []string{
		`{"action":"accept","content":{"ok":true}}`, `{"action":"accept"}`,
		`{"role":"assistant","model":"m","content":{"type":"text","text":"hi"}}`,
		`{"roots":[]}`, `{"roots":[],"action":"accept","role":"user"}`,
	}
	oddValues = []string{
		"null", "true", "false", "0", "-1", "1.5", "1e308", "-9223372036854775809", "123456789012345678901234567890",
		`""`, `"x"`, `"\u0000"`, `"null"`, `"\u202e\ufeff\ud83d\ude00e\u0301"`, `"\ud800"`, `"\udc00\ud800"`,
		"[]", "{}", "[null]", `{"":null}`, "[[[]]]", `{"a":{"a":null}}`, `"` + strings.Repeat("X", 70<<10) + `"`,
		strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000), "[" + strings.Repeat("0,", 20000) + "0]",
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000),
	}
)

// junk returns an odd value, as it is written or decoded, so that later mutations change parts of it.
func (a *attacker) junk() any {
	if a.chance(50) {
		return json.RawMessage(pick(a, oddValues))
	}
	return a.decoded(oddValues)
}

func (a *attacker) decoded(texts []string) any { return decode(json.RawMessage(pick(a, texts))) }

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
	return a.decoded(kinds)
}

// badAnswer returns a message of the older protocol revision. The message answers the question
// with the given id in a wrong way.
func (a *attacker) badAnswer(id, recorded json.RawMessage) []byte {
	value := a.twist(decode(recorded))
	switch a.rand.IntN(8) {
	case 0:
		return answerText(json.RawMessage(pick(a, ids[1:])), recorded)
	case 1:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":null}}`, id, pick(a, ids[1:]))
	case 2:
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s,"error":{"code":1,"message":"both"}}`, id, recorded)
	case 3:
		return answerText(id, json.RawMessage(pick(a, nulls)))
	case 4:
		return a.doubled(answerText(id, recorded))
	case 5:
		value = a.otherAnswer()
	case 6:
		value = a.nulled(decode(recorded))
	}
	text, _ := json.Marshal(value)
	return answerText(id, text)
}

var memberName = regexp.MustCompile(`[{,]"([A-Za-z_]+)":`)

// doubled repeats one member of an object in the body, and gives the copy another value.
func (a *attacker) doubled(body []byte) []byte {
	found := memberName.FindAllSubmatchIndex(body, 50)
	if len(found) == 0 {
		return body
	}
	at := pick(a, found)
	copied := fmt.Sprintf(`"%s":%s,`, body[at[2]:at[3]], pick(a, oddValues))
	return slices.Concat(body[:at[0]+1], []byte(copied), body[at[0]+1:])
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
	switch a.rand.IntN(4) {
	case 0:
		n.set(nil)
	case 1:
		n.set([]any{n.get()})
	case 2:
		n.set(map[string]any{pick(a, names): n.get()})
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
