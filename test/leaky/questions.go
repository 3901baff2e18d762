package leaky

import "strconv"

// question is a question to the client. A form has one field.
type question struct {
	key, kind   string // the kind is "elicitation" or "sampling"
	message     string
	field, form string // the name and the JSON type of the form's field; "" for sampling
}

func (q question) wire() any {
	if q.kind == "sampling" {
		return map[string]any{"method": "sampling/createMessage", "params": map[string]any{"maxTokens": 100,
			"messages": []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": q.message}}}}}
	}
	return map[string]any{"method": "elicitation/create", "params": map[string]any{"mode": "form", "message": q.message,
		"requestedSchema": map[string]any{"type": "object", "required": []string{q.field},
			"properties": map[string]any{q.field: map[string]any{"type": q.form}}}}}
}

// declared reports whether the client has declared that it can answer such a question.
func (q question) declared(capabilities value) bool {
	c := capabilities.get(q.kind)
	return c.kind == '{' && (q.kind != "elicitation" || len(c.members) == 0 || c.get("form").kind == '{')
}

// answer is an answer to a question that was asked.
type answer struct {
	value
	declined bool // true if the user declined or cancelled
	taken    bool // true if a hole makes the server accept the answer although it has a null or is of the wrong kind
}

// kindOf returns the kind of question that a value answers. It returns "" if the value fits no
// kind or several kinds.
func kindOf(v value) (kind string) {
	for name, k := range map[string]string{"action": "elicitation", "role": "sampling", "roots": "roots"} {
		if v.has(name) {
			if kind != "" {
				return ""
			}
			kind = k
		}
	}
	return kind
}

// keep returns the answers to the questions that were asked. It drops all other answers.
func (s *Server) keep(c *call, rec record) map[string]answer {
	asked, kept := rec.Asked, map[string]answer{}
	if s.hole("later-answers") {
		asked = c.run.trusted().Asked
	}
	for _, m := range c.answers.members {
		key, a := m.name, answer{value: m.value}
		kind, ok := asked[key]
		if !ok && s.hole("any-key") && len(c.answers.members) == 1 {
			for key, kind = range asked {
				ok = true
			}
		}
		if !ok {
			continue
		}
		action := m.get("action").text
		a.declined = kind == "elicitation" && (action == "decline" || action == "cancel")
		if m.hasNull() {
			if !s.hole("null-answers") {
				continue
			}
			a.taken = true
		} else if kindOf(m.value) != kind {
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
	if q.kind == "sampling" {
		content := a.get("content")
		return content.get("text").text, a.get("role").isString() && (content.kind == '{' || content.kind == '[')
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
