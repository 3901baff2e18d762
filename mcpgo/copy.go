package mcpgo

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// deepCopy returns a deep copy of a value that was decoded from JSON, or of an answer that mcp-go
// decoded. A hook or middleware of the author may have put other values into it: see isCopied.
func deepCopy(value any) any {
	switch v := value.(type) { // most values have one of these types
	case nil, string, bool, float64:
		return v
	case map[string]any:
		v = maps.Clone(v)
		for name, member := range v {
			v[name] = deepCopy(member)
		}
		return v
	case []any:
		v = slices.Clone(v)
		for i, item := range v {
			v[i] = deepCopy(item)
		}
		return v
	}
	return deepCopyOf(reflect.ValueOf(value)).Interface()
}

func deepCopyOf(v reflect.Value) reflect.Value {
	if !isCopied(v.Type()) {
		return v
	}
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			own.Set(deepCopyOf(v.Elem()))
		}
	case reflect.Pointer:
		if elem := v.Type().Elem(); !v.IsNil() && isCopied(elem) {
			own.Set(reflect.New(elem))
			own.Elem().Set(deepCopyOf(v.Elem()))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		own.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		for member := v.MapRange(); member.Next(); {
			own.SetMapIndex(member.Key(), deepCopyOf(member.Value()))
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		own.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		reflect.Copy(own, v)
		switch v.Type().Elem().Kind() {
		case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Struct:
			for i := range v.Len() {
				own.Index(i).Set(deepCopyOf(v.Index(i)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := own.Field(i); field.CanSet() {
				field.Set(deepCopyOf(field))
			}
		}
	}
	return own
}

// isCopied reports whether deepCopy copies values of this type. It does not copy values of types that
// the author declared, because these may have locks, or may contain themselves.
func isCopied(t reflect.Type) bool {
	switch t.PkgPath() {
	case "": // such as map[string]any
		return t.Kind() != reflect.Struct
	case reflect.TypeFor[mcp.Content]().PkgPath():
		return true
	}
	return t == reflect.TypeFor[json.RawMessage]()
}
