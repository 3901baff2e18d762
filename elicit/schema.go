package elicit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// field is a field of a form, and what an answer must have in it.
type field struct {
	property
	name        string
	required    bool
	choices     []string // nil for any text
	least, most *float64 // the limits of a number, of a text's length, or of a list's length
}

// property is a property of a schema, as the protocol allows it in forms.
type property struct {
	Type        string    `json:"type,omitempty"`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Format      string    `json:"format,omitempty"`
	Enum        []string  `json:"enum,omitempty"`
	EnumNames   []string  `json:"enumNames,omitempty"`
	OneOf       []choice  `json:"oneOf,omitempty"`
	AnyOf       []choice  `json:"anyOf,omitempty"`
	Items       *property `json:"items,omitempty"`
	Minimum     *float64  `json:"minimum,omitempty"`
	Maximum     *float64  `json:"maximum,omitempty"`
	MinLength   *float64  `json:"minLength,omitempty"`
	MaxLength   *float64  `json:"maxLength,omitempty"`
	MinItems    *float64  `json:"minItems,omitempty"`
	MaxItems    *float64  `json:"maxItems,omitempty"`
	UniqueItems bool      `json:"uniqueItems,omitempty"`
	Default     any       `json:"default,omitempty"`
}

type choice struct{ Const, Title, Description string }

// entry returns what one entry must be: an item of a list, or the whole.
func (p *property) entry() *property { return cmp.Or(p.Items, p) }

// errForm says that an answer does not fit. It never reaches anybody, because it would say something of the answer.
var errForm = errors.New("elicit: the answer does not fit the form")

// parseForm reads a schema that an author made. It refuses a member that it does not know, which would have no effect.
func parseForm(schema json.RawMessage) (*form, error) {
	var parsed struct {
		Schema               string `json:"$schema"`
		Type                 string
		Title, Description   string
		Required             []string
		Properties           map[string]property
		AdditionalProperties any
	}
	d := json.NewDecoder(strings.NewReader(string(schema)))
	d.DisallowUnknownFields()
	if err := d.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if parsed.Type != "object" || !json.Valid(schema) || !utf8.Valid(schema) {
		return nil, errors.New(`is not one JSON object in UTF-8, of the type "object"`)
	}
	f := &form{schema: slices.Clone(schema)}
	for _, name := range slices.Sorted(maps.Keys(parsed.Properties)) {
		f.fields = append(f.fields, field{
			name: name, property: parsed.Properties[name], required: slices.Contains(parsed.Required, name),
		})
	}
	return f, f.prepare()
}

// prepare returns an error if answers to the form could not be checked, or the protocol does not allow it.
func (f *form) prepare() error {
	if len(f.fields) == 0 {
		return errors.New("has no fields to fill in")
	}
	for i := range f.fields {
		of := &f.fields[i]
		of.least, of.most = cmp.Or(of.MinItems, of.MinLength, of.Minimum), cmp.Or(of.MaxItems, of.MaxLength, of.Maximum)
		e := of.entry()
		of.choices = slices.Clone(e.Enum)
		for _, c := range slices.Concat(e.OneOf, e.AnyOf) {
			of.choices = append(of.choices, c.Const)
		}
		known := slices.Contains([]string{"string", "number", "integer", "boolean"}, of.Type)
		switch {
		case (of.Type == "array") != (of.Items != nil) || !known && of.Items == nil:
			return fmt.Errorf("the field %s has the type %q; a form has only texts, numbers, booleans and choices",
				of.name, of.Type)
		case of.Items != nil && of.choices == nil:
			return fmt.Errorf("the field %s is a slice or list, which can only be a choice: use Enum", of.name)
		case of.Items == nil && of.choices != nil && of.Type != "string":
			return fmt.Errorf("the field %s has choices, but is no text", of.name)
		case e.Format != "" && !slices.Contains(formats, e.Format):
			return fmt.Errorf("the field %s has the format %q, which is none of %v", of.name, e.Format, formats)
		}
	}
	return nil
}

// read checks an answer, and returns it in the form's own spelling: with the fields of the form alone, in their order.
// A null, and an empty text in a field that is not required, count as left out.
func (f *form) read(content string) (string, error) {
	var given map[string]json.RawMessage
	if content != "" && json.Unmarshal([]byte(content), &given) != nil {
		return "", errForm
	}
	b := []byte{'{'}
	for i := range f.fields {
		of := &f.fields[i]
		raw := given[of.name]
		left := len(raw) == 0 || string(raw) == "null"
		left = left || string(raw) == `""` && !of.required && !slices.Contains(of.choices, "")
		if left {
			if of.required {
				return "", errForm
			}
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, of.name), ':')
		var ok bool
		if b, ok = of.append(b, raw); !ok {
			return "", errForm
		}
	}
	return string(append(b, '}')), nil
}

// append checks the answer to one field, and appends it. ok is false if it does not fit.
func (f *field) append(b []byte, raw json.RawMessage) (_ []byte, ok bool) {
	switch f.Type {
	case "array":
		var items []json.RawMessage
		// A text fits once, so an answer that is longer than the list of choices does not fit.
		if json.Unmarshal(raw, &items) != nil || len(items) > len(f.choices) || !f.allows(float64(len(items))) {
			return nil, false
		}
		texts := make([]string, 0, len(items))
		for _, item := range items {
			text, ok := textOf(item)
			if !ok || !slices.Contains(f.choices, text) || slices.Contains(texts, text) {
				return nil, false
			}
			texts = append(texts, text)
		}
		return appendJSON(b, texts), true
	case "string":
		text, ok := textOf(raw)
		ok = ok && (f.choices == nil || slices.Contains(f.choices, text)) && hasFormat(text, f.Format)
		return appendJSON(b, text), ok && f.allows(float64(utf8.RuneCountInString(text)))
	case "boolean":
		return append(b, raw...), string(raw) == "true" || string(raw) == "false"
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || !f.allows(n) {
		return nil, false
	}
	if f.Type == "integer" && strings.ContainsAny(string(raw), ".eE") { // a Go integer is read from digits alone
		return strconv.AppendInt(b, int64(n), 10), n == math.Trunc(n) && math.Abs(n) <= 1<<53
	}
	return append(b, raw...), true
}

func (f *field) allows(n float64) bool {
	return (f.least == nil || *f.least <= n) && (f.most == nil || n <= *f.most)
}

func textOf(raw json.RawMessage) (text string, ok bool) {
	return text, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
}

// formats are the text formats that the protocol knows.
var formats = []string{"email", "uri", "date", "date-time"}

// hasFormat reports whether a text has a format. Any text has the format "".
func hasFormat(text, format string) bool {
	switch format {
	case "email":
		address, err := mail.ParseAddress(text)
		return err == nil && address.Address == text
	case "uri":
		u, err := url.Parse(text)
		return err == nil && u.Scheme != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
	case "date":
		_, err := time.Parse(time.DateOnly, text)
		return err == nil
	case "date-time":
		// time.Parse also accepts an hour of one digit, and a comma before the fraction of a second.
		_, err := time.Parse(time.RFC3339, text)
		return err == nil && text[len("2006-01-02T15")] == ':' && !strings.Contains(text, ",")
	}
	return true
}
