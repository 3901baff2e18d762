// Package exactargs reads the arguments of a paged tool into a Go value, exactly: what
// the schema checks, what the handler gets and what the cursor is bound to is one
// value, except for arguments that the author left unbound. Names are case-sensitive,
// and whole numbers keep all their digits.
package exactargs

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// DefaultMax is how many bytes of arguments are read unless the author sets another
// limit. It is low because the schema library needs many times the arguments' size in
// memory to refuse them.
const DefaultMax = 64 << 10

// Reader reads the arguments of one tool.
type Reader[In any] struct {
	cursor  string   // the name of the cursor's argument
	unbound []string // the arguments that the cursor is not bound to
	schema  *jsonschema.Schema
	check   *jsonschema.Resolved
	divides bool    // true if the schema has a multipleOf
	names   nameSet // the names of the arguments, including the cursor's
	into    intoGo
}

// New makes the reader of a tool whose arguments have the given schema. If given is nil,
// the schema is made from In. Unbound names the arguments that the cursor is not bound
// to. New also returns the schema to list, with the cursor among the arguments. The
// reader, the listed schema and the given one share no memory.
func New[In any](given any, cursor string, unbound ...string) (reader *Reader[In], listed *jsonschema.Schema, err error) {
	schema, listed, err := schemas[In](given, cursor, unbound)
	if err != nil {
		return nil, nil, err
	}
	if reader, err = newReader[In](schema, given == nil, cursor); err != nil {
		return nil, nil, fmt.Errorf("the arguments: %w", err)
	}
	reader.unbound = slices.Clone(unbound)
	return reader, listed, nil
}

func newReader[In any](schema *jsonschema.Schema, inferred bool, cursor string) (*Reader[In], error) {
	check, err := schema.Resolve(nil)
	if err != nil {
		return nil, err
	}
	draft, err := (&jsonschema.Schema{Schema: schema.Schema}).Resolve(nil)
	if err != nil || draft.Validate(nil) != nil {
		return nil, fmt.Errorf("the $schema %q is not supported: write http://json-schema.org/draft-07/schema# or https://json-schema.org/draft/2020-12/schema, or leave it out", schema.Schema)
	}
	refs, err := newReferences(schema)
	if err != nil {
		return nil, err
	}
	if err := refs.checkCycles(); err != nil {
		return nil, err
	}
	in := reflect.TypeFor[In]()
	if err := checkQuoted(in); err != nil {
		return nil, err
	}
	if err := (&fitting{refs, inferred, map[fit]bool{}}).check(schema, in); err != nil {
		return nil, err
	}
	a := &Reader[In]{cursor: cursor, schema: schema, check: check}
	a.names.add(cursor)
	for name := range schema.Properties {
		a.names.add(name)
	}
	var all []*jsonschema.Schema
	named := false // true if a schema has propertyNames, so that any text in an enum may be a name
	older := strings.Contains(schema.Schema, "draft-07")
	if err := eachSchema(schema, nil, func(s *jsonschema.Schema, _ map[string]any) error {
		if rule := idleRule(s, older); rule != "" {
			return fmt.Errorf("the schema has %s, which the draft in its $schema does not apply", rule)
		}
		all = append(all, s)
		a.divides = a.divides || s.MultipleOf != nil
		named = named || s.PropertyNames != nil
		return nil
	}); err != nil {
		return nil, err
	}
	for _, s := range all {
		a.into.known.addNamesOf(s, named)
	}
	return a, a.checkDefaults()
}

// Read returns the arguments without the cursor: in is their Go value, and bound is the
// text that the cursor is bound to. It also returns the cursor. The text includes
// defaults, so it changes if a default in the schema changes. It has all that the
// handler got except the unbound arguments.
func (a *Reader[In]) Read(text []byte) (in In, bound []byte, cursor string, err error) {
	var none In
	arguments, err := readObject(text)
	if err != nil {
		return none, nil, "", err
	}
	if cursor, err = a.cut(arguments); err != nil {
		return none, nil, "", err
	}
	if err := fill(a.schema, arguments); err != nil {
		return none, nil, "", err
	}
	if err := a.validate(a.check, arguments); err != nil {
		return none, nil, "", asTyped(err)
	}
	bound = writeValue(a.boundOf(arguments)) // written before the handler gets the arguments, because the handler may change them
	if err := a.into.put(arguments, reflect.ValueOf(&in).Elem()); err != nil {
		return none, nil, "", about("the arguments do not fit", err)
	}
	return in, bound, cursor, nil
}

// boundOf returns the arguments without the unbound ones. It leaves the given map alone,
// because the handler gets it.
func (a *Reader[In]) boundOf(arguments map[string]any) map[string]any {
	if len(a.unbound) == 0 {
		return arguments
	}
	bound := maps.Clone(arguments)
	for _, name := range a.unbound {
		delete(bound, name)
	}
	return bound
}

