package exactargs

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal/exactjson"
)

// addDefaults adds the defaults of missing properties to an object. Unlike
// [jsonschema.Resolved.ApplyDefaults], it does not round numbers to a float, and it also adds
// defaults inside a required property whose value is an object.
func addDefaults(schema *jsonschema.Schema, object map[string]any) error {
	for name, property := range schema.Properties {
		value, present := object[name]
		if !present {
			switch {
			case slices.Contains(schema.Required, name):
				continue // without this required property, the schema refuses the object anyway
			case property.Default != nil:
				var err error
				if value, err = exactjson.Read(property.Default); err != nil {
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
			if err := addDefaults(property, inner); err != nil {
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

// appliedCheck identifies one check that [references.checkApplied] makes, so that no check is made
// twice. The fields have the same meaning as the parameters of checkApplied.
type appliedCheck struct {
	schema                 *jsonschema.Schema
	isFilled, mayBeMissing bool
}

// checkApplied returns an error if the schema has a default that addDefaults would not apply. The
// path to the schema is a JSON pointer, with $ref in it where a $ref was followed. If isFilled is
// true, addDefaults adds the defaults of the schema's properties. If mayBeMissing is true, the
// schema's value may be missing even after a call of addDefaults.
func (r *references) checkApplied(schema *jsonschema.Schema, path string, isFilled, mayBeMissing bool, seen map[appliedCheck]bool) error {
	this := appliedCheck{schema, isFilled, mayBeMissing}
	if seen[this] {
		return nil
	}
	seen[this] = true
	if mayBeMissing && schema.Default != nil {
		return fmt.Errorf("the default at #%s would not be applied: only properties get defaults, and their properties, "+
			"but not what $ref, items, allOf or another keyword leads to; write the property out there, or leave the default out and let the handler set the value", path)
	}
	if target := r.target(schema); target != nil {
		if err := r.checkApplied(target, path+"/$ref", false, mayBeMissing, seen); err != nil {
			return err
		}
	}
	for _, sub := range subschemas(schema) {
		// The next line is right for a subschema that applies to the same JSON value, such as
		// one in allOf. The switch below corrects the two variables for a subschema that applies
		// to a part of the value.
		subFilled, subMissing := false, mayBeMissing
		switch sub.keyword {
		case "$defs", "definitions", "contentSchema":
			continue // these schemas apply to nothing, unless a $ref leads to them
		case "properties":
			subFilled = isFilled
			subMissing = !slices.Contains(schema.Required, sub.key) && !(isFilled && sub.schema.Default != nil)
		default:
			if stepsIn[sub.keyword] {
				subMissing = sub.key != "" && !sub.named // true for the schema of the item at one index, as in prefixItems, because the array may be shorter
			}
		}
		if err := r.checkApplied(sub.schema, path+sub.pointer(), subFilled, subMissing, seen); err != nil {
			return err
		}
	}
	return nil
}

// checkDefaults validates the defaults that addDefaults would add. It also checks that they fit
// into their Go types. It does not use ValidateDefaults of [jsonschema.ResolveOptions], because
// that rounds numbers to a float.
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
		return exactjson.Put(value, reflect.New(t).Interface(), a.known)
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

// eachFilled calls the function visit for every value that addDefaults may add. It passes four
// arguments: a JSON pointer that tells where the value's schema is, this schema, the value, and the
// Go type that gets the value. The type is nil if no Go type gets the value.
func eachFilled(schema *jsonschema.Schema, pointer string, t reflect.Type, visit func(pointer string, property *jsonschema.Schema, value any, t reflect.Type) error) error {
	for _, sub := range subschemas(schema) {
		if sub.keyword != "properties" {
			continue
		}
		at, inner, filled := pointer+sub.pointer(), reflect.Type(nil), map[string]any{}
		if t != nil {
			inner = memberType(t, sub.key)
		}
		err := addDefaults(&jsonschema.Schema{Properties: map[string]*jsonschema.Schema{sub.key: sub.schema}}, filled)
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
