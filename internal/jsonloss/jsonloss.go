// Package jsonloss finds values that encoding/json writes without an error, but reads back
// as other values.
package jsonloss

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tripseal/tripseal/internal/argdigest"
)

// Of returns a message that says which part of v is lost in its JSON text, or "" if nothing
// is lost. It reads the text back and compares the result with v. A time.Time must come back
// as the same instant. Other types that have their own JSON methods are trusted. A value in
// an interface of type any may come back with another type. The new type alone is no loss:
// an int, for example, may come back as a float64 with the same value.
func Of(v reflect.Value, text []byte) string {
	// For text that is not UTF-8, encoding/json writes \ufffd. With GOEXPERIMENT=jsonv2 it
	// writes the character U+FFFD itself.
	replaced := bytes.Contains(text, []byte(`\ufffd`)) || bytes.ContainsRune(text, utf8.RuneError)
	if !v.IsValid() || isPlain(v.Type(), nil) && !replaced {
		return ""
	}
	back := reflect.New(v.Type())
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	decoder.UseNumber() // a number in an interface stays text, so that findRounded can see whether a float64 would change it
	if decoder.Decode(back.Interface()) != nil {
		return "it cannot be read back from its JSON"
	}
	switch problem := compare(v, back.Elem()); len(problem) {
	case 0:
		return ""
	case 1:
		return "it" + problem[0]
	default:
		return strings.Join(problem, "")
	}
}

const (
	changed   = " comes back from JSON as another value"
	notUTF8   = " holds text that is not UTF-8: keep bytes in a []byte"
	hidden    = " is not carried by JSON: export it, and give it a name of its own"
	beside    = " is not carried by JSON: the embedded type has its own, which does not write it; give the embedded field a name"
	bytesInIt = " holds bytes in an any, which come back as text: give them a field of type []byte"
	rounded   = " holds a number in an any, which comes back as a float64 and another value: give it a field of its type, or write it as text"
)

// compare compares the value a with the value b, which was read back from the JSON text of
// the value a. It returns nil if nothing is lost. Otherwise it returns the path to a part
// that is lost, and what is wrong there.
func compare(a, b reflect.Value) []string {
	t := a.Type()
	switch {
	case a.IsZero() && b.IsZero():
		return nil
	case hasOwnJSON(a):
		// This type has its own JSON methods. The methods of time.Time are checked, because
		// they drop the seconds of a zone's offset. The methods of other types are trusted: a
		// value of such a type counts as lost only if the JSON around the value leaves it out.
		switch {
		case b.IsZero() && !sameJSON(a, b):
			return []string{hidden}
		case t == timeType && !a.Interface().(time.Time).Equal(b.Interface().(time.Time)):
			return []string{changed}
		}
		return compareOutside(a, b)
	}
	switch t.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			if isNil(a) { // a is nil or a pointer to nil: JSON writes null for both
				return nil
			}
			return []string{hidden}
		}
		return compare(a.Elem(), b.Elem())
	case reflect.Interface:
		switch {
		case a.IsNil():
			return []string{changed}
		case b.IsNil() && isNil(a):
			return nil
		case b.IsNil() && !sameJSON(a, b):
			return []string{hidden}
		case !b.IsNil():
			if problem := findRounded(b.Interface()); problem != nil {
				return problem
			}
		}
		return inAny(a.Elem())
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return []string{hidden}
		}
		for i := range a.Len() {
			if problem := compare(a.Index(i), b.Index(i)); problem != nil {
				return append([]string{"[" + strconv.Itoa(i) + "]"}, problem...)
			}
		}
	case reflect.Map:
		if a.Len() != b.Len() {
			return []string{hidden}
		}
		others := map[string]reflect.Value{}
		for key := range b.Seq() {
			others[keyText(key)] = key
		}
		for key, member := range a.Seq2() {
			problem := []string{changed}
			if other, found := others[keyText(key)]; found {
				if problem = compare(key, other); problem == nil {
					problem = compare(member, b.MapIndex(other))
				}
			} else if key.Kind() == reflect.String && !utf8.ValidString(key.String()) {
				problem = []string{notUTF8}
			}
			if problem != nil {
				return append([]string{"[…]"}, problem...)
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			var problem []string
			if carried := field.IsExported() || field.Anonymous; carried && field.Tag.Get("json") != "-" {
				problem = compare(a.Field(i), b.Field(i))
			} else if !a.Field(i).IsZero() {
				problem = []string{hidden}
			}
			if problem != nil {
				return append([]string{"." + field.Name}, problem...)
			}
		}
	case reflect.String:
		if a.String() != b.String() && !utf8.ValidString(a.String()) {
			return []string{notUTF8}
		}
		fallthrough
	default:
		if !a.Equal(b) {
			return []string{changed}
		}
	}
	return nil
}

