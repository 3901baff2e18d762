package mcpgo

import (
	"slices"
	"strings"

	"github.com/tripseal/tripseal/exactjson"
)

// schemaNames has the names of the members that a schema has rules for.
type schemaNames struct {
	names exactjson.Names
	twins exactjson.Names // names that differ from another one only in upper and lower case
}

func (n *schemaNames) addName(name string) {
	if n.names.Misspelt(name) {
		n.twins.Add(name)
	}
	n.names.Add(name)
}

// addItems adds the names in a list.
func (n *schemaNames) addItems(list any) {
	items, _ := list.([]any)
	for _, item := range items {
		if name, ok := item.(string); ok {
			n.addName(name)
		}
	}
}

// addOwn adds the names in one object of a schema. It does not add the names in the schemas inside
// this object.
func (n *schemaNames) addOwn(schema map[string]any) {
	n.addItems(schema["required"])
	for _, rule := range []string{"properties", "dependentRequired", "dependentSchemas", "dependencies"} {
		members, _ := schema[rule].(map[string]any)
		for name, needed := range members {
			n.addName(name)
			n.addItems(needed)
		}
	}
	n.addValue(schema["enum"])
	n.addValue(schema["const"])
}

// addTexts adds the texts that an object of a schema lists in its enum or const. Call it for the schemas
// in propertyNames.
func (n *schemaNames) addTexts(schema map[string]any) {
	n.addItems(schema["enum"])
	n.addItems([]any{schema["const"]})
}

// addValue adds the names of all members in a value that the schema has in an enum or a const.
func (n *schemaNames) addValue(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			n.addName(name)
			n.addValue(member)
		}
	case []any:
		for _, item := range v {
			n.addValue(item)
		}
	}
}

// eachSchema calls visit for a schema, and for each schema inside it at any depth.
func eachSchema(schema any, visit func(map[string]any)) {
	eachSchemaIn(schema, nil, func(s, _ map[string]any) { visit(s) })
}

// eachSchemaIn is like eachSchema, but also passes the document of each schema: the innermost schema
// around it that has an $id of its own, or the outermost schema.
func eachSchemaIn(schema any, document map[string]any, visit func(s, document map[string]any)) {
	switch s := schema.(type) {
	case map[string]any:
		if id, ok := s["$id"].(string); document == nil || ok && !strings.HasPrefix(id, "#") {
			document = s
		}
		visit(s, document)
		for rule, value := range s {
			switch {
			case slices.Contains(valueRules, rule), strings.HasPrefix(rule, "x-"):
			case slices.Contains(memberRules, rule):
				members, _ := value.(map[string]any)
				for _, member := range members { // the keys are left out: they are names or patterns, not rules
					eachSchemaIn(member, document, visit)
				}
			default:
				eachSchemaIn(value, document, visit)
			}
		}
	case []any:
		for _, item := range s {
			eachSchemaIn(item, document, visit)
		}
	}
}

// isPlain reports whether all rules of one schema that may have schemas are among plainRules, and none
// of them has a list of schemas.
func isPlain(schema map[string]any) bool {
	for rule, value := range schema {
		_, isList := value.([]any)
		switch {
		case slices.Contains(valueRules, rule), strings.HasPrefix(rule, "x-"):
		case !slices.Contains(plainRules, rule), isList:
			return false
		}
	}
	return true
}

// plainRules are rules whose schemas apply only where they are written. Other rules, such as $ref
// and allOf, can apply any part of the schema to any member. A list of schemas can do the same.
var plainRules = []string{"$defs", "definitions", "properties", "additionalProperties", "items"}

// memberRules are rules with a schema for each member.
var memberRules = []string{"$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"}

// valueRules are rules that contain no schemas.
var valueRules = slices.Concat(annotations, []string{
	"type", "enum", "const", "format", "required", "dependentRequired", "minProperties", "maxProperties",
	"minItems", "maxItems", "uniqueItems", "minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
})

// annotations are keywords that refuse no value.
var annotations = []string{
	"$schema", "$id", "$comment", "title", "description", "example", "examples", "default", "deprecated", "readOnly", "writeOnly",
}
