package exactjson

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	numberType          = reflect.TypeFor[json.Number]()
)

// Put puts a value of [Read] into the Go value that target points to. Unlike
// encoding/json, Put either stores exactly the value, or fails. There is one exception: for
// a float32, a number is rounded to the nearest float32. Put fails if this rounding turns a
// fraction into a whole number. It accepts only one spelling of names, map keys and base64,
// never rounds whole numbers, and never changes the lengths of arrays. In an interface of
// type any, it stores a number as an int64, a uint64 or a float64. It does not copy
// a map or a slice that it stores in such an interface. It ignores a member for which there
// is no field. Call Put after the schema has accepted the value.
//
// The third argument is the set of names in the schema of the value. Put needs this set for types
// with their own UnmarshalJSON, because that method may look for any of these names. Before Put
// passes a value to such a type, Put checks every name in the value. Put fails if a name differs
// only in upper and lower case from a name in the schema, or from another name in the same object.
//
// An error either wraps [ErrMalformed], or tells the client what does not fit, in about
// 1 KiB at most. After an error the target is zero.
func Put(value, target any, known Names) error {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("nothing can be put into a %T: pass a pointer that is not nil", target)
	}
	v = v.Elem()
	v.SetZero()
	err := (&intoGo{known}).put(value, v)
	if err == nil {
		return nil
	}
	v.SetZero()
	if errors.Is(err, ErrMalformed) {
		return err
	}
	return errors.New(shorten(err.Error()))
}

type intoGo struct{ known Names }

// put sets target to the value. Before the call, target must be zero.
func (g *intoGo) put(value any, target reflect.Value) error {
	t := target.Type()
	if t.Kind() == reflect.Pointer {
		if value == nil {
			return nil
		}
		if !target.CanSet() {
			return fmt.Errorf("the embedded type %s is not exported", t)
		}
		target.Set(reflect.New(t.Elem()))
		return g.put(value, target.Elem())
	}
	// The methods of an unexported embedded struct cannot be called, but its fields
	// can be set.
	own, callable := reflect.PointerTo(t), target.CanSet()
	switch {
	case callable && own.Implements(unmarshalerType):
		if !g.unmistakable(value) {
			return errCase
		}
		return unmarshal(value, target)
	case callable && own.Implements(textUnmarshalerType), t == numberType:
		return unmarshal(value, target) // no names to check: a text or a number has no members
	case value == nil:
		return nil
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		target.Set(reflect.ValueOf(value))
		return nil
	}
	var ok bool
	switch v := value.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Struct:
			return g.putStruct(v, target)
		case reflect.Map:
			return g.putMap(v, target)
		}
	case []any:
		switch t.Kind() {
		case reflect.Slice:
			target.Set(reflect.MakeSlice(t, len(v), len(v)))
			return g.putItems(v, target)
		case reflect.Array:
			if len(v) == t.Len() {
				return g.putItems(v, target)
			}
		}
	case string:
		if ok = t.Kind() == reflect.String; ok {
			target.SetString(v)
		} else if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			decoded, err := base64.StdEncoding.DecodeString(v)
			// Several base64 texts decode to the same bytes. Accept only the standard one: the schema
			// has checked the text, not the bytes, so another text could get around its rules.
			if ok = err == nil && base64.StdEncoding.EncodeToString(decoded) == v; ok {
				target.SetBytes(decoded)
			}
		}
	case bool:
		if ok = t.Kind() == reflect.Bool; ok {
			target.SetBool(v)
		}
	case int64:
		ok = putInt(v, target)
	case uint64:
		ok = putUint(v, target)
	case float64:
		if ok = target.CanFloat() && !target.OverflowFloat(v); ok {
			target.SetFloat(v)
			// Rounding to a float32 can turn a fraction into a whole number. The schema may forbid
			// that number.
			ok = isWhole(v) || !isWhole(target.Float())
		}
	}
	if !ok {
		return fmt.Errorf("%s does not fit the Go type %s", kindOf(value), t)
	}
	return nil
}

func putInt(v int64, target reflect.Value) bool {
	switch {
	case target.CanInt():
		target.SetInt(v)
		return target.Int() == v
	case target.CanFloat():
		target.SetFloat(float64(v))
		f := target.Float()
		return f < 1<<63 && int64(f) == v
	}
	return v >= 0 && putUint(uint64(v), target)
}

