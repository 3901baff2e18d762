package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// place is a place in a message where guarded members can stand.
type place struct {
	name  string
	names []string
	// check sends a message with further members at this place. The members are given as JSON text
	// that begins with a comma.
	check func(r *rig, more string)
	// The message already has these names at this place, even without further members.
	holds []string
}

// harmlessMembers have no meaning at any place in a message.
var harmlessMembers = []string{
	`"com.example/ext":{"requestState":"x","cursor":"x"}`, `"x":1,"x":2`, `"Names":1`, `"requestStates":"x"`, `"requestStat":"x"`, `"state":"x"`, `"meta":{}`, `"é":1`, `"":1`, `"_":1,"-":1`,
	`"\ud800":1`, `"\u0000":1`, `"requestState ":"x"`, `"x\u0000requestState":"x"`,
}

// everyPlace returns all places in messages of the client and of the server. If allowed is true,
// the message that [place.check] sends must reach the other side. If allowed is false, the message
// must be refused.
func everyPlace(t *testing.T, allowed bool) []place {
	client := func(r *rig, message string) {
		r.t.Helper()
		if allowed {
			r.forwarded(message)
		} else {
			r.refused(message)
		}
	}
	server := func(request string) func(*rig, string) {
		return func(r *rig, answer string) {
			r.t.Helper()
			e, _ := r.forwarded(request)
			if allowed {
				r.sealed(e, answer)
			} else {
				r.withheld(e, answer)
			}
		}
	}
	alone := func(r *rig, message string) {
		r.t.Helper()
		if allowed {
			r.passed(message)
		} else {
			r.dropped(message)
		}
	}
	malformed := func(r *rig, message string) {
		r.t.Helper()
		if allowed {
			r.passed(message)
		} else {
			r.stopped(message)
		}
	}
	envelope := []string{"jsonrpc", "id", "method", "params", "result", "error"}
	calling, listing, pinging := server(carriers[0].call("")), server(page("tools/list", "")), server(`{"id":7,"method":"ping"}`)
	in := func(message string) func(func(*rig, string)) func(*rig, string) {
		return func(send func(*rig, string)) func(*rig, string) {
			return func(r *rig, more string) {
				r.t.Helper()
				send(r, strings.Replace(message, "MORE", more, 1))
			}
		}
	}
	places := []place{
		{"request", envelope, in(`{"jsonrpc":"2.0","id":7,"method":"ping","params":{}MORE}`)(client), envelope[:4]},
		{"call", envelope, in(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}MORE}`)(client), envelope[:4]},
		{"notification", slices.Concat(envelope[:1], envelope[2:]), in(`{"jsonrpc":"2.0","method":"notifications/x","params":{}MORE}`)(client), []string{"jsonrpc", "method", "params"}},
		{"answer of the client", envelope, in(`{"jsonrpc":"2.0","id":7,"result":{}MORE}`)(client), []string{"jsonrpc", "id", "result"}},
		{"error of the client", envelope, in(`{"jsonrpc":"2.0","id":7,"error":{}MORE}`)(client), []string{"jsonrpc", "id", "error"}},
		{"params of another method", []string{"requestState"}, in(`{"id":7,"method":"x/y","params":{"a":1MORE}}`)(client), nil},
		{"params of a notification", []string{"requestState"}, in(`{"method":"notifications/x","params":{"a":1MORE}}`)(client), nil},
		{"result of the client", []string{"requestState"}, in(`{"id":7,"result":{"a":1MORE}}`)(client), nil},
		{"an answer to a question", []string{"action", "role", "roots", "content", "model", "stopReason", "resultType", "_meta"},
			in(carriers[0].call(`,"inputResponses":{"q":{"action":"accept","content":{}MORE}}`))(client), []string{"action", "content"}},

		{"answer", envelope, in(`{"jsonrpc":"2.0","id":7,"result":{}MORE}`)(pinging), []string{"jsonrpc", "id", "result"}},
		{"answer to a call", envelope, in(`{"jsonrpc":"2.0","id":7,"result":{}MORE}`)(calling), []string{"jsonrpc", "id", "result"}},
		{"result", []string{"requestState"}, in(`{"id":7,"result":{"a":1MORE}}`)(pinging), nil},
		{"complete result", []string{"resultType", "requestState", "inputRequests"}, in(`{"id":7,"result":{"resultType":"complete"MORE}}`)(calling), []string{"resultType"}},
		{"result that asks", []string{"resultType", "requestState", "inputRequests"},
			in(`{"id":7,"result":{"resultType":"input_required","requestState":"` + canary + `","inputRequests":{}MORE}}`)(calling), []string{"resultType", "requestState", "inputRequests"}},
		{"question", []string{"method", "params"}, in(asking("", `{"q":{"method":"elicitation/create","params":{}MORE}}`))(calling), []string{"method", "params"}},
		{"params of a question", []string{"mode"}, in(asking("", `{"q":{"method":"elicitation/create","params":{"mode":"form"MORE}}}`))(calling), []string{"mode"}},
		{"page", []string{"nextCursor", "requestState", "ttlMs", "cacheScope"}, in(`{"id":7,"result":{"nextCursor":"` + canary + `","ttlMs":1,"cacheScope":"x"MORE}}`)(listing), []string{"nextCursor", "ttlMs", "cacheScope"}},
		{"last page", []string{"nextCursor", "requestState", "ttlMs", "cacheScope"}, in(`{"id":7,"result":{"tools":[],"ttlMs":1,"cacheScope":"x"MORE}}`)(listing), []string{"ttlMs", "cacheScope"}},

		{"notification of the server", envelope[2:], in(`{"method":"notifications/x","params":{}MORE}`)(malformed), []string{"method", "params"}},
		{"params of a notification of the server", []string{"requestState"}, in(`{"method":"notifications/x","params":{"a":1MORE}}`)(alone), nil},
		{"params of a request of the server", []string{"requestState"}, in(`{"id":7,"method":"elicitation/create","params":{"a":1MORE}}`)(alone), nil},
		{"result to no request", []string{"requestState", "inputRequests", "nextCursor"}, in(`{"id":"stray","result":{"a":1MORE}}`)(alone), nil},
	}
	for _, c := range carriers {
		target, _, _ := strings.Cut(c.target, ":")
		places = append(places, place{"params of " + c.method, []string{"name", "uri", "arguments", "requestState", "inputResponses", "_meta"}, in(c.call("MORE"))(client), []string{strings.Trim(target, `"`)}})
	}
	for _, method := range lists {
		places = append(places, place{"params of " + method, []string{"cursor", "requestState"}, in(page(method, `"a":1MORE`))(client), nil})
	}
	return places
}

