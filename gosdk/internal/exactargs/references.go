package exactargs

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// references is a table: it finds the schema for each fragment that a $ref can name,
// and the fragment of each schema.
type references struct {
	id        string // the $id of the document
	schemas   map[string]*jsonschema.Schema
	fragments map[*jsonschema.Schema]string
}

// newReferences returns the references of a schema. For each $ref, it finds the same schema as the
// schema library does, or it returns an error.
func newReferences(root *jsonschema.Schema) (*references, error) {
	r := &references{root.ID, map[string]*jsonschema.Schema{}, map[*jsonschema.Schema]string{}}
	if err := r.add(root, ""); err != nil {
		return nil, err
	}
	for schema, at := range r.fragments {
		if schema.Ref != "" && r.target(schema) == nil {
			return nil, fmt.Errorf("the $ref %q at #%s: write it as # and a JSON pointer, or an anchor, of this schema", schema.Ref, at)
		}
	}
	return r, nil
}

func (r *references) add(schema *jsonschema.Schema, at string) error {
	switch {
	case schema.ID != "" && at != "":
		return fmt.Errorf("the schema at #%s has an $id; only the whole schema may have one", at)
	case schema.DynamicRef != "":
		return fmt.Errorf("the schema at #%s has a $dynamicRef: use $ref", at)
	}
	r.fragments[schema] = at
	r.schemas[at] = schema
	for _, anchor := range []string{schema.Anchor, schema.DynamicAnchor} {
		if anchor == "" {
			continue
		}
		if r.schemas[anchor] != nil || strings.HasPrefix(anchor, "/") {
			return fmt.Errorf("the anchor %q at #%s is there twice, or a JSON pointer", anchor, at)
		}
		r.schemas[anchor] = schema
	}
	for _, sub := range subschemas(schema) {
		if err := r.add(sub.schema, at+sub.pointer()); err != nil {
			return err
		}
	}
	return nil
}

// target returns the schema that the $ref of a schema refers to, or nil if there is
// none.
func (r *references) target(schema *jsonschema.Schema) *jsonschema.Schema {
	document, fragment, _ := strings.Cut(schema.Ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if schema.Ref == "" || err != nil || document != "" && document != strings.TrimSuffix(r.id, "#") {
		return nil
	}
	return r.schemas[fragment]
}

// stepsIn is true for a keyword whose schemas apply to the parts of a value (as with
// items) or to nothing (as with $defs). The schemas of any other keyword apply to the
// value itself.
var stepsIn = map[string]bool{
	"properties": true, "patternProperties": true, "additionalProperties": true, "unevaluatedProperties": true, "propertyNames": true,
	"items": true, "prefixItems": true, "additionalItems": true, "unevaluatedItems": true, "contains": true,
	"$defs": true, "definitions": true, "contentSchema": true,
}

// checkCycles refuses a schema that refers back to itself for the same value: the schema
// library would recurse until the process runs out of stack.
func (r *references) checkCycles() error {
	const entered, done = 1, 2
	state := map[*jsonschema.Schema]int{}
	var enter func(schema *jsonschema.Schema) error
	enter = func(schema *jsonschema.Schema) error {
		switch state[schema] {
		case entered:
			return fmt.Errorf("the schema at #%s refers to itself without a step into the value", r.fragments[schema])
		case done:
			return nil
		}
		state[schema] = entered
		if target := r.target(schema); target != nil {
			if err := enter(target); err != nil {
				return err
			}
		}
		for _, sub := range subschemas(schema) {
			if !stepsIn[sub.keyword] {
				if err := enter(sub.schema); err != nil {
					return err
				}
			}
		}
		state[schema] = done
		return nil
	}
	for schema := range r.fragments {
		if err := enter(schema); err != nil {
			return err
		}
	}
	return nil
}
