package gosdk

import (
	"encoding"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pagedOutput is the schema of the result.
func pagedOutput[Item any](tool *mcp.Tool, names PageOptions) (*jsonschema.Schema, error) {
	if tool.OutputSchema != nil {
		return nil, errors.New("the output schema is made from the items; leave it out")
	}
	return &jsonschema.Schema{
		Type: "object",
		Properties: map[string]*jsonschema.Schema{
			names.Items:      {Type: "array", Items: itemSchema(reflect.TypeFor[Item]())},
			names.NextCursor: {Type: "string", Description: "Where the next page begins. There is none on the last page."},
		},
		PropertyOrder: []string{names.Items, names.NextCursor},
		Required:      []string{names.Items},
	}, nil
}

// itemSchema is the schema of an item, or nil where none can be made from the type,
// or one that would not say how encoding/json writes it.
func itemSchema(t reflect.Type) *jsonschema.Schema {
	if !isDescribed(t) {
		return nil
	}
	item, err := jsonschema.ForType(t, nil)
	fits := &fitting{new(references), true, map[fit]bool{}}
	if err != nil || fits.check(item, t) != nil {
		return nil
	}
	for pair := range fits.seen {
		switch s := pair.schema; {
		case pair.typ.Kind() == reflect.Map && s.Type == "object": // may be nil
			s.Type, s.Types = "", []string{"null", "object"}
		case pair.typ.Kind() == reflect.Struct:
			s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return fieldsOf(pair.typ).byName[name].absent })
		}
	}
	return item
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// isDescribed reports whether the schema that is made from a type says how
// encoding/json writes it.
func isDescribed(t reflect.Type) bool {
	described := true
	eachType(t, map[reflect.Type]bool{}, func(t reflect.Type) bool {
		switch t {
		case reflect.TypeFor[time.Time](), reflect.TypeFor[slog.Level]():
			return false // jsonschema knows them
		}
		own := reflect.PointerTo(t)
		isBytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
		if own.Implements(marshalerType) || own.Implements(textMarshalerType) || readsItself(t) || isBytes || t == numberType || quotedField(t) != "" {
			described = false
		}
		return described
	})
	return described
}
