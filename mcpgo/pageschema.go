package mcpgo

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/tripseal/tripseal/exactjson"
)

// listedSchema returns the input schema for tools/list: the schema of the tool, with the
// cursor added to the arguments.
func (t *pagedTool[In, At, Item]) listedSchema(tool mcp.Tool, inferred bool) (json.RawMessage, error) {
	text := tool.RawInputSchema
	if len(text) == 0 {
		var err error
		if text, err = json.Marshal(tool.InputSchema); err != nil {
			return nil, err
		}
	}
	var schema, properties map[string]json.RawMessage // values stay as raw text, so that they do not change
	if err := json.Unmarshal(text, &schema); err != nil || schema == nil {
		return nil, fmt.Errorf("the input schema is not a JSON object: %v", err)
	}
	// mcp-go checks the arguments against the schema while the cursor is still among them.
	// So only rules that do not concern the cursor are allowed at the root.
	for rule := range schema {
		if !slices.Contains(rootRules, rule) && !strings.HasPrefix(rule, "x-") {
			return nil, fmt.Errorf("the schema has %s at its root, which may apply to the cursor too: check the arguments in the handler", rule)
		}
	}
	if kind := schema["type"]; kind != nil && string(kind) != `"object"` {
		return nil, fmt.Errorf("the schema describes %s, not an object", kind)
	}
	if schema["properties"] != nil {
		if err := json.Unmarshal(schema["properties"], &properties); err != nil {
			return nil, fmt.Errorf("the properties of the input schema: %w", err)
		}
	}
	for _, name := range t.names.Unbound {
		if _, ok := properties[name]; !ok || name == t.names.Cursor {
			return nil, fmt.Errorf("PageOptions.Unbound names %q, which is not an argument", name)
		}
	}
	t.roots.Add(t.names.Cursor)
	for name := range properties {
		if t.roots.Has(name) || t.roots.Misspelt(name) {
			return nil, fmt.Errorf("the argument %q has the name of the cursor, or differs from another only in case", name)
		}
		t.roots.Add(name)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	references := readReferences(all)
	if err := references.check(); err != nil {
		return nil, err
	}
	f := &fitting{inferred: inferred, plain: true, seen: make(map[fit]bool)}
	eachSchemaIn(all, nil, func(s, document map[string]any) {
		f.all.addOwn(s)
		f.plain = f.plain && isPlain(s)
		references.each(s["propertyNames"], document, f.all.addTexts)
	})
	if err := f.check(all, reflect.TypeFor[In]()); err != nil {
		return nil, err
	}
	t.known = f.all.names
	t.known.Add(t.names.Cursor)
	about, err := json.Marshal(t.cursorSchema())
	if err != nil {
		return nil, err
	}
	if properties == nil {
		properties = make(map[string]json.RawMessage)
	}
	properties[t.names.Cursor] = about
	if schema["properties"], err = json.Marshal(properties); err != nil {
		return nil, err
	}
	if schema["type"] == nil {
		schema["type"] = json.RawMessage(`"object"`)
	}
	return json.Marshal(schema)
}

func (t *pagedTool[In, At, Item]) cursorSchema() map[string]any {
	return map[string]any{"type": "string", "description": "Where the page begins: the " + t.names.NextCursor + " of the page before. Leave it out for the first page."}
}

// checkApplied returns an error if mcp-go cannot compile the schema of a tool. In that case, mcp-go
// applies no rule of the schema, and reports nothing. So checkApplied adds an argument that the schema
// always refuses, and makes a call with it: if mcp-go does not refuse this call, it could not compile
// the schema. The name of the tool matters, because mcp-go makes a URL of it.
func checkApplied(tool string, schema json.RawMessage) error {
	const refused = "an argument that the schema refuses"
	var root, properties map[string]json.RawMessage
	if err := json.Unmarshal(schema, &root); err != nil {
		return err
	}
	if err := json.Unmarshal(root["properties"], &properties); err != nil {
		return err
	}
	properties[refused] = json.RawMessage(`{"not":{}}`)
	var err error
	if root["properties"], err = json.Marshal(properties); err != nil {
		return err
	}
	text, err := json.Marshal(root)
	if err != nil {
		return err
	}
	srv := server.NewMCPServer("", "", server.WithInputSchemaValidation())
	applied := true
	srv.AddTool(mcp.NewToolWithRawSchema(tool, "", text), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		applied = false
		return mcp.NewToolResultText(""), nil
	})
	name, err := json.Marshal(tool)
	if err != nil {
		return err
	}
	srv.HandleMessage(context.Background(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`+string(name)+`,"arguments":{"`+refused+`":1}}}`))
	if !applied {
		return errors.New("mcp-go cannot compile the input schema, so it would apply none of its rules: check its types, patterns and references, and the name of the tool")
	}
	return nil
}

// rootRules are the keywords that a schema may have at its root.
var rootRules = slices.Concat(annotations, []string{"$defs", "definitions", "type", "properties", "required", "dependentRequired", "additionalProperties"})

// fitting checks that a Go type can hold the arguments that a schema lists. If the type
// would lose an argument, the tool cannot be registered.
type fitting struct {
	inferred bool         // true if the schema is made from the type
	all      schemaNames  // the names in the whole schema
	plain    bool         // true if plainRules are the only rules with schemas
	seen     map[fit]bool // true for pairs that were already checked; a type may contain itself, so a pair can occur again
}

// fit is a Go type, and the address of the schema that the type must fit. The address is 0
// if there is no schema.
type fit struct {
	typ    reflect.Type
	schema uintptr
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (f *fitting) check(schema any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s, _ := schema.(map[string]any)
	pair := fit{t, reflect.ValueOf(s).Pointer()}
	if f.seen[pair] {
		return nil
	}
	f.seen[pair] = true
	if own := reflect.PointerTo(t); own.Implements(unmarshaler) || own.Implements(textUnmarshaler) {
		if f.inferred && embedsReader(t) {
			return fmt.Errorf("the Go type %s reads JSON by itself, because of a type that it embeds, and the schema made from it does not describe that: give the embedded field a name, or write an input schema by hand", t)
		}
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return f.check(s["items"], t.Elem())
	case reflect.Map:
		listed, _ := s["properties"].(map[string]any)
		for _, member := range listed {
			if err := f.check(member, t.Elem()); err != nil {
				return err
			}
		}
		return f.check(s["additionalProperties"], t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	fields, properties := exactjson.Fields(t), s["properties"]
	listed, _ := properties.(map[string]any)
	names := &f.all
	if f.plain {
		names = new(schemaNames)
		names.addOwn(s)
	}
	for name, field := range fields {
		switch {
		case field.Quoted:
			return fmt.Errorf("the field %q of %s has the option string, which the schema does not describe", name, t)
		case field.Type != nil && f.isMisspelt(names, name):
			return fmt.Errorf("the name of the field %q of %s differs from a name in the schema only in upper and lower case", name, t)
		}
	}
	for name := range listed {
		field, found := fields[name]
		switch {
		case found && field.Type == nil:
			return fmt.Errorf("more than one field of %s is called %q, so none gets it", t, name)
		case !found && f.inferred:
			return fmt.Errorf("no field of %s gets %q", t, name)
		}
	}
	for name, field := range fields {
		if field.Type == nil {
			if f.inferred {
				return fmt.Errorf("more than one field of %s is called %q, so none gets it", t, name)
			}
			continue
		}
		if _, err := field.In(reflect.New(t).Elem()); err != nil {
			return err
		}
		of, ok := listed[name]
		if !ok {
			of = s["additionalProperties"]
		}
		if err := f.check(of, field.Type); err != nil {
			return err
		}
	}
	return nil
}

// isMisspelt reports whether a name in the schema differs from the name of a field only in upper
// and lower case. The author may have meant the field. Then the rules for the name in the schema
// would not check the value of the field. If the schema is made from the type and has both names,
// this is no mistake: two fields have these names.
func (f *fitting) isMisspelt(names *schemaNames, field string) bool {
	return names.names.Misspelt(field) || !f.inferred && (names.twins.Has(field) || names.twins.Misspelt(field))
}

// embedsReader reports whether a struct embeds a type that has its own method for reading
// JSON. The struct then also has this method, and the method does not read the other
// fields of the struct.
func embedsReader(t reflect.Type) bool {
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		field := t.Field(i)
		bare := field.Type
		if bare.Kind() == reflect.Pointer {
			bare = bare.Elem()
		}
		own := reflect.PointerTo(bare)
		if field.Anonymous && (bare.Kind() == reflect.Interface || own.Implements(unmarshaler) || own.Implements(textUnmarshaler)) {
			return true
		}
	}
	return false
}
