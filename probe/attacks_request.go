package probe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// requestAttacks send a genuine state with another request, or with a request that two JSON
// parsers read differently.
var requestAttacks = []Attack{
	{
		ID: "other-target", Title: "The state of another tool, prompt or resource", Severity: High, Section: replay,
		Means:  "A confirmation of one thing is taken for the confirmation of another.",
		Fix:    "Seal the method and the name into the state, and compare them with the request.",
		AtMost: 60, Honest: 1, needs: needState, try: otherTarget,
	},
	{
		ID: "other-arguments", Title: "Other arguments than those that were confirmed", Severity: High, Section: replay,
		Means:  "The user confirms one thing, and the server does another.",
		Fix:    "Seal a digest of the arguments into the state, and compare it with those of each retry.",
		AtMost: 60, Honest: 2, needs: needState, ranFirst: true, try: otherArguments,
	},
	{
		ID: "rewritten-arguments", Title: "The same arguments, written differently", Severity: Low, Section: replay,
		Means:  "An honest client that orders or escapes its JSON differently on a retry is refused.",
		Fix:    "Digest the meaning of the arguments and not their bytes.",
		AtMost: 40, Honest: 5, needs: needState, honestState: true, try: rewrittenArguments,
	},
	{
		ID: "rounded-numbers", Title: "Numbers that a float cannot tell apart", Severity: Medium, Section: replay,
		Means:  "Two large integers are one number to the check and two to the handler.",
		Fix:    "Digest integers exactly, or refuse those beyond 2^53.",
		AtMost: 20, Honest: 2, needs: needState, try: twins(func(t *trial, target Target) (list []twin) {
			for _, s := range t.slots(target, "integer") {
				list = append(list, twin{s.name + ": 9007199254740993, then 9007199254740992", s.put("9007199254740993"), s.put("9007199254740992"), false})
			}
			return list
		}),
	},
	{
		ID: "look-alikes", Title: "Arguments that look alike", Severity: Medium, Section: replay,
		Means:  "The check folds case, width or accents, and the handler does not.",
		Fix:    "Compare texts byte for byte.",
		AtMost: 60, Honest: 2, needs: needState, try: twins(func(t *trial, target Target) (list []twin) {
			for _, s := range t.slots(target, "string") {
				for _, pair := range [][2]string{{"kiss", "KISS"}, {"kiss", "\u212aiss"}, {"kiss", "ki\u017f\u017f"}, {"kiss", "\uff4b\uff49\uff53\uff53"}, {"\u00e9t\u00e9", "e\u0301te\u0301"}} {
					list = append(list, twin{fmt.Sprintf("%s: %s, then %s", s.name, pair[0], pair[1]), s.put(quoted(pair[0])), s.put(quoted(pair[1])), false})
				}
			}
			return list
		}),
	},
	{
		ID: "invalid-utf8", Title: "Texts that are not Unicode", Severity: Low, Section: replay,
		Means:  "Different bytes are one replacement character to the check.",
		Fix:    "Refuse text that is not valid UTF-8, and escapes of lone surrogates.",
		AtMost: 52, Honest: 2, needs: needState, try: twins(func(t *trial, target Target) (list []twin) {
			for _, s := range t.slots(target, "string") {
				for _, pair := range [][2]string{{`"a\ud800"`, `"a\ud801"`}, {"\"a\xff\"", "\"a\xfe\""}, {`"a\ufffd"`, `"a\udfff"`}} {
					list = append(list, twin{fmt.Sprintf("%s: %s, then %s", s.name, visible(pair[0]), visible(pair[1])), s.put(pair[0]), s.put(pair[1]), true})
				}
			}
			return list
		}),
	},
	{
		ID: "duplicate-members", Title: "A member twice", Severity: High, Section: integrity,
		Means:  "The check reads one of the two, and the handler the other.",
		Fix:    "Refuse objects with duplicate members.",
		AtMost: 60, Honest: 2, needs: needState, try: duplicateMembers,
	},
	{
		ID: "other-spellings", Title: "Other spellings of a member's name", Severity: High, Section: integrity,
		Means:  "The check looks for the exact name, and the handler's JSON library ignores its case.",
		Fix:    "Read names exactly, and refuse those that differ from a known one only in case.",
		AtMost: 60, Honest: 2, needs: needState, unsolicited: true, try: otherSpellings,
	},
	{
		ID: "other-methods", Title: "A changed state on a method that has no states", Severity: Medium, Section: supported,
		Means:  "The server runs a tool without the check, because the method is another one.",
		Fix:    "Decide by the method alone what is run, and check the state there.",
		AtMost: 30, Honest: 2, needs: needState, try: otherMethods,
	},
}

