package elicit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
)

// Form asks the user to fill in a form. Its fields are those of the struct T: strings,
// numbers, booleans, and slices of strings. Pass the choices of a slice with [Enum]. A
// field is required unless its json tag says omitempty or omitzero. An empty text in a
// field that is not required counts as left out. To describe a field to the user, write
// the description into its jsonschema tag. Use Form for every question whose answer may
// pass through the client; for secrets use [URL].
func Form[T any](ask *Asker, key, message string, options ...FormOption) *Answer[T] {
	f, err := formOf[T](options)
	if err != nil {
		ask.recordMistake("the question %q: %v", key, err)
		return &Answer[T]{ask: ask, key: key}
	}
	return newAnswer(ask, key, &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: f}, func(content []byte, fresh bool) (value T, kept []byte, err error) {
		kept, err = f.read(content, fresh, &value)
		return value, kept, err
	})
}

// CheckForm checks the form of the struct T. It returns nil, or an error that says what
// is wrong, and in which field. Call it when the server starts, or in a test: otherwise
// a form is checked only when a handler first uses it.
func CheckForm[T any](options ...FormOption) error {
	_, err := formOf[T](options)
	return err
}

// FormOption is an option for one field of a form. Make it with [Enum] or [TextFormat].
type FormOption struct {
	field  string
	format string // "" for an Enum
	isEnum bool
	values []string // nil for a TextFormat
}

func (o FormOption) equal(other FormOption) bool {
	return o.field == other.field && o.format == other.format && o.isEnum == other.isEnum && slices.Equal(o.values, other.values)
}

func (o FormOption) apply(s *jsonschema.Schema) error {
	if !o.isEnum {
		if s.Type != "string" || !slices.Contains(formats, o.format) {
			return fmt.Errorf("the Format %q for type %s: it is one of %s, for a string", o.format, s.Type, strings.Join(formats, ", "))
		}
		s.Format = o.format
		return nil
	}
	if len(o.values) == 0 {
		return errors.New("an Enum without values")
	}
	target := s
	if s.Type == "array" {
		target = s.Items
	}
	if target.Type != "string" {
		return fmt.Errorf("an Enum for type %s, which is not string", target.Type)
	}
	for _, value := range o.values {
		if !utf8.ValidString(value) {
			return fmt.Errorf("an Enum with the value %q, which is not UTF-8", value)
		}
		target.Enum = append(target.Enum, value)
	}
	return nil
}

// Enum lists the values that a string field may have, or the choices for a slice of
// strings. The values must be UTF-8. Pass the option to [Form].
func Enum(field string, values ...string) FormOption {
	return FormOption{field: field, isEnum: true, values: values}
}

// hasFormat reports whether a text has the given format. It is needed because the schema
// library does not check formats. For a format other than email, uri, date and date-time,
// hasFormat returns true.
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
		if u, err = url.Parse(text); err == nil && u.Scheme == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return false
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		// time.Parse also accepts an hour of one digit, and a comma before the fraction of a
		// second. Neither is allowed in a date-time.
		_, err = time.Parse(time.RFC3339, text)
		if err == nil && (text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",")) {
			return false
		}
	}
	return err == nil
}

// formats are the text formats that elicitation knows.
var formats = []string{"email", "uri", "date", "date-time"}

// TextFormat sets the format of a string field: email, uri, date or date-time. Pass the
// option to [Form].
func TextFormat(field, format string) FormOption { return FormOption{field: field, format: format} }

// form is a form that was checked and can be sent to the client. It never changes.
type form struct {
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	text     []byte // the schema as JSON
	options  []FormOption
}

// MarshalJSON returns the JSON of the schema. The RequestedSchema of a question is first
// the form itself and later, when the question is sent, a copy of the schema. Because of
// MarshalJSON, the question has the same digest before and after.
func (f *form) MarshalJSON() ([]byte, error) { return f.text, nil }

