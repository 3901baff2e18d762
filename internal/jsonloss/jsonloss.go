// Package jsonloss finds values that encoding/json writes without an error and
// reads back as others.
package jsonloss

import (
	"bytes"
	"reflect"
)

// Of says what of a value is lost in its JSON, or "".
func Of(value any, text []byte) string {
	switch {
	case hasReplacement(text):
		return "holds text that is not UTF-8: keep bytes in a []byte"
	case string(text) == "{}" && hidesAll(reflect.TypeOf(value)):
		return "has nothing in it that JSON carries: export its fields"
	}
	return ""
}

// hasReplacement reports whether JSON has the escape that encoding/json writes for
// bytes that are not UTF-8. It writes the character itself as it is.
func hasReplacement(text []byte) bool {
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(text[i:], []byte(`\ufffd`)) {
			return true
		}
		i++ // what an escape escapes begins none
	}
	return false
}

// hidesAll reports whether a type is a struct with fields, none of them exported.
func hidesAll(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || t.NumField() == 0 {
		return false
	}
	for _, field := range reflect.VisibleFields(t) {
		if field.IsExported() && !field.Anonymous && field.Tag.Get("json") != "-" {
			return false
		}
	}
	return true
}
