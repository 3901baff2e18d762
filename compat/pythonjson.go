package compat

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tripseal/tripseal/internal/strictjson"
)

// pythonMaxDigits is the greatest number of digits that Python's JSON reader accepts in an
// integer.
const pythonMaxDigits = 4300

var (
	pythonStrings = strictjson.StringStyle{ASCII: true, Surrogates: true, Short: strictjson.Usual.Short}

	// pythonStyle writes arguments as Python's json.dumps writes them with sorted keys, and {} for arguments that are
	// false in a Python condition.
	pythonStyle = strictjson.Style{
		Strings: pythonStrings, Number: pythonNumber, Levels: strictjson.MaxLevels,
		Empty:   []string{"null", "false", "0", "0.0", "-0.0", `""`, "[]"},
		Refusal: "an integer of more than 4300 digits",
	}
)

func pythonNumber(dst, literal []byte) ([]byte, bool) {
	if !isInteger(literal) {
		return pythonFloat(dst, strictjson.Float(literal)), true
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
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	return appendFloat(dst, f, -4, 15)
}

// isInteger reports whether a JSON number is written without a fraction or an exponent.
func isInteger[T string | []byte](literal T) bool {
	for i := range len(literal) {
		if c := literal[i]; c != '-' && (c < '0' || '9' < c) {
			return false
		}
	}
	return true
}

// appendFloat appends the shortest text that reads back as f, always with a decimal point or an exponent. The text has
// no exponent if the power of ten of the first digit is between low and high. Otherwise it has an exponent as Go writes
// it, with a sign and at least two digits.
func appendFloat(dst []byte, f float64, low, high int) []byte {
	var scratch [32]byte
	text := strconv.AppendFloat(scratch[:0], f, 'e', -1, 64)
	power := 0
	if f != 0 {
		_, exponent, _ := strings.Cut(string(text), "e")
		power, _ = strconv.Atoi(exponent)
	}
	if power < low || power > high {
		return append(dst, text...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !slices.Contains(dst[start:], '.') {
		dst = append(dst, ".0"...)
	}
	return dst
}
