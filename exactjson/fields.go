package exactjson

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Field is a field of a Go struct, found by the function [Fields]. The JSON member with the
// same name goes into this field.
type Field struct {
	Type   reflect.Type // nil if several fields have this name: encoding/json fills none of them
	Quoted bool         // true if the json tag has the option ",string"
	Absent bool         // true if the field is in a struct that is embedded by pointer: encoding/json may leave it out

	index  []int
	tagged bool
}

// Fields returns the fields of the struct type t that encoding/json fills. The keys of the
// map are the exact names of the fields in JSON. The map also has the names for
// which encoding/json fills no field, because several fields share the name. The Field of
// such a name has a nil Type. Use Fields to compare a type with a schema. Fields returns
// nil if t is not a struct.
func Fields(t reflect.Type) map[string]Field {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return maps.Clone(fieldsOf(t).byName)
}

// In finds the field f in the struct v, and returns it. It allocates the embedded structs that
// contain the field. It fails if one of them is embedded by pointer and has an unexported type;
// [Put] fails in the same case. Use this method to read or fill the field that belongs to a member.
func (f *Field) In(v reflect.Value) (reflect.Value, error) {
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

// structFields has the fields of a struct, as the function Fields returns them.
type structFields struct {
	byName map[string]Field
	names  Names // the names in byName, without those that several fields share
}

var fieldCache sync.Map // caches the results of fieldsOf: maps a reflect.Type to a *structFields

func fieldsOf(t reflect.Type) *structFields {
	if known, ok := fieldCache.Load(t); ok {
		return known.(*structFields)
	}
	fields := &structFields{byName: map[string]Field{}}
	seen := map[reflect.Type]bool{}
	for level := []Field{{Type: t}}; len(level) > 0; {
		found := map[string][]Field{}
		times := map[reflect.Type]int{}
		for _, s := range level {
			times[s.Type]++
		}
		var below []Field
		for _, s := range level {
			if seen[s.Type] {
				continue
			}
			// A struct that is embedded twice on one level is scanned once, and its
			// fields are ambiguous.
			seen[s.Type] = true
			below = append(below, scanStruct(s, times[s.Type] > 1, found)...)
		}
		for name, rivals := range found {
			if _, hidden := fields.byName[name]; !hidden {
				fields.byName[name] = dominantField(rivals)
			}
		}
		level = below
	}
	for name, field := range fields.byName {
		if field.Type != nil { // the name is not ambiguous
			fields.names.Add(name)
		}
	}
	known, _ := fieldCache.LoadOrStore(t, fields)
	return known.(*structFields)
}

// dominantField returns the field that encoding/json chooses among fields with the same name
// on one level of embedding. It returns the zero field if encoding/json chooses none;
// even then the name hides fields on deeper levels.
func dominantField(rivals []Field) Field {
	tagged := slices.DeleteFunc(slices.Clone(rivals), func(f Field) bool { return !f.tagged })
	if len(tagged) > 0 {
		rivals = tagged
	}
	if len(rivals) > 1 {
		return Field{}
	}
	return rivals[0]
}

// scanStruct adds the fields of the struct s to a map, and returns the embedded structs whose
// fields are promoted. If repeated is true, s is embedded more than once. In that case, scanStruct
// adds each field two times, so that the field is ambiguous.
func scanStruct(s Field, repeated bool, found map[string][]Field) (promoted []Field) {
	for i := range s.Type.NumField() {
		field := s.Type.Field(i)
		bare := field.Type
		if bare.Kind() == reflect.Pointer && bare.Name() == "" {
			bare = bare.Elem()
		}
		tag := field.Tag.Get("json")
		if tag == "-" || !field.IsExported() && !(field.Anonymous && bare.Kind() == reflect.Struct) {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		f := Field{Type: field.Type, index: append(slices.Clone(s.index), i), tagged: isTagName(name), Absent: s.Absent}
		if field.Anonymous && !f.tagged && bare.Kind() == reflect.Struct {
			f.Type, f.Absent = bare, s.Absent || bare != field.Type
			promoted = append(promoted, f)
			continue
		}
		if !f.tagged {
			name = field.Name
		}
		f.Quoted = slices.Contains(strings.Split(options, ","), "string") && isQuotable(bare.Kind())
		found[name] = append(found[name], f)
		if repeated {
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
