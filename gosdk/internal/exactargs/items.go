package exactargs

import (
	"encoding"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal/exactjson"
)

// ItemSchema returns the schema of an item of type t. It returns nil if no schema can be
// made, or if the schema would not describe how encoding/json writes t.
func ItemSchema(t reflect.Type) *jsonschema.Schema {
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
		case pair.typ.Kind() == reflect.Map && s.Type == "object": // encoding/json writes a nil map as null
			s.Type, s.Types = "", []string{"null", "object"}
		case pair.typ.Kind() == reflect.Struct:
			s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return exactjson.Fields(pair.typ)[name].Absent })
		}
	}
	return item
}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// isDescribed reports whether the schema made from a type describes how encoding/json
// writes the type.
func isDescribed(t reflect.Type) bool {
	described := true
	eachType(t, map[reflect.Type]bool{}, func(t reflect.Type) bool {
		switch t {
		case reflect.TypeFor[time.Time](), reflect.TypeFor[slog.Level]():
			return false // jsonschema describes time.Time and slog.Level correctly, so there is no need to look into them
		}
		own := reflect.PointerTo(t)
		isBytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
		if own.Implements(marshalerType) || own.Implements(textMarshalerType) || readsItself(t) || isBytes || t == reflect.TypeFor[json.Number]() || quotedField(t) != "" {
			described = false
		}
		return described
	})
	return described
}
