package gosdk

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// pagedArguments reads the arguments of a paged tool. What the schema checks,
// what the handler gets and what the cursor is bound to is one value.
type pagedArguments[In any] struct {
	cursor string // the name of its argument
	schema *jsonschema.Schema
	check  *jsonschema.Resolved
	names  nameSet // of the arguments, the cursor among them
	into   intoGo
}

func newPagedArguments[In any](schema *jsonschema.Schema, cursor string) (*pagedArguments[In], error) {
	check, err := schema.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, err
	}
	a := &pagedArguments[In]{cursor: cursor, schema: schema, check: check}
	a.names.add(cursor)
	for name := range schema.Properties {
		a.names.add(name)
	}
	addOwnNames(&a.into.known, reflect.TypeFor[In](), false, map[reflect.Type]bool{})
	return a, eachSchema(schema, nil, func(s *jsonschema.Schema, _ map[string]any) error {
		if s != schema { // whose names are not below an argument
			for _, name := range slices.Concat(slices.Collect(maps.Keys(s.Properties)), s.Required) {
				a.into.known.add(name)
			}
		}
		if s.Default == nil {
			return nil
		}
		_, err := readValue(s.Default) // as fill will
		return err
	})
}

// read returns the arguments without the cursor, in Go and as the text that the
// cursor is bound to, and the cursor. The text is of the value after defaults:
// it says all that the handler got, and a default that changes is another value.
func (a *pagedArguments[In]) read(text []byte) (in In, bound []byte, cursor string, err error) {
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
	if err := a.check.Validate(arguments); err != nil {
		return none, nil, "", asTyped(err)
	}
	bound = writeValue(arguments) // before the handler may change it
	if err := a.into.put(arguments, reflect.ValueOf(&in).Elem()); err != nil {
		return none, nil, "", fmt.Errorf("the arguments do not fit: %w", err)
	}
	return in, bound, cursor, nil
}

// asTyped words an error about the arguments as the SDK's typed tools do.
func asTyped(err error) error { return fmt.Errorf(`validating "arguments": %w`, err) }

// readObject reads arguments. None, and null, are the empty object.
func readObject(text []byte) (map[string]any, error) {
	if len(text) == 0 {
		return map[string]any{}, nil
	}
	value, err := readValue(text)
	if errors.Is(err, errNumber) {
		return nil, asTyped(err)
	} else if err != nil {
		return nil, err
	}
	switch object := value.(type) {
	case map[string]any:
		return object, nil
	case nil:
		return map[string]any{}, nil
	}
	return nil, errMalformed
}

// cut takes the cursor out of the arguments: no rule of the schema is about it.
func (a *pagedArguments[In]) cut(arguments map[string]any) (cursor string, err error) {
	for name := range arguments {
		if a.names.misspelt(name) {
			return "", errMalformed
		}
	}
	value := arguments[a.cursor]
	delete(arguments, a.cursor)
	cursor, isText := value.(string)
	if value != nil && !isText {
		return "", asTyped(fmt.Errorf("%q is %s, not a string or null", a.cursor, kindOf(value)))
	}
	return cursor, nil
}

// fill adds the defaults of properties that are missing, as
// [jsonschema.Resolved.ApplyDefaults] does, which puts numbers through a float.
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

// hasDefaults reports whether fill finds anything below a schema.
func hasDefaults(schema *jsonschema.Schema) bool {
	for _, property := range schema.Properties {
		if property.Default != nil || hasDefaults(property) {
			return true
		}
	}
	return false
}
