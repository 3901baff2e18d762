package leaky

import (
	"fmt"
	"slices"
	"strings"
)

// target is a tool, a prompt or a resource that a client can call.
type target struct {
	method    string
	name      string // the name, or the URI of a resource
	params    []param
	questions []question // the target asks one question in each round
	says      func(read map[string]string, said map[string]string) string
}

type param struct {
	name, kind string // the kind is "string" or "integer"
	required   bool
}

type call struct {
	user         string
	params       value
	checked      *target // the target for which the server checks the state
	run          *target // the target that the server runs; another only on a server that accepts duplicate members
	state        value
	digest       string            // the digest of the arguments that are checked
	read         map[string]string // the arguments that the handler reads
	arguments    value
	answers      value
	capabilities value
	unchecked    bool // true if the state is trusted without a check
}

// id returns the name by which records refer to the target.
func (t *target) id() string { return t.method + " " + t.name }

// trusted returns the record for a state that was not checked. The record lists all questions of the
// target, so the server accepts an answer to any of them.
func (t *target) trusted() record {
	rec := record{Purpose: "state"}
	for _, q := range t.questions {
		rec.Asked = append(rec.Asked, q.key)
	}
	return rec
}

var confirm = []question{{"confirm", "Go on?", "ok", "boolean"}}

var targets = slices.Concat([]*target{
	{"tools/call", "deploy", release, confirm,
		func(read, _ map[string]string) string { return "deployed" + build(read) }},
	{"tools/call", "rollback", release, confirm,
		func(read, _ map[string]string) string { return "rolled back" + build(read) }},
	{"tools/call", "book", []param{{"seat", "string", true}}, []question{
		{"seat", "Take this seat?", "accept", "boolean"},
		{"pay", "How much do you pay?", "amount", "integer"},
	}, func(read, _ map[string]string) string { return "booked " + read["seat"] }},
	{"tools/call", orders, []param{{"status", "string", false}, {"cursor", "string", false}}, nil, nil},
	{"prompts/get", "greet", []param{{"who", "string", false}}, []question{{"name", "Who are you?", "name", "string"}},
		func(read, said map[string]string) string { return "Greet " + read["who"] + " from " + said["name"] }},
	{"resources/read", "note:///1", nil, confirm, func(_, _ map[string]string) string { return "a note" }},
}, extras("tools/call", "extra_%d", 3), extras("prompts/get", "extra_%d", 6), extras("resources/read", "x:///%d", 6))

const orders = "orders" // the name of the paged tool

var release = []param{{"env", "string", true}, {"build", "integer", false}}

func build(read map[string]string) string {
	if number, ok := read["build"]; ok {
		return " " + read["env"] + " build " + number
	}
	return " " + read["env"]
}

// extras returns targets that ask nothing. They are there so that the lists have several pages.
func extras(method, name string, n int) (list []*target) {
	for i := range n {
		list = append(list, &target{method: method, name: fmt.Sprintf(name, i),
			says: func(_, _ map[string]string) string { return "nothing to do" }})
	}
	return list
}

func find(method string, name value) *target {
	for _, t := range targets {
		if t.method == method && name.isString() && t.name == name.text {
			return t
		}
	}
	return nil
}

// readArguments stores in c.read the arguments that the handler reads. It returns false if the
// arguments do not fit the target's parameters.
func (s *Server) readArguments(c *call) bool {
	if c.arguments.kind != '{' {
		return false
	}
	c.read = map[string]string{}
	for _, p := range c.run.params {
		given := c.arguments.get(p.name)
		if s.hole("case-blind") {
			if other := c.arguments.misspelt(p.name); other.kind != 0 {
				given = other
			}
		}
		switch {
		case given.kind == 0 && p.required:
			return false
		case given.kind == 0:
			continue
		case p.name == "cursor": // a cursor is checked later, with another error
			continue
		case p.kind == "string" && given.kind != 's', p.kind == "integer" && given.kind != '0':
			return false
		}
		c.read[p.name] = given.text
		if s.hole("replaced-utf8") && given.isString() && strings.ContainsRune(given.text, '\uFFFD') {
			c.read[p.name] = strings.ToValidUTF8(given.raw, "?") // so the handler reads a text that was not checked
		}
	}
	return true
}

