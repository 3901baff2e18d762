package gosdk

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pagedOutput is the schema of the result.
func pagedOutput[Item any](tool *mcp.Tool, names PageOptions) (*jsonschema.Schema, error) {
	if tool.OutputSchema != nil {
		return nil, errors.New("the output schema is made from the items; leave it out")
	}
	item, err := itemSchema[Item]()
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

// itemSchema is the schema of an item, or nil where the one that is made from the
// type would not say how encoding/json writes it.
func itemSchema[Item any]() (*jsonschema.Schema, error) {
	t := reflect.TypeFor[Item]()
	if !isDescribed(t) {
		return nil, nil
	}
	item, err := jsonschema.For[Item](nil)
	if err != nil {
		return nil, err
	}
	if (&fitting{new(references), true, map[fit]bool{}}).check(item, t) != nil {
		return nil, nil
	}
	return item, eachSchema(item, nil, func(s *jsonschema.Schema, _ map[string]any) error {
		if s.Type == "object" && s.Properties == nil { // a map, which may be nil
			s.Type, s.Types = "", []string{"null", "object"}
		}
		return nil
	})
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
		case reflect.TypeFor[time.Time](), reflect.TypeFor[slog.Level](), reflect.TypeFor[big.Rat](), reflect.TypeFor[big.Float]():
			return false // jsonschema knows them
		}
		own := reflect.PointerTo(t)
		isBytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
		if own.Implements(marshalerType) || own.Implements(textMarshalerType) || isBytes || t == numberType || quotedField(t) != "" {
			described = false
		}
		return described
	})
	return described
}