// copySchema returns a deep copy of the schema for one question. Whoever receives the
// question may change the copy; the form of other calls must not change with it. The
// library's method CloneSchemas is not enough, because its copies share slices and
// numbers.
func (f *form) copySchema() (*jsonschema.Schema, error) {
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(f.text, schema); err != nil {
		return nil, err
	}
	schema.PropertyOrder = slices.Clone(f.schema.PropertyOrder) // f.text lacks this field, which sets the order of the properties in JSON
	return schema, nil
}

// plainForms and optionForms keep forms that were built. Both map a reflect.Type to a []*form. In
// plainForms, the slice has the one form of the type without options. In optionForms, the slice has
// the newest forms of the type, each with its options. A handler may compute options from what a
// client sends. So optionForms keeps only a few forms of a type, and no large form.
var plainForms, optionForms sync.Map

const (
	maxForms    = 8        // how many forms with options are kept for one type
	maxFormText = 16 << 10 // a form with options is kept only if its schema has at most this many bytes
)

func formOf[T any](options []FormOption) (*form, error) {
	t := reflect.TypeFor[T]()
	forms := &plainForms
	if len(options) > 0 {
		forms = &optionForms
	}
	kept, _ := forms.Load(t)
	known, _ := kept.([]*form)
	for _, f := range known {
		if slices.EqualFunc(f.options, options, FormOption.equal) {
			return f, nil
		}
	}
	f, err := buildForm(t, copyOptions(options))
	if err != nil {
		return nil, fmt.Errorf("the form %v: %w", t, err)
	}
	if len(options) == 0 || len(f.text) <= maxFormText {
		forms.Store(t, append([]*form{f}, known[:min(len(known), maxForms-1)]...))
	}
	return f, nil
}

// copyOptions returns a deep copy of the options. A form that is kept must not change
// when the caller changes its slices. If the caller cut a value out of a long text, the
// form must not keep that whole text in memory.
func copyOptions(options []FormOption) []FormOption {
	copies := slices.Clone(options)
	for i, o := range options {
		values := make([]string, len(o.values))
		for j, value := range o.values {
			values[j] = strings.Clone(value)
		}
		copies[i] = FormOption{strings.Clone(o.field), strings.Clone(o.format), o.isEnum, values}
	}
	return copies
}

func buildForm(t reflect.Type, options []FormOption) (*form, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("it is a %v, not a struct", t.Kind())
	}
	schema, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	schema.AdditionalProperties = nil // the schema describes the form's fields, and says nothing of other members
	for _, name := range schema.PropertyOrder {
		property := schema.Properties[name]
		withoutNull(property)
		for _, option := range options {
			if option.field == name {
				if err := option.apply(property); err != nil {
					return nil, fmt.Errorf("the field %s has %w", name, err)
				}
			}
		}
		if err := checkField(property); err != nil {
			return nil, fmt.Errorf("the field %s %w", name, err)
		}
	}
	for _, option := range options {
		if schema.Properties[option.field] == nil {
			return nil, fmt.Errorf("there is no field %s, which an option names", option.field)
		}
	}
	if len(schema.Properties) == 0 {
		return nil, errors.New("it has no fields to fill in")
	}
	for _, name := range schema.PropertyOrder {
		if err := tryField(t, name, schema.Properties[name]); err != nil {
			return nil, err
		}
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	return &form{schema, resolved, text, options}, nil
}

// tryField returns an error if an answer to the field would not arrive in the Go struct.
// encoding/json loses the answer in three cases: two embedded structs have this field; the field is
// in an embedded struct with a name in its json tag; a type's own method to read JSON drops the
// answer. If the field's type refuses the text "probe", but reads a date-time or a date, tryField
// sets that format in the schema.
func tryField(t reflect.Type, name string, s *jsonschema.Schema) error {
	probe := map[string]any{"string": "probe", "number": 1.5, "integer": 1.0, "boolean": true}[s.Type]
	switch {
	case s.Type == "array":
		probe = []any{s.Items.Enum[0]}
	case len(s.Enum) > 0:
		probe = s.Enum[0]
		for _, value := range s.Enum {
			if text, ok := value.(string); ok && !hasFormat(text, s.Format) {
				return fmt.Errorf("the field %s has the value %q among its choices, which is not a %s", name, text, s.Format)
			}
		}
	}
	if arrives(t, name, probe) {
		return nil
	}
	// Some types read only date-times, and some only dates, so try these texts too.
	for _, known := range []struct{ format, text string }{{"date-time", "2026-01-02T03:04:05Z"}, {"date", "2026-01-02"}} {
		if s.Type == "string" && len(s.Enum) == 0 && (s.Format == "" || s.Format == known.format) && arrives(t, name, known.text) {
			s.Format = known.format
			return nil
		}
	}
	return fmt.Errorf("the field %s does not come back from JSON as it was answered: make it a plain field of the struct", name)
}

