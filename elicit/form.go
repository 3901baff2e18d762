package elicit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
)

// Form asks the user to fill in a form with the fields of the struct T: strings, numbers, booleans, times, and slices
// of strings, whose choices [Enum] lists. A field is required unless its json tag says omitempty or omitzero, or its
// type is a pointer. The jsonschema tag describes a field to the user. In a field that is not required, an empty text
// counts as left out. Use it for all that may pass through the client; for secrets use [URL].
func Form[T any](ask *Asker, key, message string, options ...Option) *Answer[T] {
	f, err := formOf(reflect.TypeFor[T](), options)
	return askForm(ask, key, message, f, err, func(content string) (value T, err error) {
		return value, json.Unmarshal([]byte(content), &value)
	})
}

// FormSchema asks the user to fill in a form that is known only at run time. The schema is the JSON text of an object
// with flat properties, as the protocol allows them in forms: with titles, descriptions, choices and limits. The answer
// has only properties of the schema.
func FormSchema(ask *Asker, key, message string, schema json.RawMessage) *Answer[map[string]any] {
	f, err := parseForm(schema)
	return askForm(ask, key, message, f, err, func(content string) (value map[string]any, err error) {
		return value, json.Unmarshal([]byte(content), &value)
	})
}

// Choice asks the user to choose one of the texts, which may be known only at run time.
func Choice(ask *Asker, key, message string, choices ...string) *Answer[string] {
	f, err := newForm([]field{{name: "choice", kind: "string", required: true}}, []Option{Enum("choice", choices...)})
	return askForm(ask, key, message, f, err, func(content string) (string, error) {
		var answer struct{ Choice string }
		err := json.Unmarshal([]byte(content), &answer)
		return answer.Choice, err
	})
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

// CheckForm returns an error if the struct T makes no form. Call it in a test, or when the server starts: a form is
// otherwise checked when a handler first uses it.
func CheckForm[T any](options ...Option) error {
	_, err := formOf(reflect.TypeFor[T](), options)
	return err
}

// Option is an option for one field of a form. Make it with [Enum] or [TextFormat].
type Option struct {
	field, format string
	values        []string
}

// Enum lists the values that a string field may have, or the choices for a slice of strings.
func Enum(field string, values ...string) Option { return Option{field: field, values: values} }

// TextFormat sets the format of a string field: email, uri, date or date-time.
func TextFormat(field, format string) Option { return Option{field: field, format: format} }

// form is a form that was checked. It never changes.
type form struct {
	fields []field
	schema json.RawMessage
}

// forms keeps the forms without options, by their types.
var forms sync.Map

func formOf(t reflect.Type, options []Option) (*form, error) {
	known, ok := forms.Load(t)
	if !ok {
		fields, err := fieldsOf(t)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", t, err)
		}
		f := &form{fields: fields}
		if complete(fields) == nil {
			f.schema = schemaOf(fields)
		}
		known, _ = forms.LoadOrStore(t, f)
	}
	f := known.(*form)
	if len(options) == 0 && f.schema != nil {
		return f, nil
	}
	f, err := newForm(f.fields, options)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	return f, nil
}

// newForm returns a form with these fields and options.
func newForm(fields []field, options []Option) (*form, error) {
	fields = slices.Clone(fields)
	for _, o := range options {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == o.field })
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no field %s, which an option names", o.field)
		case fields[i].kind != "string":
			return nil, fmt.Errorf("an option for the field %s, which is no string", o.field)
		case o.format != "":
			fields[i].format = o.format
		case len(o.values) == 0:
			return nil, fmt.Errorf("the field %s has no values to choose from", o.field)
		default:
			fields[i].enum = o.values
		}
	}
	if err := complete(fields); err != nil {
		return nil, err
	}
	return &form{fields, schemaOf(fields)}, nil
}

// complete returns an error if the protocol does not allow a form with these fields.
func complete(fields []field) error {
	if len(fields) == 0 {
		return fmt.Errorf("has no fields to fill in")
	}
	for i := range fields {
		f := &fields[i]
		if f.list && len(f.enum) == 0 {
			return fmt.Errorf("the field %s is a slice, which can only be a choice: use Enum", f.name)
		}
		if f.format != "" && (!slices.Contains(formats, f.format) || f.list) {
			return fmt.Errorf("the field %s has the format %q, which is none of %v", f.name, f.format, formats)
		}
		for _, choice := range f.enum {
			if !utf8.ValidString(choice) || !hasFormat(choice, f.format) {
				return fmt.Errorf("the field %s has the choice %q, which is not UTF-8 or has another format", f.name, choice)
			}
		}
	}
	return nil
}

// fieldsOf returns the fields of a struct, in the order of the struct.
func fieldsOf(t reflect.Type) (fields []field, err error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("it is a %v, not a struct", t.Kind())
	}
	for i := range t.NumField() {
		member := t.Field(i)
		name, rest, _ := strings.Cut(member.Tag.Get("json"), ",")
		switch {
		case member.Anonymous && name == "" && member.Type.Kind() == reflect.Struct:
			inner, err := fieldsOf(member.Type)
			if err != nil {
				return nil, err
			}
			fields = append(fields, inner...)
			continue
		case name == "-" && rest == "" || !member.IsExported():
			continue
		case name == "":
			name = member.Name
		}
		f := field{name: name, description: member.Tag.Get("jsonschema")}
		f.required = !strings.Contains(","+rest+",", ",omitempty,") && !strings.Contains(","+rest+",", ",omitzero,")
		of := member.Type
		if of.Kind() == reflect.Pointer {
			of, f.required = of.Elem(), false
		}
		if of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.String {
			of, f.list = of.Elem(), true
		}
		if f.kind = kindOf(of); f.kind == "" {
			return nil, fmt.Errorf("the field %s is a %v; a form has only texts, numbers, booleans, times and choices", name, of)
		}
		if of == reflect.TypeFor[time.Time]() {
			f.format = "date-time"
		}
		if slices.ContainsFunc(fields, func(other field) bool { return strings.EqualFold(other.name, name) }) {
			return nil, fmt.Errorf("two fields have the name %s", name)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// kindOf returns the JSON type of a field, or "".
func kindOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.String || t == reflect.TypeFor[time.Time]():
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

// schemaOf returns the JSON text of the schema of these fields.
func schemaOf(fields []field) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i := range fields {
		f := &fields[i]
		p := property{Type: f.kind, Description: f.description, Format: f.format, Enum: f.enum}
		if f.list {
			p = property{Type: "array", Description: f.description, Items: &property{Type: f.kind, Enum: f.enum}}
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(append(appendJSON(b, f.name), ':'), p)
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
