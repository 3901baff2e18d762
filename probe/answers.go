package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The server chooses the questions, so the probe limits how much it writes as answers.
const (
	maxQuestions = 64       // questions that the server may ask at once
	maxItems     = 100      // items that a schema may require of an array
	maxText      = 64 << 10 // characters that a schema may require of a text
	maxAnswers   = 1 << 20  // total length in bytes of the answers to one set of questions
)

var errLong = fmt.Errorf("the answers would be longer than %d bytes", maxAnswers)

// answers returns the answers to the questions of a reply.
func (p *probe) answers(t Target, r *reply) (all []member, err error) {
	keys, size := r.keys(), 0
	if len(keys) > maxQuestions {
		return nil, fmt.Errorf("the server asks %d questions at once, and the probe answers at most %d", len(keys), maxQuestions)
	}
	for _, key := range keys {
		text, err := answer(r.message.Result.InputRequests[key], t.Answers[key], p.Decline)
		if err != nil {
			return nil, fmt.Errorf("no answer to the question %q: %s", clip(p.redact(key), 60), clip(p.redact(err.Error()), 240))
		}
		if size += len(key) + len(text); size > maxAnswers {
			return nil, errLong
		}
		all = append(all, member{quoted(key), text})
	}
	return all, nil
}

// answer returns the JSON text of an answer to a question. fromOperator is the answer that the
// operator chose, or "" if the operator chose none. If decline is true, a form is declined.
func answer(q question, fromOperator string, decline bool) (string, error) {
	if decline && (q.Method == "sampling/createMessage" || q.Method == "roots/list") {
		return "", errors.New("it cannot be declined as a form can, so a call with declined answers would have an effect")
	}
	switch q.Method {
	case "elicitation/create":
		if decline {
			return declined, nil
		}
		var params struct {
			Mode            string
			RequestedSchema schema
		}
		if json.Unmarshal(q.Params, &params) != nil {
			return "", errors.New("it cannot be read")
		}
		if params.Mode == "url" {
			return `{"action":"accept"}`, nil
		}
		if fromOperator == "" {
			content, err := params.RequestedSchema.fill()
			if err != nil {
				return "", fmt.Errorf("%w; give one with --answer", err)
			}
			fromOperator = content
		}
		return `{"action":"accept","content":` + fromOperator + `}`, nil
	case "sampling/createMessage":
		if fromOperator == "" {
			fromOperator = `{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"tripseal-probe","stopReason":"endTurn"}`
		}
		return fromOperator, nil
	case "roots/list":
		if fromOperator == "" {
			fromOperator = `{"roots":[{"uri":"file:///tripseal-probe","name":"probe"}]}`
		}
		return fromOperator, nil
	}
	return "", fmt.Errorf("it is of a kind that is not known: %q", q.Method)
}

// accepts reports whether a message has an answer whose action is "accept".
func accepts(m message) bool { return strings.Contains(m.value("inputResponses"), `"accept"`) }

const (
	declined  = `{"action":"decline"}`
	cancelled = `{"action":"cancel"}`
)

// schema is a JSON Schema, with the keywords that forms may use.
type schema struct {
	Type       typeName
	Format     string
	Properties map[string]schema
	Required   []string
	Enum       []json.RawMessage
	OneOf      []struct{ Const json.RawMessage }
	AnyOf      []struct{ Const json.RawMessage }
	Items      *schema
	Default    json.RawMessage
	Minimum    *float64
	MinLength  int
	MinItems   int
	Pattern    string
}

// typeName is the type that a schema allows. If the schema allows several types, typeName is
// the first one that is not null.
type typeName string

func (t *typeName) UnmarshalJSON(text []byte) error {
	var names []string
	if json.Unmarshal(text, (*string)(t)) != nil && json.Unmarshal(text, &names) == nil {
		for _, name := range names {
			if name != "null" {
				*t = typeName(name)
				break
			}
		}
	}
	return nil
}

// fill returns the JSON text of a value that fits the schema.
func (s *schema) fill() (string, error) {
	choices := slices.Clone(s.Enum)
	for _, one := range slices.Concat(s.OneOf, s.AnyOf) {
		choices = append(choices, one.Const)
	}
	switch {
	case len(choices) > 0 && len(choices[0]) > 0:
		return string(choices[0]), nil
	case len(s.Default) > 0 && string(s.Default) != "null" && s.Type != "boolean":
		return string(s.Default), nil
	}
	switch s.Type {
	case "object", "":
		var all []member
		size := 0
		for name, property := range s.Properties {
			value, err := property.fill()
			if err != nil {
				if !slices.Contains(s.Required, name) {
					continue
				}
				return "", fmt.Errorf("%s: %w", name, err)
			}
			if size += len(name) + len(value); size > maxAnswers {
				return "", errLong
			}
			all = append(all, member{quoted(name), value})
		}
		slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
		return object(all), nil
	case "boolean":
		return "true", nil
	case "integer", "number":
		if s.Minimum != nil {
			return fmt.Sprint(int64(*s.Minimum) + 1), nil
		}
		return "1", nil
	case "array":
		if s.Items == nil {
			return "[]", nil
		}
		if s.MinItems > maxItems {
			return "", fmt.Errorf("it wants at least %d items, and the probe writes at most %d", s.MinItems, maxItems)
		}
		item, err := s.Items.fill()
		if err != nil {
			return "", err
		}
		n := max(s.MinItems, 1)
		if n*(len(item)+1) > maxAnswers {
			return "", errLong
		}
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]", nil
	case "string":
		if s.Pattern != "" {
			return "", fmt.Errorf("the pattern %q is not understood", s.Pattern)
		}
		if s.MinLength > maxText {
			return "", fmt.Errorf("it wants at least %d characters, and the probe writes at most %d", s.MinLength, maxText)
		}
		text := map[string]string{
			"email": "probe@example.com", "uri": "https://example.com/", "date": "2026-07-28", "date-time": "2026-07-28T12:00:00Z",
		}[s.Format]
		if text == "" {
			text = "probe"
		}
		return quoted(text + strings.Repeat("x", max(0, s.MinLength-len(text)))), nil
	}
	return "", fmt.Errorf("the type %q is not known", string(s.Type))
}

// readSchema reads the schema of a tool's arguments. It ignores keywords that it does not know.
func readSchema(text json.RawMessage) (s schema) {
	json.Unmarshal(text, &s)
	return s
}