const canary = "tripsealcanary"

func otherTarget(t *trial) {
	known, pairs := t.targets(), 0
	if len(known) < 2 {
		t.skip("it needs two targets that issue states")
		return
	}
	for _, from := range known {
		for _, to := range known {
			if from.String() == to.String() || pairs == 12 {
				continue
			}
			pairs++
			list := []string{to.arguments()}
			if from.Method != "resources/read" && to.Method != "resources/read" && from.arguments() != to.arguments() {
				list = append(list, from.arguments())
			}
			for _, arguments := range list {
				stolen, err := t.mint(from)
				if err != nil {
					t.unclear(err)
					return
				}
				f, err := t.mint(to)
				if err != nil {
					t.unclear(err)
					return
				}
				m := f.retry.with("requestState", quoted(stolen.state))
				what := "with the state of " + from.String()
				if arguments != to.arguments() {
					m, what = m.with("arguments", arguments), "with the state and the arguments of "+from.String()
				}
				if sent := t.tell(m); t.through(f, sent.reply) {
					t.recordFinding(to, what, append(slices.Clone(stolen.before), sent)...)
					break
				}
			}
		}
	}
}

// otherArguments sends arguments that the target accepts, with a state for other arguments.
func otherArguments(t *trial) {
	tried := false
	for _, target := range t.targets() {
		if target.Method == "resources/read" {
			continue
		}
		f, err := t.mint(target)
		if err != nil {
			t.unclear(err)
			return
		}
		var list []variant
		for _, c := range spread(t.changedArguments(target), 24) {
			// A refusal means something only if the target accepts these arguments in a new call.
			if _, err := t.begin(target, c.value, firstUser); err != nil {
				t.result.Outcomes[early.String()]++
				continue
			}
			list = append(list, variant{c.name, func(f *flow) message { return f.retry.with("arguments", c.value) }})
			if tried = true; len(list) == 6 {
				break
			}
		}
		t.tryVariants(f, list, func() (*flow, error) { return t.mint(target) })
	}
	if !tried {
		t.skip("no other arguments were found that the target takes; give some")
	}
}

// changedArguments returns arguments that differ from the target's own, as members: the name
// says what differs, and the value is the JSON text of all arguments.
func (p *probe) changedArguments(target Target) (all []member) {
	if target.Others != "" {
		all = append(all, member{"the other arguments", target.Others})
	}
	own, _ := members(target.arguments())
	for i, m := range own {
		others := otherValues(m.value)
		for _, choice := range p.schema[target.Name].Properties[unquoted(m.name)].Enum {
			if string(choice) != m.value {
				others = []string{string(choice)}
			}
		}
		for _, other := range others {
			again := slices.Clone(own)
			again[i].value = other
			all = append(all, member{fmt.Sprintf("%s changed to %s", m.name, clip(other, 40)), object(again)})
		}
	}
	for i, m := range own {
		all = append(all, member{"without " + m.name, object(slices.Delete(slices.Clone(own), i, i+1))})
	}
	return all
}

