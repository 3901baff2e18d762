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
// deepCopy returns false if the value nests too deeply, for example because it contains itself.
func deepCopy[T any](value T) (own T, ok bool) {
	var c copier
	if copied := c.copy(value); copied != nil {
		own = copied.(T)
	}
	return own, !c.failed
}

type copier struct {
	depth  int
	failed bool // true if a value nests too deeply; then nothing more is copied
}

// maxDepth is how deeply a value may nest. encoding/json decodes nothing that nests more deeply.
const maxDepth = 10_000

// enter begins a level of nesting. It returns false if there must be no further level.
func (c *copier) enter() bool {
	c.depth++
	c.failed = c.failed || c.depth > maxDepth
	return !c.failed
}

func (c *copier) leave() { c.depth-- }

func (c *copier) copy(value any) any {
	defer c.leave()
	if !c.enter() {
		return value
	}
	switch v := value.(type) { // most values have one of these types, which need no reflection
	case nil, string, bool, float64:
		return v
	case map[string]any:
		own := maps.Clone(v)
		for name := range v {
			own[name] = c.copy(v[name])
		}
		return own
	case []any:
		own := slices.Clone(v)
		for i := range v {
			own[i] = c.copy(v[i])
		}
		return own
	}
	return c.copyOf(reflect.ValueOf(value)).Interface()
}

func (c *copier) copyOf(v reflect.Value) reflect.Value {
	defer c.leave()
	if !c.enter() || !isCopied(v.Type()) {
		return v
	}
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			own.Set(c.copyOf(v.Elem()))
		}
	case reflect.Pointer:
		if elem := v.Type().Elem(); !v.IsNil() && isCopied(elem) {
			own.Set(reflect.New(elem))
			own.Elem().Set(c.copyOf(v.Elem()))
		}
	case reflect.Map:
		if !v.IsNil() {
			own.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
			for member := v.MapRange(); member.Next(); {
				own.SetMapIndex(member.Key(), c.copyOf(member.Value()))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			own.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			reflect.Copy(own, v)
			c.copyItems(own)
		}
	case reflect.Array:
		c.copyItems(own)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := own.Field(i); field.CanSet() {
				field.Set(c.copyOf(field))
			}
		}
	}
	return own
}

// copyItems replaces the items of a slice or an array with copies of them.
func (c *copier) copyItems(items reflect.Value) {
	switch items.Type().Elem().Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array, reflect.Struct:
		for i := range items.Len() {
			items.Index(i).Set(c.copyOf(items.Index(i)))
		}
	}
}

// isCopied reports whether values of this type are copied. Values of types that the author declared
// are not copied, because they may have locks. The same is true for structs of a type without a
// name.
func isCopied(t reflect.Type) bool {
	switch t.PkgPath() {
	case "": // such as map[string]any
		return t.Kind() != reflect.Struct
	case reflect.TypeFor[mcp.Content]().PkgPath():
		return true
	}
	return t == reflect.TypeFor[json.RawMessage]()
}