// compareOutside is for structs that embed a type with its own JSON methods. It compares the fields
// outside the embedded type. If a struct inherits the JSON methods of the embedded type, its JSON
// lacks these fields. The arguments and the result are the same as in the function compare.
func compareOutside(a, b reflect.Value) []string {
	t := a.Type()
	carried, hiddenField := false, ""
	for i := 0; borrowsJSON(t) && i < t.NumField(); i++ {
		field := t.Field(i)
		switch {
		case lendsJSON(field):
			if field.Type.Kind() != reflect.Struct {
				continue
			}
			if problem := compareOutside(a.Field(i), b.Field(i)); problem != nil {
				return append([]string{"." + field.Name}, problem...)
			}
		case !field.IsExported() || field.Tag.Get("json") == "-":
			if !a.Field(i).IsZero() && b.Field(i).IsZero() {
				hiddenField = "." + field.Name
			}
		case compare(a.Field(i), b.Field(i)) != nil:
			return []string{"." + field.Name, beside}
		case !b.Field(i).IsZero():
			carried = true
		}
	}
	// If carried is true, a field outside the embedded type came back. Only JSON methods of the
	// struct itself can do this. They leave hiddenField out on purpose, so it does not count as
	// lost.
	if hiddenField != "" && !carried {
		return []string{hiddenField, beside}
	}
	return nil
}

// borrowsJSON reports whether a struct embeds a type with its own JSON methods.
func borrowsJSON(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && slices.ContainsFunc(reflect.VisibleFields(t), lendsJSON)
}

// lendsJSON reports whether a field is an embedded type with its own JSON methods.
func lendsJSON(field reflect.StructField) bool {
	embedded := field.Type
	if embedded.Kind() == reflect.Pointer {
		embedded = embedded.Elem()
	}
	return field.Anonymous && (readsItself(embedded) || writesItself(reflect.PointerTo(embedded)) || embedded.Kind() == reflect.Interface)
}

// findRounded returns where a value has a number that a float64 would change, or nil if it
// has none. The value was decoded from JSON into an any, with every number as a json.Number.
func findRounded(value any) []string {
	switch value := value.(type) {
	case json.Number:
		if !isFloat(string(value)) {
			return []string{rounded}
		}
	case []any:
		for i, item := range value {
			if problem := findRounded(item); problem != nil {
				return append([]string{"[" + strconv.Itoa(i) + "]"}, problem...)
			}
		}
	case map[string]any:
		for _, member := range value {
			if problem := findRounded(member); problem != nil {
				return append([]string{"[…]"}, problem...)
			}
		}
	}
	return nil
}

// isFloat reports whether a float64 keeps a number: either the float64 has exactly this
// value, or the number is the shortest text of the float64, such as 0.1.
func isFloat(number string) bool {
	if len(number) <= 15 && !strings.ContainsAny(number, "eE") {
		return true // a float64 keeps numbers of up to 15 digits
	}
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && (sameNumber(number, strconv.FormatFloat(f, 'g', -1, 64)) || sameNumber(number, strconv.FormatFloat(f, 'f', 0, 64)))
}

// sameNumber reports whether two JSON numbers have the same decimal value.
func sameNumber(a, b string) bool {
	first, err := argdigest.Sum([]byte(a))
	second, err2 := argdigest.Sum([]byte(b))
	return err == nil && err2 == nil && first == second
}

// inAny returns what JSON loses of a value held in an interface of type any, or nil if it
// loses nothing. JSON does not keep the type of such a value, but that does not count as a
// loss.
func inAny(v reflect.Value) []string {
	if borrowsJSON(v.Type()) || v.Type() == timeType {
		return inItsType(v)
	}
	if hasOwnJSON(v) {
		return nil
	}
	switch kind := v.Kind(); {
	case kind == reflect.Pointer, kind == reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return inAny(v.Elem())
	case isWritten(v): // v has a method that writes it, but none that reads it
		return inItsType(v)
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return []string{notUTF8}
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && v.Len() > 0 {
			return []string{bytesInIt}
		}
		for i := range v.Len() {
			if problem := inAny(v.Index(i)); problem != nil {
				return append([]string{"[" + strconv.Itoa(i) + "]"}, problem...)
			}
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return inItsType(v)
		}
		for key, member := range v.Seq2() {
			problem := inAny(member)
			if problem == nil {
				problem = inAny(reflect.ValueOf(key.String()))
			}
			if problem != nil {
				return append([]string{"[…]"}, problem...)
			}
		}
	case reflect.Struct:
		return inItsType(v)
	}
	return nil
}

