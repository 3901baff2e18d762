package gosdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pagedInput returns the schema of the arguments, and the one that is listed,
// with the cursor among them. They share no memory, and none with the caller.
func pagedInput[In any](tool *mcp.Tool, name string) (arguments, listed *jsonschema.Schema, err error) {
	if arguments, err = schemaOf[In](tool.InputSchema); err != nil {
		return nil, nil, fmt.Errorf("the arguments: %w", err)
	}
	if arguments.Type != "object" {
		return nil, nil, fmt.Errorf("the arguments are of type %q, not object", arguments.Type)
	}
	for property := range arguments.Properties {
		if strings.EqualFold(property, name) {
			return nil, nil, fmt.Errorf("the argument %q clashes with the cursor's name; set PageOptions.Cursor to another", property)
		}
	}
	for _, required := range arguments.Required {
		if strings.EqualFold(required, name) {
			return nil, nil, fmt.Errorf("the cursor %q is required, but the first page has none", required)
		}
	}
	listed = arguments.CloneSchemas()
	if listed.Properties == nil {
		listed.Properties = map[string]*jsonschema.Schema{}
	}
	listed.Properties[name] = &jsonschema.Schema{
		Types:       []string{"string", "null"},
		Description: "Where to go on: the cursor that came with the page before, with the other arguments unchanged. Leave it out for the first page.",
	}
	if listed.PropertyOrder != nil {
		listed.PropertyOrder = append(slices.Clone(listed.PropertyOrder), name)
	}
	return arguments, listed, nil
}

// schemaOf is the schema that was given, or the one of T, in memory of its own.
func schemaOf[T any](given any) (*jsonschema.Schema, error) {
	if given == nil {
		return jsonschema.For[T](nil)
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	document, err := readNumbers(text)
	if err != nil {
		return nil, fmt.Errorf("the schema is %w", err)
	}
	schema := new(jsonschema.Schema)
	if err := json.Unmarshal(text, schema); err != nil {
		return nil, err
	}
	return schema, eachSchema(schema, document, keepNumbers)
}

// keepNumbers restores the numbers of enum and const, which jsonschema reads as
// floats, and refuses other rules that it would not apply exactly.
func keepNumbers(schema *jsonschema.Schema, document map[string]any) error {
	for name := range document {
		if keywords().misspelt(name) { // jsonschema would take it for the keyword
			return fmt.Errorf("the schema has the keyword %q in another case", name)
		}
	}
	if enum, ok := document["enum"].([]any); ok {
		if _, err := exactly(enum); err != nil {
			return err
		}
		schema.Enum = enum
	}
	if value, ok := document["const"]; ok {
		exact, err := exactly(value)
		if err != nil {
			return err
		}
		schema.Const = &exact
	}
	for _, keyword := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"} {
		written, ok := document[keyword]
		if !ok {
			continue
		}
		exact, err := exactly(written)
		if err != nil || rounds(exact) {
			return fmt.Errorf("%s is %v: it is compared as a double, so it must be exact and between -2^53 and 2^53; use enum or leave it out", keyword, written)
		}
		if _, fraction := exact.(float64); fraction && keyword == "multipleOf" {
			return fmt.Errorf("multipleOf is %v: doubles are divided by it, so it must be whole", written)
		}
	}
	return nil
}

// eachSchema visits a schema and those in it, with the JSON of each if there is
// a document.
func eachSchema(schema *jsonschema.Schema, document any, visit func(*jsonschema.Schema, map[string]any) error) error {
	if schema == nil {
		return nil // Resolve says where
	}
	members, _ := document.(map[string]any)
	if err := visit(schema, members); err != nil {
		return err
	}
	v := reflect.ValueOf(schema).Elem()
	for i := range v.NumField() {
		inJSON := members[keywordOf(v.Type().Field(i))]
		var err error
		switch field := v.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			if field != nil {
				err = eachSchema(field, inJSON, visit)
			}
		case []*jsonschema.Schema:
			documents, _ := inJSON.([]any)
			for i, sub := range field {
				var document any
				if i < len(documents) {
					document = documents[i]
				}
				err = errors.Join(err, eachSchema(sub, document, visit))
			}
		case map[string]*jsonschema.Schema:
			documents, _ := inJSON.(map[string]any)
			for name, sub := range field {
				err = errors.Join(err, eachSchema(sub, documents[name], visit))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keywords are what a schema may have.
var keywords = sync.OnceValue(func() (all nameSet) {
	t := reflect.TypeFor[jsonschema.Schema]()
	for i := range t.NumField() {
		if name := keywordOf(t.Field(i)); name != "" && name != "-" {
			all.add(name)
		}
	}
	return all
})

// keywordOf is what a field of a schema is called in JSON.
func keywordOf(field reflect.StructField) string {
	switch field.Name {
	case "Items", "ItemsArray":
		return "items"
	case "DependencySchemas":
		return "dependencies"
	}
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// pagedOutput is the schema of the result.
func pagedOutput[Item any](tool *mcp.Tool, names PageOptions) (*jsonschema.Schema, error) {
	if tool.OutputSchema != nil {
		return nil, errors.New("the output schema is made from the items; leave it out")
	}
	item, err := jsonschema.For[Item](nil)
	if err != nil {
		return nil, fmt.Errorf("the items: %w", err)
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			names.Items:      {Type: "array", Items: item},
			names.NextCursor: {Type: "string", Description: "Where the next page begins. There is none on the last page."},
		},
		PropertyOrder: []string{names.Items, names.NextCursor},
		Required:      []string{names.Items},
	}, nil
}
