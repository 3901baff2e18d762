package probe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// answer returns the JSON text of an answer to a question. given is what the operator said
// the answer is, or "".
func answer(key string, q question, given string, decline bool) (string, error) {
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
			return "", fmt.Errorf("the question %q cannot be read", key)
		}
		if params.Mode == "url" {
			return `{"action":"accept"}`, nil
		}
		if given == "" {
			content, err := params.RequestedSchema.fill()
			if err != nil {
				return "", fmt.Errorf("no answer to the question %q: %w; give one", key, err)
			}
			given = content
		}
		return `{"action":"accept","content":` + given + `}`, nil
	case "sampling/createMessage":
		if given == "" {
			given = `{"role":"assistant","content":{"type":"text","text":"Paris"},"model":"mcpseal-probe","stopReason":"endTurn"}`
		}
		return given, nil
	case "roots/list":
		if given == "" {
			given = `{"roots":[{"uri":"file:///mcpseal-probe","name":"probe"}]}`
		}
		return given, nil
	}
	return "", fmt.Errorf("the question %q is of a kind that is not known: %q", key, q.Method)
}

const (
	declined  = `{"action":"decline"}`
	cancelled = `{"action":"cancel"}`
)

// schema is the part of JSON Schema that forms may use.
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

// typeName is the first type that a schema allows.
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

// fill returns a value that fits the schema.
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
		for name, property := range s.Properties {
			value, err := property.fill()
			if err != nil {
				if !slices.Contains(s.Required, name) {
					continue
				}
				return "", fmt.Errorf("%s: %w", name, err)
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
		var items []string
		for range max(s.MinItems, 1) {
			if s.Items == nil {
				return "[]", nil
			}
			item, err := s.Items.fill()
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		return "[" + strings.Join(items, ",") + "]", nil
	case "string":
		if s.Pattern != "" {
			return "", fmt.Errorf("the pattern %q is not understood", clip(s.Pattern, 60))
		}
		text := map[string]string{
			"email": "probe@example.com", "uri": "https://example.com/", "date": "2026-07-28", "date-time": "2026-07-28T12:00:00Z",
		}[s.Format]
		if text == "" {
			text = "probe"
		}
		return quoted(text + strings.Repeat("x", max(0, min(s.MinLength, 1<<16)-len(text)))), nil
	}
	return "", fmt.Errorf("the type %q is not known", clip(string(s.Type), 60))
}

// readSchema reads the schema of a tool's arguments. What it does not know, it leaves out.
func readSchema(text json.RawMessage) (s schema) {
	json.Unmarshal(text, &s)
	return s
}
