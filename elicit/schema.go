package elicit

import (
	"encoding/json"
	"errors"
	"fmt"
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
	name, description, format string
	kind                      string // string, number, integer or boolean
	list                      bool   // true for a list of choices
	required                  bool
	enum                      []string // the choices; nil for any text
	least, most               *float64 // the limits of a number, of a text's length, or of a list's length
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

var fieldKinds = []string{"string", "number", "integer", "boolean"}

type choice struct{ Const, Title, Description string }

// errForm says that an answer does not fit. It never reaches anybody, because it would say something of the answer.
var errForm = errors.New("elicit: the answer does not fit the form")

// parseForm reads a schema that an author made.
func parseForm(schema json.RawMessage) (*form, error) {
	var parsed struct {
		Schema               string `json:"$schema"`
		Type                 string
		Title, Description   string
		Required             []string
		Properties           map[string]json.RawMessage
		AdditionalProperties any
	}
	if err := decodeStrictly(schema, &parsed); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	if parsed.Type != "object" || !json.Valid(schema) || !utf8.Valid(schema) {
		return nil, errors.New(`is not one JSON object in UTF-8, of the type "object"`)
	}
	f := &form{schema: slices.Clone(schema)}
	for name, text := range parsed.Properties {
		var p property
		if err := decodeStrictly(text, &p); err != nil {
			return nil, fmt.Errorf("has the property %s, which cannot be read: %w", name, err)
		}
		of := field{name: name, list: p.Type == "array", required: slices.Contains(parsed.Required, name)}
		of.least, of.most = or(p.MinItems, p.MinLength, p.Minimum), or(p.MaxItems, p.MaxLength, p.Maximum)
		inner := &p
		if of.list {
			if inner = p.Items; inner == nil {
				return nil, fmt.Errorf("has the list %s without items", name)
			}
		}
		of.kind, of.format, of.enum = inner.Type, inner.Format, inner.Enum
		for _, c := range append(inner.OneOf, inner.AnyOf...) {
			of.enum, of.kind = append(of.enum, c.Const), "string" // items of titled choices need no type
		}
		if !slices.Contains(fieldKinds, of.kind) || of.enum != nil && of.kind != "string" {
			return nil, fmt.Errorf("has the property %s of the type %q; a form has only strings, numbers, booleans and "+
				"choices among texts", name, of.kind)
		}
		f.fields = append(f.fields, of)
	}
	for _, name := range parsed.Required {
		if _, ok := parsed.Properties[name]; !ok {
			return nil, fmt.Errorf("requires the property %s, which it does not have", name)
		}
	}
	return f, complete(f.fields)
}

func or(numbers ...*float64) *float64 {
	for _, n := range numbers {
		if n != nil {
			return n
		}
	}
	return nil
}

// decodeStrictly refuses a member that value has no field for: it would have no effect.
func decodeStrictly(text []byte, value any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	return d.Decode(value)
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
		left = left || string(raw) == `""` && !of.required && !slices.Contains(of.enum, "")
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
		var err error
		if b, err = of.append(b, raw); err != nil {
			return "", err
		}
	}
	return string(append(b, '}')), nil
}

// append checks the answer to one field, and appends it.
func (f *field) append(b []byte, raw json.RawMessage) ([]byte, error) {
	switch {
	case f.list:
		var items []json.RawMessage
		// A text fits once, so an answer that is longer than the list of choices does not fit.
		if json.Unmarshal(raw, &items) != nil || items == nil || len(items) > len(f.enum) || !f.allows(float64(len(items))) {
			return nil, errForm
		}
		texts := make([]string, 0, len(items))
		for _, item := range items {
			text, ok := textOf(item)
			if !ok || !slices.Contains(f.enum, text) || slices.Contains(texts, text) {
				return nil, errForm
			}
			texts = append(texts, text)
		}
		return appendJSON(b, texts), nil
	case f.kind == "string":
		text, ok := textOf(raw)
		if !ok || f.enum != nil && !slices.Contains(f.enum, text) || !hasFormat(text, f.format) ||
			(f.least != nil || f.most != nil) && !f.allows(float64(utf8.RuneCountInString(text))) {
			return nil, errForm
		}
		return appendJSON(b, text), nil
	case f.kind == "boolean":
		if text := string(raw); text == "true" || text == "false" {
			return append(b, text...), nil
		}
		return nil, errForm
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || !f.allows(n) {
		return nil, errForm
	}
	if f.kind == "integer" && strings.ContainsAny(string(raw), ".eE") { // a Go integer is read from digits alone
		if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			return nil, errForm
		}
		return strconv.AppendInt(b, int64(n), 10), nil
	}
	return append(b, raw...), nil
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
	var err error
	switch format {
	case "email":
		var address *mail.Address
		if address, err = mail.ParseAddress(text); err == nil && address.Address != text {
			return false
		}
	case "uri":
		var u *url.URL
		strange := func(r rune) bool { return r <= ' ' || r > '~' }
		if u, err = url.Parse(text); err == nil && u.Scheme == "" || strings.ContainsFunc(text, strange) {
			return false
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		// time.Parse also accepts an hour of one digit, and a comma before the fraction of a second.
		_, err = time.Parse(time.RFC3339, text)
		if err == nil && (text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",")) {
			return false
		}
	}
	return err == nil
}