// escapedAt returns a name in which the character with this index is written as an escape. If
// the index is negative, all characters are written as escapes.
func escapedAt(name string, at int) (out string) {
	for i, c := range []rune(name) {
		switch {
		case at >= 0 && i != at:
			out += string(c)
		case i%2 == 0:
			out += fmt.Sprintf(`\u%04x`, c)
		default:
			out += fmt.Sprintf(`\u%04X`, c)
		}
	}
	return out
}

// misspellings returns other names that some JSON reader takes for this name.
func misspellings(name string) (list []string) {
	add := func(other string) {
		if other != name && !slices.Contains(list, other) {
			list = append(list, other)
		}
	}
	add(strings.ToUpper(name))
	add(strings.ToLower(name))
	runes := []rune(name)
	for i, c := range runes {
		for _, twins := range []string{"sSſ", "kK\u212a"} {
			if strings.ContainsRune(twins, c) {
				for _, twin := range twins {
					add(string(runes[:i]) + string(twin) + string(runes[i+1:]))
				}
			}
		}
		add(string(runes[:i]) + strings.ToUpper(string(c)) + string(runes[i+1:]))
		add(string(runes[:i]) + strings.ToLower(string(c)) + string(runes[i+1:]))
	}
	if name == "_meta" {
		return list
	}
	var snake string
	for _, c := range runes {
		if 'A' <= c && c <= 'Z' {
			snake += "_" + strings.ToLower(string(c))
		} else {
			snake += string(c)
		}
	}
	add(snake)
	add(strings.ToUpper(snake))
	add(strings.ReplaceAll(snake, "_", "-"))
	add("_" + name)
	add(name + "-")
	add(strings.ReplaceAll(name, "st", "\ufb06"))
	add(strings.ReplaceAll(name, "st", "\ufb05"))
	add(strings.ReplaceAll(name, "i", "\u0131"))
	add(strings.ReplaceAll(name, "i", "\u0130"))
	return list
}

func TestAGuardedNameInAnotherSpellingIsRefused(t *testing.T) {
	for _, p := range everyPlace(t, false) {
		t.Run(p.name, func(t *testing.T) {
			r := plainRig(t)
			for _, name := range p.names {
				for _, other := range misspellings(name) {
					p.check(r, `,"`+other+`":"x"`)
					p.check(r, `,"`+escapedAt(other, -1)+`":"x"`)
				}
				if name != "_meta" {
					p.check(r, `,"`+name+`\u0000":"x"`)
					p.check(r, `,"`+strings.ToUpper(name)+`\u0000x":"x"`)
				}
			}
		})
	}
}

func TestAGuardedNameThatIsThereTwiceIsRefused(t *testing.T) {
	for _, p := range everyPlace(t, false) {
		t.Run(p.name, func(t *testing.T) {
			r := plainRig(t)
			for _, name := range p.names {
				twice := ""
				if !slices.Contains(p.holds, name) {
					twice = `,"` + name + `":null`
				}
				p.check(r, twice+`,"`+name+`":null`)
				for i := range name {
					p.check(r, twice+`,"`+escapedAt(name, i)+`":"x"`)
				}
				p.check(r, twice+`,"`+escapedAt(name, -1)+`":"x"`)
			}
		})
	}
}

