// Package exactjson reads the JSON of a tool's arguments exactly. What a schema checks,
// what a handler gets and what a cursor is bound to is then one value. It is for authors of
// adapters: gosdk and mcpgo use it for paged tools.
//
//	rest, token, err := exactjson.Cut(arguments, "cursor") // limit the length of rest now
//	value, err := exactjson.Read(rest)                     // check value with the schema
//	bound, err := exactjson.Text(value)                    // the cursor is bound to this text
//	err = exactjson.Put(value, &in, known)                 // the handler gets in
//
// encoding/json takes a name for a field that differs in case, and the last of two members
// of one name; it rounds whole numbers in an any. So what it reads may be other than what
// was checked. Use it for everything else: this package is slower.
//
// In this package a JSON value is nil, a bool, a string, a []any or a map[string]any. A
// whole number is an int64 if it fits, or else a uint64. Any other number is a
// float64. However a value was written, it has one such form, and one text.
package exactjson