func rewrittenArguments(t *trial) {
	tried := false
	for _, target := range t.targets() {
		own, _ := members(target.arguments())
		if target.Method == "resources/read" || len(own) == 0 {
			continue
		}
		tried = true
		turned := slices.Clone(own)
		slices.Reverse(turned)
		for _, v := range []member{
			{"in another order", object(turned)},
			{"with white space", spaced(own)},
			{"with escapes", escaped(own)},
		} {
			f, err := t.mint(target)
			if err != nil {
				t.unclear(err)
				return
			}
			sent := t.send(f.retry.with("arguments", v.value))
			t.result.Outcomes[sent.reply.outcome().String()]++
			switch {
			case t.through(f, sent.reply):
			case sent.reply.lost != nil:
				t.unclear(t.not(target, sent.reply))
			default:
				t.recordFinding(target, v.name+": an honest retry was refused", append(f.before, sent)...)
			}
		}
	}
	if !tried {
		t.skip("no target has arguments; give some")
	}
}

func spaced(own []member) string {
	var text strings.Builder
	text.WriteString("{ ")
	for i, m := range own {
		if i > 0 {
			text.WriteString(" ,\t")
		}
		text.WriteString(m.name + " :  " + m.value)
	}
	text.WriteString(" }")
	return text.String()
}

// escaped returns the JSON text of an object with these members. It writes the first letter of
// each name, and of each value that is a string, as an escape.
func escaped(own []member) string {
	again := slices.Clone(own)
	escape := func(text string) string {
		if len(text) > 2 && text[0] == '"' && text[1] < 0x80 && text[1] != '\\' {
			return fmt.Sprintf(`"\u%04x%s`, text[1], text[2:])
		}
		return text
	}
	for i := range again {
		again[i] = member{escape(again[i].name), escape(again[i].value)}
	}
	return object(again)
}

// twin is a pair of JSON objects with arguments, which a server must not treat as equal. One is
// for the first request, the other for the retry.
type twin struct {
	what, first, retry string
	visible            bool // the attack is a finding only if its result differs from that of an honest call with the first arguments
}

// differs reports whether the result of the attack differs from the result of an honest call
// with the first arguments of the pair.
func (t *trial) differs(target Target, pair twin, sent exchange) bool {
	f, err := t.mintAs(target, pair.first, firstUser)
	return err == nil && t.send(f.retry).reply.shown() != sent.reply.shown()
}

// twins returns an attack. The function pairsFor returns the pairs of arguments that the attack
// tries on a target. For each pair, the attack makes a call with pair.first up to the last round.
// Then it sends the retry with pair.retry.
func twins(pairsFor func(t *trial, target Target) []twin) func(*trial) {
	return func(t *trial) {
		for _, target := range t.targets() {
			if target.Method == "resources/read" {
				continue
			}
			found := 0
			for _, pair := range pairsFor(t, target) {
				if found == enough || t.ended != nil {
					break
				}
				f, err := t.mintAs(target, pair.first, firstUser)
				if err != nil {
					t.result.Outcomes[early.String()]++ // the server does not accept the arguments pair.first at all
					continue
				}
				sent := t.tell(f.retry.with("arguments", pair.retry))
				switch {
				case !t.through(f, sent.reply), pair.visible && !t.differs(target, pair, sent):
				default:
					t.recordFinding(target, pair.what, append(f.before, sent)...)
					found++
				}
			}
		}
	}
}

// visible returns a JSON text in which bytes that are not UTF-8 are written as escapes.
func visible(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return `"` + strings.Trim(fmt.Sprintf("%+q", strings.Trim(text, `"`)), `"`) + `"`
}

// slot is a place among the arguments where a value can be put.
type slot struct {
	name string
	put  func(value string) string
}

