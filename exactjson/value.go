package exactjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tripseal/tripseal/internal/argdigest"
)

var (
	// ErrMalformed says that a text is not JSON with exactly one meaning, or that a name in
	// it differs from another name only in upper and lower case. Answer such arguments with
	// the JSON-RPC error code -32602. The error's text is for the log, and quotes nothing
	// from the arguments.
	ErrMalformed = errors.New("not a text with one meaning")
	errCase      = fmt.Errorf("%w: a name differs from another one, here or in the schema, only in upper and lower case", ErrMalformed)

	errNumber = errors.New("a number is out of range: a whole number must fit 64 bits, and a fraction must not be rounded to a whole number")
)

// Read returns the value of a JSON text. The package comment lists the Go types of values. The
// error is [ErrMalformed] if the text is not UTF-8, has two members with the same name, or is too
// deep or too long. Any other error is safe to show to the client. It means that a whole number
// does not fit 64 bits, or that a float64 would round a fraction to a whole number. Use Read for
// arguments that you check and bind before a handler gets them.
func Read(text []byte) (any, error) {
	// The digest itself is not needed. But Sum refuses two members with the same name, text
	// that is not UTF-8, and values that are too deep or too long.
	if _, err := argdigest.Sum(text); err != nil {
		return nil, ErrMalformed
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, ErrMalformed
	}
	return replaceNumbers(value)
}

// replaceNumbers replaces every json.Number in a value with an int64, a uint64 or a float64.
func replaceNumbers(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case json.Number:
		return exactNumber(v.String())
	case []any:
		for i := range v {
			if v[i], err = replaceNumbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, member := range v {
			// Refuse a name with U+FFFD. Half a surrogate pair is also decoded as U+FFFD, so
			// two different names may have become equal.
			if strings.ContainsRune(name, utf8.RuneError) {
				return nil, ErrMalformed
			}
			if v[name], err = replaceNumbers(member); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

func exactNumber(literal string) (any, error) {
	if digits, ok := wholeDigits(literal); ok {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || isWhole(f) {
		return nil, errNumber // a whole number of more than 64 bits, or a number that rounding made whole
	}
	return f, nil
}

func isWhole(f float64) bool { return f == math.Trunc(f) }

// wholeDigits returns a whole number as digits, without point and exponent. The result
// ok is false if the number is not whole or has more than 20 digits.
func wholeDigits(literal string) (digits string, ok bool) {
	unsigned, negative := strings.CutPrefix(literal, "-")
	mantissa, power := unsigned, int64(0)
	if i := strings.IndexAny(unsigned, "eE"); i >= 0 {
		var err error
		if power, err = strconv.ParseInt(unsigned[i+1:], 10, 32); err != nil {
			return "", false
		}
		mantissa = unsigned[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	digits = strings.TrimRight(all, "0")
	power += int64(len(all) - len(digits) - len(fraction))
	digits = strings.TrimLeft(digits, "0")
	switch {
	case digits == "":
		return "0", true
	case power < 0 || int64(len(digits))+power > 20:
		return "", false
	}
	digits += strings.Repeat("0", int(power))
	if negative {
		digits = "-" + digits
	}
	return digits, true
}

// Text returns a value as JSON text. Equal values have the same text: its members are in
// the order of their names, and its numbers in their shortest form. Bind a cursor to this
// text. The value must come from [Read], or consist of the same types.
func Text(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("the value is not one of JSON: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
