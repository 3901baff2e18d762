package elicit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tripseal/tripseal"
)

// Form asks the user to fill in a form with the fields of the struct T: strings, numbers, booleans, and slices of
// strings, whose choices [Enum] lists. A field is required unless its json tag says omitempty or omitzero, or its type
// is a pointer. The jsonschema tag describes a field to the user. In a field that is not required, an empty text counts
// as left out. Use it for all that may pass through the client; for secrets use [URL].
func Form[T any](ask *Asker, key, message string, options ...Option) *Answer[T] {
	f, err := formOf(reflect.TypeFor[T](), options)
	return askForm(ask, key, message, f, err, decode[T])
}

// FormSchema asks the user to fill in a form that is known only at run time. The schema is the JSON text of an object
// with flat properties, as the protocol allows them in forms: with titles, descriptions, choices, formats and limits.
// The answer has only properties of the schema.
func FormSchema(ask *Asker, key, message string, schema json.RawMessage) *Answer[map[string]any] {
	f, err := parseForm(schema)
	return askForm(ask, key, message, f, err, decode[map[string]any])
}

// Choice asks the user to choose one of the texts, which may be known only at run time.
func Choice(ask *Asker, key, message string, choices ...string) *Answer[string] {
	type chosen struct {
		Choice string `json:"choice"`
	}
	f, err := formOf(reflect.TypeFor[chosen](), []Option{Enum("choice", choices...)})
	return askForm(ask, key, message, f, err, func(content string) (string, error) {
		answer, err := decode[chosen](content)
		return answer.Choice, err
	})
}

func decode[T any](content string) (value T, err error) {
	return value, json.Unmarshal([]byte(content), &value)
}

func askForm[T any](
	ask *Asker, key, message string, f *form, err error, decode func(content string) (T, error),
) *Answer[T] {
	if err != nil {
		ask.fail("the question %s: the form %v", tripseal.PlainText(key), err)
		return &Answer[T]{ask: ask, asked: Question{Key: key}}
	}
	q := Question{Key: key, Kind: tripseal.KindForm, Message: message, Schema: f.schema}
	return newAnswer(ask, q, func(content string, checked bool) (value T, kept string, err error) {
		if !checked {
			if content, err = f.read(content); err != nil {
				return value, "", err
			}
		}
		value, err = decode(content)
		return value, content, err
	})
}

// Option is an option for one field of a form: see [Enum].
type Option struct {
	field  string
	values []string
}

// Enum lists the values that a string field may have, or the choices for a slice of strings.
func Enum(field string, values ...string) Option { return Option{field, values} }

// form is a form that was checked. It never changes.
type form struct {
	fields []field
	schema json.RawMessage
}

// forms keeps the forms without options, by their types.
var forms sync.Map

func formOf(t reflect.Type, options []Option) (*form, error) {
	if known, ok := forms.Load(t); ok && len(options) == 0 {
		return known.(*form), nil
	}
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	for _, o := range options {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == o.field })
		if i < 0 || len(o.values) == 0 {
			return nil, fmt.Errorf("%v: there is no field %s, or it has no values to choose from", t, o.field)
		}
		fields[i].entry().Enum = o.values
	}
	f := &form{fields: fields}
	if err := f.prepare(); err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	f.schema = schemaOf(fields)
	if len(options) == 0 {
		forms.Store(t, f)
	}
	return f, nil
}

// fieldsOf returns the fields of a struct, in the order of the struct.
func fieldsOf(t reflect.Type) (fields []field, err error) {
	if t.Kind() != reflect.Struct {
		return nil, errors.New("it is not a struct")
	}
	for i := range t.NumField() {
		member := t.Field(i)
		name, rest, _ := strings.Cut(member.Tag.Get("json"), ",")
		switch {
		case name == "-" && rest == "" || !member.IsExported() && !member.Anonymous:
			continue
		case name == "":
			name = member.Name
		}
		of, required := member.Type, !strings.Contains(rest, "omitempty") && !strings.Contains(rest, "omitzero")
		if of.Kind() == reflect.Pointer {
			of, required = of.Elem(), false
		}
		f := field{name: name, required: required, property: property{Type: kindOf(of)}}
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.String {
			f.Type, f.Items = "array", &property{Type: "string"}
		}
		if f.Type == "" {
			return nil, fmt.Errorf("the field %s is a %v; a form has only texts, numbers, booleans and choices", name, of)
		}
		f.Description = member.Tag.Get("jsonschema")
		fields = append(fields, f)
	}
	return fields, nil
}

// kindOf returns the JSON type of a field, or "".
func kindOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.String:
		return "string"
	case k == reflect.Bool:
		return "boolean"
	case reflect.Int <= k && k <= reflect.Uintptr:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	}
	return ""
}

// schemaOf returns the JSON text of the schema of these fields, in their order.
func schemaOf(fields []field) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i := range fields {
		f := &fields[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(append(appendJSON(b, f.name), ':'), f.property)
		if f.required {
			required = append(required, f.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = appendJSON(append(b, `,"required":`...), required)
	}
	return append(b, '}')
}

// appendJSON appends the JSON text of texts, which can always be written.
func appendJSON(dst []byte, value any) []byte {
	text, _ := json.Marshal(value)
	return append(dst, text...)
}
