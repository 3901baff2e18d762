package leaky

import (
	"slices"
	"strconv"
)

// question is a question to the client: an elicitation whose form has one field.
type question struct {
	key, message string
	field, form  string // the name and the JSON type of the form's field
}

func (q question) wire() any {
	return map[string]any{"method": "elicitation/create", "params": map[string]any{"mode": "form", "message": q.message,
		"requestedSchema": map[string]any{"type": "object", "required": []string{q.field},
			"properties": map[string]any{q.field: map[string]any{"type": q.form}}}}}
}

// declared reports whether the client has declared that it can answer a question.
func declared(capabilities value) bool {
	c := capabilities.get("elicitation")
	return c.kind == '{' && (len(c.members) == 0 || c.get("form").kind == '{')
}

// answer is an answer to a question that was asked.
type answer struct {
	value
	declined bool // true if the user declined or cancelled
	taken    bool // true if a hole makes the server accept the answer although it has a null or is of the wrong kind
}

// keep returns the answers to the questions that were asked. It drops all other answers.
func (s *Server) keep(c *call, rec record) map[string]answer {
	asked, kept := rec.Asked, map[string]answer{}
	if s.hole("later-answers") {
		asked = c.run.trusted().Asked
	}
	for _, m := range c.answers.members {
		key, a := m.name, answer{value: m.value}
		if len(asked) == 1 && s.hole("any-key") && len(c.answers.members) == 1 {
			key = asked[0]
		}
		if !slices.Contains(asked, key) {
			continue
		}
		action := m.get("action").text
		a.declined = action == "decline" || action == "cancel"
		if m.hasNull() {
			if !s.hole("null-answers") {
				continue
			}
			a.taken = true
		} else if !m.has("action") || m.has("role") || m.has("roots") {
			if !s.hole("any-kind") {
				continue
			}
			a.taken = true
		}
		kept[key] = a
	}
	return kept
}

// fits returns the text of an answer, and whether the answer fits the question.
func (q question) fits(a answer) (text string, fits bool) {
	if a.taken {
		return a.get("content").get(q.field).text, true
	}
	field := a.get("content").get(q.field)
	switch q.form {
	case "boolean":
		fits = field.kind == 'b'
	case "integer":
		_, err := strconv.ParseInt(field.text, 10, 64)
		fits = field.kind == '0' && err == nil
	case "string":
		fits = field.isString()
	}
	return field.text, fits && a.get("action").text == "accept"
}
