package exactargs

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal/exactjson"
)

// fitting checks that a Go type can hold the values that a schema accepts. If an
// argument would be lost, the tool cannot be registered.
type fitting struct {
	*references
	inferred bool         // true if the schema is made from the type
	seen     map[fit]bool // true for the pairs of schema and type that were already checked
}

type fit struct {
	schema *jsonschema.Schema
	typ    reflect.Type
}

func (f *fitting) check(schema *jsonschema.Schema, t reflect.Type) error {
	t = bareType(t)
	if f.seen[fit{schema, t}] {
		return nil
	}
	f.seen[fit{schema, t}] = true
	if readsItself(t) {
		if f.inferred && !describesReader(schema, t) {
			return fmt.Errorf("the Go type %s has its own way to read JSON, which the schema made from the type does not describe: set InputSchema", t)
		}
		return nil
	}
	if t.Kind() == reflect.Struct {
		for _, name := range schema.Required {
			if err := f.checkName(name, t); err != nil {
				return err
			}
		}
		for name := range schema.Properties {
			if err := f.checkName(name, t); err != nil {
				return err
			}
		}
	}
	if target := f.target(schema); target != nil {
		if err := f.check(target, t); err != nil {
			return err
		}
	}
	for _, sub := range subschemas(schema) {
		inner := t
		switch {
		case sub.keyword == "not": // the keyword "not" describes values that are refused, so they need not fit the Go type
			continue
		case sub.keyword == "properties":
			inner = memberType(t, sub.key)
		case stepsIn[sub.keyword]:
			inner = elementType(t, sub.keyword)
		}
		if inner == nil {
			continue
		}
		if err := f.check(sub.schema, inner); err != nil {
			return err
		}
	}
	return nil
}

// describesReader is for a type with its own method to read JSON. It reports whether the
// schema made from the type may describe what the method reads. It returns false in two
// cases. First, a struct has the method from an embedded type: the method reads only the
// fields of the embedded type, but the schema has all fields. Second, the type is a Go
// number: the schema expects a number, but the method often reads a name.
func describesReader(schema *jsonschema.Schema, t reflect.Type) bool {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		if field := t.Field(i); field.Anonymous && (readsItself(bareType(field.Type)) || field.Type.Kind() == reflect.Interface) {
			return false
		}
	}
	if schema.Type == "string" || slices.Contains(schema.Types, "string") {
		return true
	}
	return reflect.PointerTo(t).Implements(unmarshalerType) && slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice, reflect.Array}, t.Kind())
}

// checkName returns an error if a field of t should get the JSON member with this name,
// but would not get it.
func (f *fitting) checkName(name string, t reflect.Type) error {
	fields := exactjson.Fields(t)
	field, found := fields[name]
	switch {
	case namesOf(fields).Misspelt(name):
		return fmt.Errorf("the schema's name %q differs from the name of a field of %s only in upper and lower case", name, t)
	case found && field.Type == nil:
		return fmt.Errorf("more than one field of %s is called %q, so none gets it", t, name)
	case !found && f.inferred:
		return fmt.Errorf("no field of %s gets %q: encoding/json uses another name for it, or none", t, name)
	case found:
		_, err := field.In(reflect.New(t).Elem())
		return err
	}
	return nil
}

// namesOf returns the names of fields. It leaves out a name that several fields have.
func namesOf(fields map[string]exactjson.Field) (names exactjson.Names) {
	for name, field := range fields {
		if field.Type != nil {
			names.Add(name)
		}
	}
	return names
}

// bareType returns the type that a pointer points to, through any number of pointers.
// It returns any other type unchanged.
func bareType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether a type has its own method to read JSON. The type must not
// be a pointer.
func readsItself(t reflect.Type) bool {
	own := reflect.PointerTo(t)
	return own.Implements(unmarshalerType) || own.Implements(textUnmarshalerType)
}

// memberType returns the Go type in t that gets the JSON member with this name, or nil
// if there is none.
func memberType(t reflect.Type, name string) reflect.Type {
	t = bareType(t)
	switch {
	case readsItself(t):
	case t.Kind() == reflect.Struct:
		return exactjson.Fields(t)[name].Type
	case t.Kind() == reflect.Map:
		return t.Elem()
	}
	return nil
}

// elementType returns the Go type of the elements of t. It returns nil if the keyword does not
// describe elements of t. For example, the keyword items describes the elements of a slice.
func elementType(t reflect.Type, keyword string) reflect.Type {
	switch keyword {
	case "patternProperties", "additionalProperties", "unevaluatedProperties":
		if t.Kind() == reflect.Map {
			return t.Elem()
		}
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
			return t.Elem()
		}
	}
	return nil
}

// eachType calls the function visit for a type and for the types in it. If visit
// returns false for a type, eachType does not look into that type.
func eachType(t reflect.Type, seen map[reflect.Type]bool, visit func(reflect.Type) bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if !visit(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		eachType(t.Elem(), seen, visit)
	case reflect.Struct:
		for _, field := range exactjson.Fields(t) {
			if field.Type != nil {
				eachType(field.Type, seen, visit)
			}
		}
	}
}

// quotedField returns the name of a field whose json tag has the option ",string", or ""
// if there is no such field.
func quotedField(t reflect.Type) string {
	for name, field := range exactjson.Fields(t) {
		if field.Quoted {
			return name
		}
	}
	return ""
}

// checkQuoted refuses fields whose json tag has the option ",string". For such a field,
// encoding/json writes even a number as a JSON string. One number can be written as many strings,
// and the schema would check the string, not the number.
func checkQuoted(t reflect.Type) (err error) {
	eachType(t, map[reflect.Type]bool{}, func(t reflect.Type) bool {
		if readsItself(t) {
			return false
		}
		if name := quotedField(t); name != "" {
			err = fmt.Errorf("the field %q of %s has the option string: leave it out", name, t)
		}
		return true
	})
	return err
}