// slots returns places where a value of the given JSON type can be put: at most three arguments
// of the target that may have any value of that type.
func (p *probe) slots(target Target, of string) (all []slot) {
	own, _ := members(target.arguments())
	for i, m := range own {
		property, known := p.schema[target.Name].Properties[unquoted(m.name)]
		if known && (string(property.Type) != of && !(of == "integer" && property.Type == "number") || len(property.Enum) > 0 || property.Pattern != "" || property.Format != "" && of == "string") || !known && typeOf(m.value) != of {
			continue
		}
		all = append(all, slot{name: m.name, put: func(value string) string {
			again := slices.Clone(own)
			again[i].value = value
			return object(again)
		}})
		if len(all) == 3 {
			break
		}
	}
	return all
}

func typeOf(value string) string {
	var decoded any
	if json.Unmarshal([]byte(value), &decoded) != nil {
		return ""
	}
	switch n := decoded.(type) {
	case string:
		return "string"
	case float64:
		if n == float64(int64(n)) {
			return "integer"
		}
	}
	return ""
}

// duplicateMembers sends a member twice, with the honest value and with another value. The
// result shows which of the two the handler read.
func duplicateMembers(t *trial) {
	for _, target := range t.targets() {
		fresh := func() (*flow, error) { return t.mint(target) }
		own, i, second, ok := t.findEchoed(target)
		if ok {
			t.sendEach(target, fresh, doubled(own, i, second), func(sent exchange) bool { return strings.Contains(sent.reply.shown(), second) })
		}
		// Send two requests. Each has a genuine state and a changed state, but in different orders.
		// Whether the server reads the first state or the last, it reads the changed state in one
		// of the requests. It must refuse that request.
		both, orders := 0, [][2]int{{0, 1}, {1, 0}}
		var shown []exchange
		for _, order := range orders {
			f, err := fresh()
			if err != nil {
				t.unclear(err)
				return
			}
			values := []string{quoted(f.state), quoted(forged(f.state))}
			m := f.retry.without("requestState").adding(`"requestState"`, values[order[0]]).adding(`"requestState"`, values[order[1]])
			sent := t.tell(m)
			if t.through(f, sent.reply) {
				both++
				shown = append(shown, sent)
			}
		}
		if both == len(orders) {
			t.recordFinding(target, "a genuine and a changed state, in both orders", shown...)
		}
	}
}

// findEchoed looks for an argument whose text the honest result shows. It returns the target's
// arguments, the index of that argument, and another text for it that the target accepts. ok is
// false if it finds no such argument: then nobody can see which of two values the handler read.
func (t *trial) findEchoed(target Target) (own []member, i int, second string, ok bool) {
	own, _ = members(target.arguments())
	tried := 0
	for i, m := range own {
		if shown := t.honest[target.String()].shown; typeOf(m.value) != "string" || !strings.Contains(shown, unquoted(m.value)) {
			continue
		}
		for _, choice := range append(slices.Clone(t.schema[target.Name].Properties[unquoted(m.name)].Enum), json.RawMessage(quoted(canary))) {
			again := slices.Clone(own)
			again[i].value = string(choice)
			if tried == 16 {
				return nil, 0, "", false
			}
			if string(choice) == m.value || strings.Contains(t.honest[target.String()].shown, unquoted(string(choice))) {
				continue
			}
			tried++
			if _, err := t.begin(target, object(again), firstUser); err == nil {
				return own, i, unquoted(string(choice)), true
			}
		}
	}
	return nil, 0, "", false
}

// doubled returns variants of the honest retry in which the argument own[i] has two values.
func doubled(own []member, i int, second string) []variant {
	m := own[i]
	other := slices.Clone(own)
	other[i].value = quoted(second)
	arguments := func(text string) func(*flow) message {
		return func(f *flow) message { return f.retry.with("arguments", text) }
	}
	twice := member{m.name, quoted(second)}
	return []variant{
		{m.name + " twice, the other value last", arguments(object(append(slices.Clone(own), twice)))},
		{m.name + " twice, the other value first", arguments(object(append([]member{twice}, own...)))},
		{"the arguments twice, the others last", func(f *flow) message { return f.retry.adding(`"arguments"`, object(other)) }},
		{"the arguments twice, the others first", func(f *flow) message {
			m := f.retry
			m.params = append([]member{{`"arguments"`, object(other)}}, m.params...)
			return m
		}},
		{"the params twice, the others last", func(f *flow) message { return twoParams(f.retry, f.retry.with("arguments", object(other))) }},
		{"the params twice, the others first", func(f *flow) message { return twoParams(f.retry.with("arguments", object(other)), f.retry) }},
	}
}

