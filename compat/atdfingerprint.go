package compat

import (
	"bytes"
	"crypto/sha256"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/tripseal/tripseal/internal/strictjson"
)

// maxLevels is the deepest nesting of arguments that serde_json accepts. serde_json is the
// JSON library of the ATD runtime.
const maxLevels = 127

// exponents says how a build of the ATD runtime writes the exponents of large floats. Its
// JSON library, serde_json, changed this between two releases of version 1.
type exponents bool

const (
	plainExponents  exponents = false // writes 1e16, as older builds do
	signedExponents exponents = true  // writes 1e+16, as newer builds do
)

// ATDFingerprint returns the digest of a tool's arguments, as a cursor of the ATD runtime
// holds it. It is for package compat/atd. The arguments are JSON text; an empty text
// means {}. If plainExponents is true, the digest is that of older builds, which write large
// floats as 1e16. If it is false, the digest is that of newer builds, which write 1e+16. An
// error is the client's fault. Its text repeats nothing of the arguments.
func ATDFingerprint(arguments []byte, plainExponents bool) ([sha256.Size]byte, error) {
	return serdeStyle(exponents(!plainExponents)).Sum(arguments)
}

// serdeStyle writes arguments as serde_json writes them.
func serdeStyle(style exponents) *strictjson.Style {
	return &strictjson.Style{
		Strings: strictjson.Usual, Number: style.appendNumber, Levels: maxLevels,
		Refusal: "half a surrogate pair, or a number beyond a double",
	}
}

// appendNumber appends the number literal as serde_json reads and writes it: an integer that
// fits into 64 bits stays as it is, and any other number becomes a double. It returns false
// if the number is too large for a double.
func (style exponents) appendNumber(dst, literal []byte) ([]byte, bool) {
	digits, negative := bytes.CutPrefix(literal, []byte("-"))
	if isInteger(literal) && len(digits) <= 20 {
		n, err := strconv.ParseUint(string(digits), 10, 64)
		switch {
		case err == nil && !negative:
			return append(dst, literal...), true
		case err == nil && 0 < n && n <= 1<<63:
			return append(dst, literal...), true
		}
	}
	f, ok := serdeFloat(string(digits))
	if !ok {
		return dst, false
	}
	if negative {
		f = -f
	}
	start := len(dst)
	dst = appendFloat(dst, f, -5, 15)
	if mantissa, exponent, ok := strings.Cut(string(dst[start:]), "e"); ok {
		power, _ := strconv.Atoi(exponent) // Go writes at least two digits, serde_json only as many as needed
		dst = append(append(dst[:start], mantissa...), 'e')
		if power > 0 && style == signedExponents {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(power), 10)
	}
	return dst, true
}

// serdeFloat returns the double that serde_json reads from a text. The text is a number without its
// sign. The double is not always the nearest one: serde_json takes as many digits as fit into 64
// bits, and then multiplies or divides by a power of ten. serdeFloat returns false if the number is
// too large for a double.
func serdeFloat(text string) (float64, bool) {
	whole, rest := cutDigits(text)
	fraction, exponentText := "", ""
	if behind, ok := strings.CutPrefix(rest, "."); ok {
		fraction, rest = cutDigits(behind)
	}
	if rest != "" {
		exponentText = strings.TrimPrefix(rest[1:], "+")
	}

	significand, taken := takeDigits(0, whole)
	exponent := len(whole) - taken
	significand, taken = takeDigits(significand, fraction)
	exponent -= taken
	if exponentText != "" {
		n, err := strconv.ParseInt(exponentText, 10, 64)
		if err != nil || n < -math.MaxInt32 || n > math.MaxInt32 {
			return 0, significand == 0 || exponentText[0] == '-'
		}
		exponent += int(n)
	}
	return scale(float64(significand), min(max(exponent, math.MinInt32), math.MaxInt32))
}

func cutDigits(text string) (digits, rest string) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// takeDigits appends decimal digits to the number n while the result fits into 64 bits. It
// returns the new n, and how many digits fit.
func takeDigits(n uint64, digits string) (uint64, int) {
	for i := range len(digits) {
		digit := uint64(digits[i] - '0')
		if n > math.MaxUint64/10 || n*10 > math.MaxUint64-digit {
			return n, i
		}
		n = n*10 + digit
	}
	return n, len(digits)
}

const maxPower = 308

// powers returns a table of the doubles nearest to the powers of ten. It does not use
// math.Pow10, which does not always return the nearest double.
var powers = sync.OnceValue(func() (table [maxPower + 1]float64) {
	for i := range table {
		table[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return table
})

// scale returns f × 10^exponent. It returns false if the result is too large for a double.
func scale(f float64, exponent int) (float64, bool) {
	for exponent < -maxPower && f != 0 {
		f /= powers()[maxPower]
		exponent += maxPower
	}
	switch {
	case f == 0 && (exponent < -maxPower || exponent > maxPower):
		return 0, true
	case exponent > maxPower:
		return 0, false
	case exponent >= 0:
		f *= powers()[exponent]
	default:
		f /= powers()[-exponent]
	}
	return f, !math.IsInf(f, 0)
}
