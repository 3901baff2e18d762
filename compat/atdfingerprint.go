package compat

import (
	"bytes"
	"crypto/sha256"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpseal/mcpseal/internal/argdigest"
	"github.com/mcpseal/mcpseal/internal/jsonvalue"
)

// maxLevels is the deepest nesting of arguments that serde_json reads.
const maxLevels = 127

// exponents is how a build of the peer writes large floats: serde_json changed that
// within version 1.
type exponents bool

const (
	plainExponents  exponents = false // 1e16, as older builds do
	signedExponents exponents = true  // 1e+16
)

// ATDFingerprint returns the digest of a tool's arguments that a cursor of the ATD
// runtime holds, for the package compat/atd. Arguments are JSON text; an empty text means
// {}. With plainExponents, large floats are written as older builds do: 1e16, where
// newer builds write 1e+16. An error is the client's fault, and repeats nothing of the
// arguments.
func ATDFingerprint(arguments []byte, plainExponents bool) ([sha256.Size]byte, error) {
	return jsonvalue.SumArguments(arguments, exponents(!plainExponents).serialize)
}

// serialize rewrites arguments as serde_json does.
func (style exponents) serialize(a *jsonvalue.Arguments) error {
	serde := jsonvalue.Style{Strings: jsonvalue.Usual, Number: style.appendNumber}
	if !a.Append(&serde) {
		return argdigest.Whole("half a surrogate pair, or a number beyond a double")
	}
	if a.Levels() > maxLevels {
		return argdigest.Whole("more levels than serde_json reads")
	}
	return nil
}

// appendNumber reads a number as serde_json does and writes what it read: an
// integer of 64 bits as it is, anything else as a double.
func (style exponents) appendNumber(dst, literal []byte) ([]byte, bool) {
	digits, negative := bytes.CutPrefix(literal, []byte("-"))
	if jsonvalue.IsInteger(literal) && len(digits) <= 20 {
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
	dst = jsonvalue.AppendFloat(dst, f, -5, 15)
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

// serdeFloat reads a number without its sign. serde_json does not round to the nearest
// double: it takes as many digits as fit into 64 bits, then multiplies or divides by a
// power of ten. serdeFloat does the same, to get the same double.
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

// takeDigits appends digits to n while they fit into 64 bits. It returns the new n, and
// how many digits fit.
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

// powers holds the doubles nearest to the powers of ten. math.Pow10 is not always exact.
var powers = sync.OnceValue(func() (table [maxPower + 1]float64) {
	for i := range table {
		table[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return table
})

// scale multiplies f by a power of ten. It returns false if the result is too large.
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