// twoParams returns a message that has the member "params" twice: first as in the message a,
// then as in b.
func twoParams(a, b message) message {
	m := a
	m.body = func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s,"params":%s}`, id, quoted(a.method), object(a.params), object(b.params))
	}
	return m
}

// sendEach sends each variant in a new flow, which newFlow returns. A variant that gets through
// is a finding only if the function isProof returns true: then the answer shows that the handler
// read what was not checked.
func (t *trial) sendEach(target Target, newFlow func() (*flow, error), list []variant, isProof func(exchange) bool) {
	for _, v := range list {
		f, err := newFlow()
		if err != nil {
			t.unclear(err)
			return
		}
		if sent := t.tell(v.make(f)); t.through(f, sent.reply) && isProof(sent) {
			t.recordFinding(target, v.what, append(f.before, sent)...)
		}
	}
}

func otherSpellings(t *trial) {
	for _, target := range t.targets() {
		fresh := func() (*flow, error) { return t.mint(target) }
		var list []variant
		// If the server accepts answers without a state, or with any state, it also accepts
		// them with another spelling of requestState. So this attack would prove nothing.
		if f, err := fresh(); err != nil || t.through(f, t.send(f.retry.without("requestState")).reply) ||
			t.through(f, t.send(f.retry.with("requestState", quoted(madeUp))).reply) {
			t.result.Outcomes[early.String()]++
			continue
		}
		for _, name := range []string{`"RequestState"`, `"REQUESTSTATE"`, `"requestſtate"`, `"requeſtState"`, `"request\u0053tate"`, `"request_state"`} {
			list = append(list, variant{"a made-up state as " + name, func(f *flow) message {
				return f.retry.without("requestState").adding(name, quoted(madeUp))
			}})
		}
		t.sendEach(target, fresh, list, func(exchange) bool { return true })
		own, i, second, ok := t.findEchoed(target)
		if !ok {
			continue
		}
		list = nil
		name := unquoted(own[i].name)
		for _, other := range []string{otherCase(name), strings.ToUpper(name), strings.NewReplacer("s", "ſ", "k", "\u212a").Replace(name)} {
			if other != name {
				list = append(list, variant{"another value as " + quoted(other), func(f *flow) message {
					return f.retry.with("arguments", object(append(slices.Clone(own), member{quoted(other), quoted(second)})))
				}})
			}
		}
		t.sendEach(target, fresh, list, func(sent exchange) bool { return strings.Contains(sent.reply.shown(), second) })
	}
}

func otherMethods(t *trial) {
	for _, target := range t.targets() {
		var list []variant
		for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover", "completion/complete", "ping"} {
			list = append(list, variant{method, func(f *flow) message {
				m := f.retry.with("requestState", quoted(forged(f.state)))
				m.method = method
				return m
			}})
		}
		t.sendEach(target, func() (*flow, error) { return t.mint(target) }, list, func(sent exchange) bool { return sent.reply.shown() != "" })
	}
}

// otherCase returns a name with its first letter in the other case.
func otherCase(name string) string {
	for i, char := range name {
		if unicode.IsUpper(char) {
			return name[:i] + strings.ToLower(string(char)) + name[i+len(string(char)):]
		}
		if unicode.IsLower(char) {
			return name[:i] + strings.ToUpper(string(char)) + name[i+len(string(char)):]
		}
	}
	return name + "X"
}

// unquoted returns the text of a JSON string. It returns "" for every other text.
func unquoted(text string) (plain string) {
	json.Unmarshal([]byte(text), &plain)
	return plain
}