// inItsType writes a value as JSON, and reads this JSON back into the value's own type. It
// returns what was lost, or nil if nothing was lost.
func inItsType(v reflect.Value) []string {
	written := v.Interface()
	if v.CanAddr() {
		written = v.Addr().Interface() // write through a pointer, so that methods of the pointer type are used too
	}
	text, err := json.Marshal(written)
	if err != nil {
		return []string{changed}
	}
	if problem := Of(v, text); problem != "" {
		return []string{" (" + v.Type().String() + "): ", problem}
	}
	return nil
}

// keyText returns the JSON of a map key. Keys are compared by this JSON and not with ==, because
// two keys, for example two values of time.Time, may have the same JSON but not be equal.
func keyText(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return key.String() // if a map key is a string, encoding/json does not call the key's methods
	}
	text, _ := json.Marshal(key.Interface())
	return string(text)
}

// isNil reports whether a value is nil or a pointer to nil, which JSON writes as null.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || isNil(v.Elem())
	case reflect.Map, reflect.Slice:
		return v.IsNil()
	}
	return false
}

var (
	marshaler       = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType        = reflect.TypeFor[time.Time]()
)

func writesItself(t reflect.Type) bool { return t.Implements(marshaler) || t.Implements(textMarshaler) }

func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(unmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler)
}

// hasOwnJSON reports whether a value has its own methods that write and read its JSON.
func hasOwnJSON(v reflect.Value) bool { return isWritten(v) && readsItself(v.Type()) }

// isWritten reports whether a value has its own method that writes its JSON.
func isWritten(v reflect.Value) bool {
	return writesItself(v.Type()) || v.CanAddr() && writesItself(reflect.PointerTo(v.Type()))
}

func sameJSON(a, b reflect.Value) bool {
	if !a.CanInterface() {
		return false
	}
	if a.CanAddr() { // if a is addressable, b is too
		a, b = a.Addr(), b.Addr()
	}
	first, err := json.Marshal(a.Interface())
	second, err2 := json.Marshal(b.Interface())
	return err == nil && err2 == nil && bytes.Equal(first, second)
}

var plainTypes sync.Map // caches the results of isPlain: the keys are of type reflect.Type, the values are bool

// isPlain reports whether JSON keeps every value of type t, except text that is not UTF-8.
// Values of such a type need not be read back and compared. The parameter outer holds the
// types that contain t.
func isPlain(t reflect.Type, outer []reflect.Type) bool {
	if known, ok := plainTypes.Load(t); ok {
		return known.(bool)
	}
	if slices.Contains(outer, t) {
		return true // t contains itself, so it is plain if its other parts are plain
	}
	outer = append(outer, t)
	plain := false
	switch kind := t.Kind(); {
	case kind == reflect.Pointer:
		plain = t.Elem().Kind() != reflect.Pointer && isPlain(t.Elem(), outer)
	case writesItself(t) || readsItself(t) || writesItself(reflect.PointerTo(t)):
		plain = writesItself(t) && readsItself(t) && !borrowsJSON(t) && t != timeType
	case kind == reflect.Struct:
		plain = isPlainStruct(t, outer)
	case kind == reflect.Slice, kind == reflect.Array:
		plain = isPlain(t.Elem(), outer)
	case kind == reflect.Map:
		plain = t.Key().Kind() == reflect.String && !readsItself(t.Key()) && isPlain(t.Elem(), outer)
	default:
		plain = kind <= reflect.Float64 || kind == reflect.String && t != reflect.TypeFor[json.Number]()
	}
	if len(outer) == 1 { // cache only the result for the outermost type: the result for an inner type may assume that an outer one is plain
		plainTypes.Store(t, plain)
	}
	return plain
}

func isPlainStruct(t reflect.Type, outer []reflect.Type) bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		name = cmp.Or(name, field.Name)
		odd := strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if odd || !field.IsExported() || field.Anonymous || tag == "-" || strings.Contains(tag, "omitzero") || names[name] || !isPlain(field.Type, outer) {
			return false
		}
		names[name] = true
	}
	return true
}
