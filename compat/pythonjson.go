package compat

import (
	"math"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/jsonvalue"
)

// pythonMaxDigits is how long an integer Python reads.
const pythonMaxDigits = 4300

var (
	pythonStrings = jsonvalue.StringStyle{ASCII: true, Surrogates: true, Short: jsonvalue.Usual.Short}
	pythonStyle   = jsonvalue.Style{Strings: pythonStrings, Number: pythonNumber}
)

// pythonArguments rewrites arguments as Python's json.dumps does with sorted
// keys. Whatever is false to Python counts as {}.
func pythonArguments(d *jsonvalue.Document, dst []byte) ([]byte, error) {
	if pythonFalse(d) {
		return append(dst, "{}"...), nil
	}
	dst, ok := d.Append(dst, &pythonStyle)
	if !ok {
		return nil, argdigest.Whole("an integer of more than 4300 digits")
	}
	return dst, nil
}

// pythonFalse says whether Python takes a value for false.
func pythonFalse(d *jsonvalue.Document) bool {
	switch d.Kind() {
	case jsonvalue.Null, jsonvalue.False:
		return true
	case jsonvalue.Number:
		return jsonvalue.Float(d.Text()) == 0
	case jsonvalue.String:
		return d.Text() == ""
	case jsonvalue.Array, jsonvalue.Object:
		return d.Empty()
	}
	return false
}

func pythonNumber(dst []byte, literal string) ([]byte, bool) {
	if !jsonvalue.IsInteger(literal) {
		return pythonFloat(dst, jsonvalue.Float(literal)), true
	}
	if literal == "-0" {
		literal = "0"
	}
	digits := len(literal)
	if literal[0] == '-' {
		digits--
	}
	return append(dst, literal...), digits <= pythonMaxDigits
}

// pythonFloat appends the text that repr gives a float.
func pythonFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	return jsonvalue.AppendFloat(dst, f, -4, 15)
}