func TestHarmlessMembersPass(t *testing.T) {
	for _, p := range everyPlace(t, true) {
		t.Run(p.name, func(t *testing.T) {
			r := plainRig(t)
			for _, more := range harmlessMembers {
				if p.name == "an answer to a question" && (strings.Contains(more, `"x":2`) || strings.Contains(more, `\ud800`)) {
					continue // every part of an answer must mean the same to every reader
				}
				p.check(r, ","+more)
			}
		})
	}
	r := plainRig(t)
	for _, message := range []string{
		`{"id":7,"method":"x/y","params":{"Name":1,"name":2,"NAME":3,"Cursor":4,"cursor":5,"cursor":6,"inputResponses":{},"InputResponses":1,"nextCursor":"x"}}`,
		`{"id":7,"method":"tasks/update","params":{"inputResponses":{"q":{"action":"accept"}}}}`,
		`{"id":7,"method":"x/y","params":[{"requestState":"x"}]}`,
		`{"id":7,"method":"x/y","params":{"a":{"requestState":"x"}}}`,
		`{"id":7,"method":"tools/call","params":{"name":"x","arguments":{"requestState":"x","RequestState":"y","cursor":1,"cursor":2}}}`,
		`{"id":7,"method":"tools/list","params":{"Name":1,"inputResponses":1,"name":2}}`,
		`{"id":7,"result":{"action":"accept","Action":"x"}}`,
		`{"id":7,"error":{"code":1,"message":"requestState","data":{"requestState":"x"}}}`,
	} {
		if _, got := r.forwarded(message); got != message {
			t.Errorf("%s became %s", message, got)
		}
	}
	for _, message := range []string{
		`{"method":"notifications/tasks","params":{"taskId":"x","inputRequests":{"q":` + form + `},"nextCursor":"x"}}`,
		`{"id":"s","method":"elicitation/create","params":{"Mode":1,"mode":2,"mode":3}}`,
		`{"id":"s","result":{}}`, `{"id":"s","result":[]}`, `{"id":"s","result":null}`, `{"id":"s","error":{}}`, `{"id":null,"error":{}}`,
	} {
		r.passed(message)
	}
	e, _ := r.forwarded(`{"id":7,"method":"tasks/get","params":{"taskId":"x"}}`)
	if answer := `{"id":7,"result":{"taskId":"x","inputRequests":{"q":` + form + `}}}`; r.sealed(e, answer) != answer {
		t.Error("the result of a task changed")
	}
}

func TestANameInEscapesIsTheName(t *testing.T) {
	r := plainRig(t)
	e, _ := r.forwarded(carriers[0].call(""))
	out := r.sealed(e, `{"id":7,"res\u0075lt":{"result\u0054ype":"input\u005frequired","request\u0053tate":"\u0063anary-5d1f","\u0069nputRequests":{"\u0071":`+form+`}}}`)
	if strings.Count(out, `request\u0053tate`) != 1 || strings.Contains(out, `requestState`) {
		t.Errorf("the client got %s", out)
	}
	given := token(t, out)
	_, got := r.forwarded(`{"id":7,"method":"tools\/call","params":{"n\u0061me":"d\u0065ploy","request\u0053tate":"\u006d` + given[1:] + `","input\u0052esponses":{"\u0071":` + accept + `}}}`)
	if string(member(t, got, "params", "requestState")) != `"`+canary+`"` || string(member(t, got, "params", "inputResponses", "q")) != accept {
		t.Errorf("the server got %s", got)
	}
	r.rejected("alice", `{"id":7,"method":"tools/call","params":{"name":"deploy","request\u0053tate":"forged"}}`)
	r.rejected("alice", `{"id":7,"method":"tools/list","params":{"c\u0075rsor":"forged"}}`)
}

func TestAKeyThatIsThereTwiceIsRefused(t *testing.T) {
	r := plainRig(t)
	for _, keys := range []string{`"q":V,"q":V`, `"q":V,"\u0071":V`, `"":V,"":V`, `"\ud800":V`, `"a\udc00":V`, `"é":V,"\u00e9":V`} {
		r.refused(carriers[0].call(`,"inputResponses":{` + strings.ReplaceAll(keys, "V", accept) + `}`))
		e, _ := r.forwarded(carriers[0].call(""))
		r.withheld(e, asking("", `{`+strings.ReplaceAll(keys, "V", form)+`}`))
	}
	for _, answer := range []string{
		`{"action":"accept","content":{"a":1,"a":2}}`, `{"action":"accept","content":{"x":[{"a":1,"\u0061":2}]}}`, `{"action":"accept","x":1,"x":1}`,
	} {
		r.refused(carriers[0].call(`,"inputResponses":{"q":` + answer + `}`))
	}
}

func TestAMemberFromWhichJavaScriptInheritsIsRefused(t *testing.T) {
	for _, name := range []string{`"__proto__"`, `"\u005f_proto_\u005f"`, `"__proto__\u0000"`} {
		for _, p := range everyPlace(t, false) {
			t.Run(p.name, func(t *testing.T) {
				p.check(plainRig(t), `,`+name+`:{"requestState":"`+canary+`","name":"other","cursor":"`+canary+`"}`)
			})
		}
	}
}
