package strictjson

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
)

// decimal is a decimal number: first and last are its digits, without a zero at either end of both together, and its
// value is these digits × 10^exponent. Zero has no digits, and exponent 0.
type decimal struct {
	first, last []byte
	exponent    int64
}

// parseDecimal reads a number without a sign. It accepts more than JSON does, such as 01, .5 and 1.
func parseDecimal(text []byte) (d decimal, ok bool) {
	whole, rest := cutDigits(text)
	var fraction []byte
	if len(rest) > 0 && rest[0] == '.' {
		fraction, rest = cutDigits(rest[1:])
	}
	if d.exponent, ok = parseExponent(rest); !ok || len(whole)+len(fraction) == 0 {
		return d, false
	}
	d.first, d.last = whole, bytes.TrimRight(fraction, "0")
	d.exponent -= int64(len(d.last))
	if len(d.last) == 0 {
		d.first = bytes.TrimRight(whole, "0")
		d.exponent += int64(len(whole) - len(d.first))
	}
	if d.first = bytes.TrimLeft(d.first, "0"); len(d.first) == 0 {
		d.last = bytes.TrimLeft(d.last, "0")
	}
	if len(d.first)+len(d.last) == 0 {
		d.exponent = 0
	}
	return d, true
}

// parseExponent returns the value of an exponent such as e+5, or 0 for an empty text. An exponent of more than 18
// digits, which JSON numbers never have here, becomes another one that is just as much out of any float's range.
func parseExponent(text []byte) (n int64, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	digits, rest := cutDigits(cutSign(text[1:]))
	if text[0]|0x20 != 'e' || len(digits) == 0 || len(rest) > 0 {
		return 0, false
	}
	for _, d := range digits {
		if n < 1e17 {
			n = n*10 + int64(d-'0')
		}
	}
	if text[1] == '-' {
		n = -n
	}
	return n, true
}

func cutSign(text []byte) []byte {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		return text[1:]
	}
	return text
}

func cutDigits(text []byte) (digits, rest []byte) {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

// magnitude returns the power of ten of the first digit. Zero has the smallest of all magnitudes.
func (d *decimal) magnitude() int64 {
	digits := len(d.first) + len(d.last)
	if digits == 0 {
		return math.MinInt64
	}
	return d.exponent + int64(digits) - 1
}

// Float returns the float64 that is nearest to a JSON number. The result may be infinite.
func Float[T string | []byte](literal T) float64 {
	text := []byte(literal)
	if overflows(cutSign(text)) { // strconv would take longer to find this, and allocate an error for each number
		return math.Inf(1 - 2*bytes.Count(text[:1], []byte("-")))
	}
	f, _ := strconv.ParseFloat(string(text), 64)
	return f
}

// leastInfinite has the digits of 2^1024 - 2^970 (1.797…e308), the smallest number that is rounded to infinity as a
// float64.
var leastInfinite = []byte(new(big.Int).Lsh(big.NewInt(1<<54-1), 970).String())

func overflows(text []byte) bool {
	d, _ := parseDecimal(text)
	if m := int64(len(leastInfinite) - 1); d.magnitude() != m {
		return d.magnitude() > m
	}
	n := min(len(d.first), len(leastInfinite))
	if c := bytes.Compare(d.first[:n], leastInfinite[:n]); c != 0 || n == len(leastInfinite) {
		return c >= 0
	}
	return bytes.Compare(d.last, leastInfinite[n:]) >= 0
}