// do runs a call. It checks the state and the arguments, and then runs the handler.
func (s *Server) do(c *call) (result any, f *fault) {
	rec, asked, f := s.openState(c)
	if f != nil {
		return nil, f
	}
	if !s.readArguments(c) {
		return nil, &fault{Code: codeParams, Message: "Invalid arguments"}
	}
	var answers map[string]answer
	if asked {
		done, f := s.spend(c, rec)
		if f != nil {
			return nil, f
		}
		defer done()
		answers = s.keep(c, rec)
		for name, text := range rec.args {
			if slices.ContainsFunc(c.run.params, func(p param) bool { return p.name == name }) {
				c.read[name] = text
			}
		}
	}
	var completed any
	if c.run.name == orders {
		completed, f = s.orders(c)
	} else {
		completed, f = s.goOn(c, rec.Round, answers)
	}
	if fields, ok := completed.(map[string]any); ok && s.hole("untyped") && fields["resultType"] == "complete" {
		delete(fields, "resultType")
	}
	return completed, f
}

// goOn is the handler. It asks the next question, or completes the call. The parameter
// round is the index of the question that was asked last.
func (s *Server) goOn(c *call, round int, answers map[string]answer) (any, *fault) {
	questions, said := c.run.questions, map[string]string{}
	next := max(0, min(round, len(questions)-1))
	for i := len(questions) - 1; i >= next; i-- { // backwards, because the last question with an answer decides
		q := questions[i]
		a, ok := answers[q.key]
		text, fits := q.fits(a)
		if ok && (a.declined || fits && text == "false" && q.form == "boolean") {
			return c.run.complete("nothing was done"), nil
		}
		if ok && fits {
			said[q.key] = text
			next = i + 1
			break
		}
	}
	if next == len(questions) {
		return c.run.complete(c.run.says(c.read, said)), nil
	}
	q := questions[next]
	if !declared(c.capabilities) && !s.hole("undeclared") {
		return nil, &fault{status: 400, Code: -32021, Message: "Missing required client capability",
			Data: map[string]any{"requiredCapabilities": map[string]any{"elicitation": map[string]any{}}}}
	}
	return map[string]any{
		"resultType":    "input_required",
		"inputRequests": map[string]any{q.key: q.wire()},
		"requestState":  s.writeState(c, next),
	}, nil
}

func (t *target) complete(text string) map[string]any {
	block := map[string]any{"type": "text", "text": text}
	result := map[string]any{"resultType": "complete"}
	switch t.method {
	case "prompts/get":
		result["messages"] = []any{map[string]any{"role": "user", "content": block}}
	case "resources/read":
		result["contents"] = []any{map[string]any{"uri": t.name, "text": text}}
	default:
		result["content"] = []any{block}
	}
	return result
}

// orders is the handler of the paged tool.
func (s *Server) orders(c *call) (any, *fault) {
	var all []any
	for i := range 7 {
		all = append(all, map[string]any{"id": fmt.Sprintf("order-%d", i+1), "status": c.read["status"]})
	}
	part, next, f := s.page(position{list: c.run.id(), digest: sum(c.arguments.without("cursor").canonical(exact)),
		user: c.user, cursor: c.arguments.get("cursor")}, all)
	if f != nil {
		return nil, f
	}
	structured := map[string]any{"orders": part}
	if next != "" {
		structured["nextCursor"] = next
	}
	result := c.run.complete(fmt.Sprintf("%d orders", len(part)))
	result["structuredContent"] = structured
	return result, nil
}