func putUint(v uint64, target reflect.Value) bool {
	switch {
	case target.CanUint():
		target.SetUint(v)
		return target.Uint() == v
	case target.CanFloat():
		target.SetFloat(float64(v))
		f := target.Float()
		return f < 1<<64 && uint64(f) == v
	}
	return false
}

func (g *intoGo) putItems(items []any, target reflect.Value) error {
	for i, item := range items {
		if err := g.put(item, target.Index(i)); err != nil {
			return addName(strconv.Itoa(i), err)
		}
	}
	return nil
}

func (g *intoGo) putStruct(members map[string]any, target reflect.Value) error {
	fields := fieldsOf(target.Type())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if fields.names.Misspelt(name) {
			return errCase
		}
		field := fields.byName[name]
		if field.Type == nil {
			continue
		}
		place, err := field.In(target)
		if err == nil {
			err = g.put(members[name], place)
		}
		if err != nil {
			return addName(name, err)
		}
	}
	return nil
}

func (g *intoGo) putMap(members map[string]any, target reflect.Value) error {
	t := target.Type()
	target.Set(reflect.MakeMapWithSize(t, len(members)))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		key := reflect.New(t.Key()).Elem()
		if err := putKey(name, key); err != nil {
			return addName(name, err)
		}
		if target.MapIndex(key).IsValid() {
			return addName(name, fmt.Errorf("another key is the same %s", t.Key()))
		}
		element := reflect.New(t.Elem()).Elem()
		if err := g.put(members[name], element); err != nil {
			return addName(name, err)
		}
		target.SetMapIndex(key, element)
	}
	return nil
}

// putKey sets a map key to the value that a name spells. It accepts only one spelling of
// each key, such as 1 and not 01: the schema checked the name as text, and two names must
// not become one key.
func putKey(name string, key reflect.Value) error {
	ok := false
	if own, reads := key.Addr().Interface().(encoding.TextUnmarshaler); reads {
		if err := own.UnmarshalText([]byte(name)); err != nil {
			return err
		}
		if own, writes := key.Addr().Interface().(encoding.TextMarshaler); writes {
			text, err := own.MarshalText()
			ok = err == nil && string(text) == name
		} else {
			ok = key.Kind() == reflect.String && key.String() == name
		}
	} else if key.Kind() == reflect.String {
		key.SetString(name)
		ok = true
	} else if key.CanInt() {
		n, err := strconv.ParseInt(name, 10, key.Type().Bits())
		key.SetInt(n)
		ok = err == nil && strconv.FormatInt(n, 10) == name
	} else if key.CanUint() {
		n, err := strconv.ParseUint(name, 10, key.Type().Bits())
		key.SetUint(n)
		ok = err == nil && strconv.FormatUint(n, 10) == name
	}
	if !ok {
		return fmt.Errorf("the name is not one that the Go type %s writes", key.Type())
	}
	return nil
}

// unmarshal lets encoding/json set target to the value. Call it only if the value has no names, or
// if g.unmistakable(value) is true.
func unmarshal(value any, target reflect.Value) error {
	text, err := Text(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, target.Addr().Interface())
}

// unmistakable returns false if encoding/json could mistake a name in a value for another
// name that differs only in upper and lower case. This matters for a type with its own
// UnmarshalJSON: such a type usually calls encoding/json, with fields that are not known
// here.
func (g *intoGo) unmistakable(value any) bool {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if !g.unmistakable(item) {
				return false
			}
		}
	case map[string]any:
		var own Names
		for name, member := range v {
			own.Add(name)
			if own.hasTwins(name) || g.known.Misspelt(name) || g.known.hasTwins(name) || !g.unmistakable(member) {
				return false
			}
		}
	}
	return true
}

// addName adds the name of a member, or the index of an item, to an error about its value.
// The new error does not wrap err. If err wraps ErrMalformed, addName returns err unchanged.
func addName(name string, err error) error {
	if errors.Is(err, ErrMalformed) {
		return err
	}
	return errors.New(shorten(strconv.Quote(shorten(name)) + ": " + err.Error()))
}

// shorten cuts a text to its first 1024 bytes, because an error may quote all of the
// arguments.
func shorten(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case nil:
		return "null"
	}
	return "a number"
}
