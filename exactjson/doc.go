// Package exactjson reads the JSON of a tool's arguments exactly. So the schema and the
// handler see the same value, and the cursor is bound to this value. The only exception is
// a Go field of type float32, which gets the nearest float32: see [Put]. This package is
// for authors of adapters; gosdk and mcpgo use it for paged tools.
//
//	rest, token, err := exactjson.Cut(arguments, "cursor") // limit the length of rest now
//	value, err := exactjson.Read(rest)                     // check value with the schema
//	bound, err := exactjson.Text(value)                    // the cursor is bound to this text
//	err = exactjson.Put(value, &input, known)              // the handler gets input
//
// encoding/json is less exact. It matches a name with a field even if they differ in
// upper and lower case. Of two members with the same name, it takes the last. It rounds
// whole numbers in an interface of type any. So the value that it reads may differ from
// the value that was checked. Use encoding/json for JSON that is not a tool's arguments,
// because this package is slower.
//
// In this package a JSON value is nil, a bool, a string, a []any or a map[string]any. A
// whole number is an int64 if it fits, or else a uint64. Any other number is a float64.
// Each value has exactly one such form and one text ([Text]), however the client wrote
// it.
package exactjson
