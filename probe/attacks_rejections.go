package probe

import (
	"encoding/json"
	"regexp"
	"strings"
)

// rejectionAttacks look for what a refusal reveals. They send few requests, because they use
// the refusals that the other attacks got.
var rejectionAttacks = []Attack{
	{
		ID: "oracle", Title: "Telling refusals apart", Severity: Medium, Section: security,
		Means:  "The answer says which check failed, which helps whoever tries to forge a state.",
		Fix:    "Answer every refused state in the same way: one code, one message, no data. Write the reason to the log.",
		AtMost: 4, needs: needState, try: oracle,
	},
	{
		ID: "echoed-state", Title: "Refusals that repeat the state", Severity: Low, Section: security,
		Means:  "States end up in the logs of clients and gateways, and what a stranger sent is shown as the server's words.",
		Fix:    "Never put what was sent into an error.",
		AtMost: 2, needs: needState, try: echoedState,
	},
	{
		ID: "untyped-result", Title: "Results without resultType", Severity: Low, Section: basic,
		Means: "Clients cannot read the result: the SDKs for TypeScript and Python take it for an invalid one, and the user never sees what it says.",
		Fix:   "Give every result a resultType, also one that replaces another: let your SDK finish it, or set \"complete\".",
		try:   untypedResults,
	},
	{
		ID: "undeclared-question", Title: "A client that can answer no question", Severity: Low, Section: declared,
		Means:  "The server asks what the client has not declared, so the call hangs, or a client answers without a person.",
		Fix:    "Look at the client's capabilities before you ask.",
		AtMost: 4, Honest: 1, needs: needState, early: true, try: func(t *trial) {
			for _, target := range t.targets() {
				sent := t.send(target.call(target.arguments()).with("_meta", meta(canNothing)))
				t.result.Outcomes[sent.reply.outcome().String()]++
				if sent.reply.outcome() == asked && len(sent.reply.keys()) > 0 {
					t.recordFinding(target, "it asks all the same", sent)
				}
			}
		},
	},
}

// asksForType reports whether the result of a message must have a resultType: the message calls a
// target, in the revision that the probe speaks.
func (m message) asksForType() bool {
	_, otherVersion := m.header["Mcp-Protocol-Version"]
	called := m.method == "tools/call" || m.method == "prompts/get" || m.method == "resources/read"
	return m.body == nil && called && !otherVersion && strings.Contains(m.value("_meta"), revision)
}

// untypedResults reports the results of all requests so far that lack a resultType.
func untypedResults(t *trial) {
	t.result.Outcomes[complete.String()] = t.results
	for _, e := range t.untyped {
		t.recordFinding(Target{Method: e.message.method, Name: unquoted(e.message.value("name") + e.message.value("uri"))}, "the result has no resultType", e)
	}
}

// comparable reports whether the refusal of a request can be compared with other refusals. That
// is so if the request is well-formed, with arguments that the target accepts and with a state
// that is a string of ordinary size.
func (p *probe) comparable(m message) bool {
	value, names := m.value("requestState"), map[string]bool{}
	for _, param := range m.params {
		names[param.name] = true
	}
	return m.body == nil && len(m.header) == 0 && len(names) == len(m.params) && p.valid[m.call()] &&
		strings.HasPrefix(value, `"`) && len(value) > 2 && len(value) < 8<<10
}

func oracle(t *trial) {
	for _, target := range t.targets() {
		var first *exchange
		seen := map[string]bool{}
		maskIDs := false
		for i := range t.rejections {
			e := &t.rejections[i]
			if !t.comparable(e.message) || !e.message.goesTo(target) {
				continue
			}
			t.result.Outcomes[e.reply.outcome().String()]++
			if first == nil {
				first = e
				// If the same request gets a different refusal the second time, the difference
				// reveals nothing about the state: it may be the id of a trace, for example.
				again := t.send(e.message)
				maskIDs = again.reply.outcome() == e.reply.outcome() && again.form(false) != e.form(false)
			}
			form := e.form(maskIDs)
			if !seen[form] && len(seen) > 0 && len(t.result.Findings) < enough {
				t.recordFinding(target, "two refusals differ: "+first.reply.brief(first.form(maskIDs), 160)+" and "+e.reply.brief(form, 160), *first, *e)
			}
			seen[form] = true
		}
	}
}

// form returns a text with everything by which a client can tell two refusals apart. It leaves
// out the state that the client sent. If maskIDs is true, it also leaves out numbers and ids in
// the message and the data.
func (e exchange) form(maskIDs bool) string {
	form := e.reply.form()
	escaped, _ := json.Marshal(unquoted(e.message.value("requestState")))
	for _, text := range []string{e.message.value("requestState"), string(escaped)} { // two ways to write the state
		form = strings.ReplaceAll(form, text, "(the state)")
	}
	if head, rest, ok := strings.Cut(form, ", message "); maskIDs && ok {
		form = head + ", message " + ids.ReplaceAllString(rest, "#")
	} else if maskIDs {
		form = ids.ReplaceAllString(form, "#")
	}
	return form
}

// ids is a pattern for texts that may be the id of an error or of a trace.
var ids = regexp.MustCompile(`[0-9a-fA-F-]{6,}|[0-9]+`)

func echoedState(t *trial) {
	for _, e := range t.rejections {
		text := unquoted(e.message.value("requestState"))
		if len(text) < 16 || len(text) > 8<<10 {
			continue
		}
		t.result.Outcomes[e.reply.outcome().String()]++
		if strings.Contains(string(e.reply.raw), text) {
			t.recordFinding(Target{Method: e.message.method, Name: unquoted(e.message.value("name") + e.message.value("uri"))}, "the refusal repeats the state", e)
			return
		}
	}
}

// call returns the method, the target and the arguments of a message, as one text.
func (m message) call() string {
	return m.method + m.value("name") + m.value("uri") + m.value("arguments")
}

func (m message) goesTo(t Target) bool {
	return m.method == t.Method && unquoted(m.value("name")+m.value("uri")) == t.Name
}