func arrives(t reflect.Type, name string, probe any) bool {
	text, err := json.Marshal(map[string]any{name: probe})
	if err != nil {
		return false
	}
	var back map[string]any
	value := reflect.New(t)
	failed := tripseal.Guard(func() error {
		if err = json.Unmarshal(text, value.Interface()); err == nil {
			if text, err = json.Marshal(value.Interface()); err == nil {
				err = json.Unmarshal(text, &back)
			}
		}
		return err
	})
	return failed == nil && reflect.DeepEqual(back[name], probe)
}

// withoutNull removes null from the JSON types of a pointer or a slice. For an empty
// field of a form, a client does not send null, but leaves the field out.
func withoutNull(s *jsonschema.Schema) {
	if kinds := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(kinds) == 1 {
		s.Type, s.Types = kinds[0], nil
	}
}

// checkField refuses a field of a type that elicitation does not allow.
func checkField(s *jsonschema.Schema) error {
	switch s.Type {
	case "string", "number", "integer", "boolean":
		return nil
	case "array":
		if s.Items == nil || s.Items.Type != "string" || len(s.Items.Enum) == 0 {
			return errors.New("is a slice, which can only be a choice among strings: use []string and the option Enum")
		}
		return nil
	case "object":
		return errors.New("is an object; a form has only strings, numbers, booleans and choices")
	}
	return fmt.Errorf("is of the type %q; a form has only strings, numbers, booleans and choices", strings.Join(append(s.Types, s.Type), " "))
}

// areDistinct reports whether a list has only texts, and no text twice.
func areDistinct(list []any) bool {
	seen := make(map[string]bool, min(len(list), 64))
	for _, item := range list {
		text, ok := item.(string)
		if !ok || seen[text] {
			return false
		}
		seen[text] = true
	}
	return true
}

// read checks an answer and decodes it into a Go value. It also returns the answer
// without the members for which the form has no field. The parameter fresh is true if the
// answer came in this round. The errors may repeat the answer, so they are never shown.
func (f *form) read(content []byte, fresh bool, value any) (kept []byte, err error) {
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		return nil, err
	}
	// An answer from the state was already rewritten by this method in an earlier round, so
	// usually it need not be rewritten again.
	rewrite := fresh || fields == nil
	if fields == nil {
		fields = map[string]any{}
	}
	for name := range fields {
		if f.schema.Properties[name] == nil {
			delete(fields, name) // otherwise encoding/json would fill a field whose name differs only in case
			rewrite = true
		}
	}
	for name, property := range f.schema.Properties {
		if fields[name] == "" && !slices.Contains(f.schema.Required, name) && !slices.Contains(property.Enum, any("")) {
			delete(fields, name)
			rewrite = true
		}
	}
	// First refuse a list with the same item twice: a very long list that repeats choices
	// would cost the schema library much time. The library compares each item with each
	// choice in the schema, and stops at the first item that is not a choice.
	for _, value := range fields {
		if taken, ok := value.([]any); ok && !areDistinct(taken) {
			return nil, errors.New("the same choice twice")
		}
	}
	if err := f.resolved.Validate(fields); err != nil {
		return nil, err
	}
	for name, property := range f.schema.Properties {
		if value, ok := fields[name].(string); ok && !hasFormat(value, property.Format) {
			return nil, fmt.Errorf("not a %s", property.Format)
		}
	}
	if rewrite {
		if content, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	return content, json.Unmarshal(content, value)
}
