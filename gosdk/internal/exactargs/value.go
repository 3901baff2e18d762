package exactargs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpseal/mcpseal"
)

// In this package a JSON value is nil, a bool, a string, a []any or a map[string]any. A
// whole number is an int64 if it fits, or else a uint64. Any other number is a
// float64. However a value was written, it has one such form, and one text.

var (
	// ErrMalformed is for arguments that are answered with -32602. Its text is for the
	// log, and repeats nothing of the arguments.
	ErrMalformed = errors.New("not a text with one meaning")
	errCase      = fmt.Errorf("%w: a name differs from another in case alone", ErrMalformed)

	errNumber = errors.New("a number is out of range: a whole number has at most 64 bits, any other is a double that is not whole")
)

// readValue decodes a JSON text. Whole numbers become an int64 or a uint64, never a
// rounded float64.
func readValue(text []byte) (any, error) {
	value, err := readNumbers(text)
	if err != nil {
		return nil, err
	}
	return exactly(value)
}

// readNumbers reads a JSON text, with every number as a json.Number.
func readNumbers(text []byte) (value any, err error) {
	// The digest is made only because it refuses two members of one name, text that is
	// not UTF-8, and values that are too deep or too long.
	binding := mcpseal.Binding{Arguments: text}
	if _, err := binding.ArgumentsDigest(); err != nil {
		return nil, ErrMalformed
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, ErrMalformed
	}
	return value, nil
}

// exactly replaces every json.Number in a value with an int64, a uint64 or a float64.
func exactly(value any) (any, error) {
	var err error
	switch v := value.(type) {
	case json.Number:
		return exactNumber(v.String())
	case []any:
		for i := range v {
			if v[i], err = exactly(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name, member := range v {
			// Half a surrogate pair is decoded as U+FFFD, so two names may have become
			// equal.
			if strings.ContainsRune(name, utf8.RuneError) {
				return nil, ErrMalformed
			}
			if v[name], err = exactly(member); err != nil {
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
	if err != nil || f == math.Trunc(f) {
		return nil, errNumber // a whole number of more than 64 bits, or one that rounding made whole
	}
	return f, nil
}

// wholeDigits writes a number without point and exponent. ok is false unless the number
// is whole and has at most 20 digits.
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

// rounds reports whether a value has an integer in it that a double may round: its
// magnitude is 2^53 or more.
func rounds(value any) bool {
	const most = 1 << 53
	switch v := value.(type) {
	case int64:
		return v <= -most || v >= most
	case uint64:
		return v >= most
	case []any:
		return slices.ContainsFunc(v, rounds)
	case map[string]any:
		for _, member := range v {
			if rounds(member) {
				return true
			}
		}
	}
	return false
}

// writeValue returns the one text of a value: with members in the order of their names,
// and numbers in their shortest form.
func writeValue(value any) []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("gosdk: a JSON value cannot be written: " + err.Error()) // only a bug leads here: readValue returns no such value
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
