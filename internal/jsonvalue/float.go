package jsonvalue

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
)

// Float returns the float64 that is nearest to a JSON number. The result may be infinite.
func Float[T string | []byte](literal T) float64 {
	text := []byte(literal)
	if overflows(text) {
		// strconv would take longer to find the overflow, and allocate an error for each number.
		return math.Inf(1 - 2*bytes.Count(text[:1], []byte("-")))
	}
	f, _ := strconv.ParseFloat(string(text), 64)
	return f
}

// overflow has the digits of 2^1024 - 2^970 (1.797…e308), the smallest number that is
// rounded to infinity as a float64.
var overflow = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 1024), new(big.Int).Lsh(big.NewInt(1), 970)).String()

// overflows reports whether the float64 nearest to a JSON number is infinite.
func overflows(literal []byte) bool {
	literal = bytes.TrimPrefix(literal, []byte("-"))
	mantissa, exponent := literal, int64(0)
	if i := bytes.IndexAny(literal, "eE"); i >= 0 {
		mantissa = literal[:i]
		exponent, _ = strconv.ParseInt(string(bytes.TrimPrefix(literal[i+1:], []byte("+"))), 10, 64) // there is no error: the reader allows an exponent of at most 18 digits
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	// Set exponent to the power of ten of the first digit that is not zero.
	if whole = bytes.TrimLeft(whole, "0"); len(whole) > 0 {
		exponent += int64(len(whole)) - 1
	} else {
		significant := bytes.TrimLeft(fraction, "0")
		exponent -= int64(len(fraction)-len(significant)) + 1
		whole, fraction = significant, nil
	}
	if len(whole) == 0 || exponent != int64(len(overflow))-1 {
		return len(whole) > 0 && exponent >= int64(len(overflow))
	}
	for i := range len(overflow) {
		digit := byte('0')
		switch {
		case i < len(whole):
			digit = whole[i]
		case i-len(whole) < len(fraction):
			digit = fraction[i-len(whole)]
		}
		if digit != overflow[i] {
			return digit > overflow[i]
		}
	}
	return true
}