// validate returns an error if a value does not fit the schema. With a multipleOf in
// the schema, it refuses integers that the schema library would round, because the
// library divides them as doubles.
func (a *Reader[In]) validate(check *jsonschema.Resolved, value any) error {
	if a.divides && rounds(value) {
		return errors.New("a number is out of range: with multipleOf in the schema, every integer must be between -2^53 and 2^53")
	}
	return check.Validate(value)
}

// checkDefaults validates the defaults that fill adds, and puts them into their Go
// types as a test. It does not use ValidateDefaults of [jsonschema.ResolveOptions],
// because that rounds numbers to a float.
func (a *Reader[In]) checkDefaults() error {
	probe := &jsonschema.Schema{Schema: a.schema.Schema, Properties: map[string]*jsonschema.Schema{}}
	values := map[string]any{}
	if err := eachFilled(a.schema, "", reflect.TypeFor[In](), func(pointer string, property *jsonschema.Schema, value any, t reflect.Type) error {
		if property.Default != nil {
			at := url.URL{Scheme: "schema", Host: "arguments", Fragment: pointer}
			probe.Properties[pointer], values[pointer] = &jsonschema.Schema{Ref: at.String()}, value
		}
		if t == nil {
			return nil
		}
		return a.into.put(value, reflect.New(t).Elem())
	}); err != nil {
		return err
	}
	check, err := probe.Resolve(&jsonschema.ResolveOptions{Loader: func(*url.URL) (*jsonschema.Schema, error) { return a.schema, nil }})
	if err != nil {
		return err
	}
	if err := a.validate(check, values); err != nil {
		return fmt.Errorf("a default: %w", err)
	}
	return nil
}

// eachFilled visits every value that fill may add. The pointer is a JSON pointer to the
// value's schema, and t is the Go type that gets the value, or nil if none does.
func eachFilled(schema *jsonschema.Schema, pointer string, t reflect.Type, visit func(pointer string, property *jsonschema.Schema, value any, t reflect.Type) error) error {
	for _, sub := range subschemas(schema) {
		if sub.keyword != "properties" {
			continue
		}
		at, inner, filled := pointer+sub.pointer(), reflect.Type(nil), map[string]any{}
		if t != nil {
			inner = memberType(t, sub.key)
		}
		err := fill(&jsonschema.Schema{Properties: map[string]*jsonschema.Schema{sub.key: sub.schema}}, filled)
		if value, ok := filled[sub.key]; ok && err == nil {
			err = visit(at, sub.schema, value, inner)
		}
		if err != nil {
			return fmt.Errorf("the default at %s: %w", at, err)
		}
		if err := eachFilled(sub.schema, at, inner, visit); err != nil {
			return err
		}
	}
	return nil
}

// asTyped words an error about the arguments as the SDK's typed tools do.
func asTyped(err error) error { return about(`validating "arguments"`, err) }

// readObject reads arguments. Missing arguments and null are the empty object.
func readObject(text []byte) (map[string]any, error) {
	if len(text) == 0 {
		return map[string]any{}, nil
	}
	value, err := readValue(text)
	if err != nil {
		return nil, asTyped(err)
	}
	switch object := value.(type) {
	case map[string]any:
		return object, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("%w: not an object", ErrMalformed)
}

// cut removes the cursor from the arguments and returns it: the schema has no rules for
// the cursor.
func (a *Reader[In]) cut(arguments map[string]any) (cursor string, err error) {
	for name := range arguments {
		if a.names.misspelt(name) {
			return "", errCase
		}
	}
	value := arguments[a.cursor]
	delete(arguments, a.cursor)
	cursor, isText := value.(string)
	if value != nil && !isText {
		return "", fmt.Errorf("%w: the cursor is not a text", ErrMalformed)
	}
	return cursor, nil
}

// fill adds the defaults of properties that are missing, as
// [jsonschema.Resolved.ApplyDefaults] does, but without rounding numbers to a float.
func fill(schema *jsonschema.Schema, object map[string]any) error {
	for name, property := range schema.Properties {
		if slices.Contains(schema.Required, name) {
			continue
		}
		value, present := object[name]
		if !present {
			switch {
			case property.Default != nil:
				var err error
				if value, err = readValue(property.Default); err != nil {
					return err
				}
			case hasDefaults(property):
				value = map[string]any{}
			default:
				continue
			}
			object[name] = value
		}
		if inner, ok := value.(map[string]any); ok {
			if err := fill(property, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasDefaults reports whether a property of the schema has a default, at any depth.
func hasDefaults(schema *jsonschema.Schema) bool {
	for _, property := range schema.Properties {
		if property.Default != nil || hasDefaults(property) {
			return true
		}
	}
	return false
}
