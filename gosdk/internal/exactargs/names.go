package exactargs

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
)

// nameSet is a set of names, grouped by what fold returns for them. It finds names that
// differ only in case: encoding/json takes such names for each other.
type nameSet map[string][]string

func (s *nameSet) add(name string) {
	if *s == nil {
		*s = nameSet{}
	}
	folded := fold(name)
	if !slices.Contains((*s)[folded], name) {
		(*s)[folded] = append((*s)[folded], name)
	}
}

// addNamesOf adds the names that a schema has for members of an object. It does not
// look into the schemas inside. If texts is true, it also adds the texts in enum and
// const, because a propertyNames may list names there.
func (s *nameSet) addNamesOf(schema *jsonschema.Schema, texts bool) {
	names := slices.Concat(slices.Collect(maps.Keys(schema.Properties)), schema.Required,
		slices.Collect(maps.Keys(schema.DependentSchemas)), slices.Collect(maps.Keys(schema.DependencySchemas)))
	for _, required := range []map[string][]string{schema.DependentRequired, schema.DependencyStrings} {
		for name, others := range required {
			names = append(append(names, name), others...)
		}
	}
	for _, name := range names {
		s.add(name)
	}
	s.addNamesIn(schema.Enum, texts)
	if schema.Const != nil {
		s.addNamesIn(*schema.Const, texts)
	}
}

// addNamesIn adds the names in a value and, if texts is true, its texts.
func (s *nameSet) addNamesIn(value any, texts bool) {
	switch v := value.(type) {
	case string:
		if texts {
			s.add(v)
		}
	case []any:
		for _, item := range v {
			s.addNamesIn(item, texts)
		}
	case map[string]any:
		for name, member := range v {
			s.add(name)
			s.addNamesIn(member, texts)
		}
	}
}

// misspelt reports whether the set has this name, but only in another case.
func (s nameSet) misspelt(name string) bool {
	same := s[fold(name)]
	return len(same) > 0 && !slices.Contains(same, name)
}

// twins reports whether the set has this name in more than one case.
func (s nameSet) twins(name string) bool { return len(s[fold(name)]) > 1 }

// fold returns the same text for two names if they differ only in case, as
// strings.EqualFold and encoding/json see it.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the smallest of the runes that differ only in case
			}
			r = next
		}
	}, name)
}

// structFields are the fields of a struct that encoding/json fills.
type structFields struct {
	byName map[string]structField // a name that several fields have maps to the zero field: none of them is filled
	names  nameSet
}

type structField struct {
	typ    reflect.Type
	index  []int
	tagged bool
	quoted bool // the json tag has the option ",string"
	absent bool // encoding/json may leave the field out: it is in a struct that is embedded by pointer
}

// in returns the field in a struct, and allocates the structs on the way to it.
func (f *structField) in(v reflect.Value) (reflect.Value, error) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				if !v.CanSet() {
					return v, fmt.Errorf("the embedded type %s is not exported", v.Type())
				}
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, nil
}

var fieldCache sync.Map // caches fieldsOf: from reflect.Type to *structFields

func fieldsOf(t reflect.Type) *structFields {
	if known, ok := fieldCache.Load(t); ok {
		return known.(*structFields)
	}
	fields := &structFields{byName: map[string]structField{}}
	seen := map[reflect.Type]bool{}
	for level := []structField{{typ: t}}; len(level) > 0; {
		found := map[string][]structField{}
		times := map[reflect.Type]int{}
		for _, s := range level {
			times[s.typ]++
		}
		var below []structField
		for _, s := range level {
			if seen[s.typ] {
				continue
			}
			// A struct that is embedded twice on one level is scanned once, and its
			// fields are ambiguous.
			seen[s.typ] = true
			below = append(below, scanStruct(s, times[s.typ] > 1, found)...)
		}
		for name, rivals := range found {
			if _, hidden := fields.byName[name]; !hidden {
				fields.byName[name] = dominant(rivals)
			}
		}
		level = below
	}
	for name, field := range fields.byName {
		if field.typ != nil { // the name is not ambiguous
			fields.names.add(name)
		}
	}
	known, _ := fieldCache.LoadOrStore(t, fields)
	return known.(*structFields)
}

// dominant returns the field that encoding/json chooses among fields of one name on one
// level. It returns the zero field if encoding/json chooses none; even then the name
// hides fields on deeper levels.
func dominant(rivals []structField) structField {
	tagged := slices.DeleteFunc(slices.Clone(rivals), func(f structField) bool { return !f.tagged })
	if len(tagged) > 0 {
		rivals = tagged
	}
	if len(rivals) > 1 {
		return structField{}
	}
	return rivals[0]
}

// scanStruct adds the fields of one struct to found, twice if the struct is embedded
// twice. It returns the embedded structs, whose fields are promoted.
func scanStruct(s structField, twice bool, found map[string][]structField) (promoted []structField) {
	for i := range s.typ.NumField() {
		field := s.typ.Field(i)
		bare := field.Type
		if bare.Kind() == reflect.Pointer && bare.Name() == "" {
			bare = bare.Elem()
		}
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !(field.Anonymous && bare.Kind() == reflect.Struct) {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		f := structField{typ: field.Type, index: append(slices.Clone(s.index), i), tagged: isTagName(name), absent: s.absent}
		if field.Anonymous && !f.tagged && bare.Kind() == reflect.Struct {
			f.typ, f.absent = bare, s.absent || bare != field.Type
			promoted = append(promoted, f)
			continue
		}
		if !f.tagged {
			name = field.Name
		}
		f.quoted = slices.Contains(strings.Split(options, ","), "string") && isQuotable(bare.Kind())
		found[name] = append(found[name], f)
		if twice {
			found[name] = append(found[name], f)
		}
	}
	return promoted
}

// isTagName reports whether encoding/json accepts this name in a tag.
func isTagName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

func isQuotable(kind reflect.Kind) bool {
	return reflect.Bool <= kind && kind <= reflect.Float64 || kind == reflect.String
}
