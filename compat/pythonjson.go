package compat

import (
	"math"

	"github.com/tripseal/tripseal/internal/argdigest"
	"github.com/tripseal/tripseal/internal/jsonvalue"
)

// pythonMaxDigits is the greatest number of digits that Python's JSON reader accepts in an
// integer.
const pythonMaxDigits = 4300

var (
	pythonStrings = jsonvalue.StringStyle{ASCII: true, Surrogates: true, Short: jsonvalue.Usual.Short}
	pythonStyle   = jsonvalue.Style{Strings: pythonStrings, Number: pythonNumber}
)

// pythonArguments writes the arguments as Python's json.dumps writes them with sorted keys.
// It writes {} for arguments that are false in a Python condition.
func pythonArguments(a *jsonvalue.Arguments) error {
	isFalse := pythonFalse(a)
	if !a.Append(&pythonStyle) {
		return argdigest.Whole("an integer of more than 4300 digits")
	}
	if isFalse {
		a.Buf = append(a.Buf[:0], "{}"...)
	}
	return nil
}

// pythonFalse reports whether the arguments are false in a Python condition. Examples are
// null, 0 and [].
func pythonFalse(a *jsonvalue.Arguments) bool {
	switch a.Kind() {
	case jsonvalue.Null, jsonvalue.False:
		return true
	case jsonvalue.Number:
		return jsonvalue.Float(a.Peek()) == 0
	case jsonvalue.String, jsonvalue.Array, jsonvalue.Object:
		return a.Empty()
	}
	return false
}

func pythonNumber(dst, literal []byte) ([]byte, bool) {
	if !jsonvalue.IsInteger(literal) {
		return pythonFloat(dst, jsonvalue.Float(literal)), true
	}
	if string(literal) == "-0" {
		literal = literal[1:]
	}
	digits := len(literal)
	if literal[0] == '-' {
		digits--
	}
	return append(dst, literal...), digits <= pythonMaxDigits
}

// pythonFloat appends f as Python's repr writes it.
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
