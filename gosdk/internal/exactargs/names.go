package exactargs

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal/exactjson"
)

// addNamesOf adds the names that a schema gives to members of an object. It does not
// look into subschemas. If withStrings is true, it also adds the strings in enum and
// const, because a schema under propertyNames may list names there.
func addNamesOf(s *exactjson.Names, schema *jsonschema.Schema, withStrings bool) {
	names := slices.Concat(slices.Collect(maps.Keys(schema.Properties)), schema.Required,
		slices.Collect(maps.Keys(schema.DependentSchemas)), slices.Collect(maps.Keys(schema.DependencySchemas)))
	for _, required := range []map[string][]string{schema.DependentRequired, schema.DependencyStrings} {
		for name, others := range required {
			names = append(append(names, name), others...)
		}
	}
	s.Add(names...)
	addNamesIn(s, schema.Enum, withStrings)
	if schema.Const != nil {
		addNamesIn(s, *schema.Const, withStrings)
	}
}

// addNamesIn adds the member names in a value. If withStrings is true, it also adds the
// strings in the value.
func addNamesIn(s *exactjson.Names, value any, withStrings bool) {
	switch v := value.(type) {
	case string:
		if withStrings {
			s.Add(v)
		}
	case []any:
		for _, item := range v {
			addNamesIn(s, item, withStrings)
		}
	case map[string]any:
		for name, member := range v {
			s.Add(name)
			addNamesIn(s, member, withStrings)
		}
	}
}
