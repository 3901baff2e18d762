package jsonvalue

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tripseal/tripseal/internal/jsonorder"
)

// Style is how a peer writes JSON values. In all styles there is no white space, and members
// are sorted by the code points of their names.
type Style struct {
	Strings StringStyle
	// Number reads a JSON number and appends it to dst in the form that the peer writes. It
	// returns false if the peer refuses the number.
	Number func(dst, literal []byte) ([]byte, bool)
}

// StringStyle is how a peer writes JSON strings.
type StringStyle struct {
	ASCII      bool   // true if the peer escapes everything but printable ASCII
	Surrogates bool   // true if the peer escapes lone surrogates, false if it refuses them
	Short      string // the control characters that the peer escapes with one letter, such as \n
	Upper      bool   // true if escapes have hexadecimal digits in upper case
}

// Usual is how most peers write strings. They write a one-letter escape if JSON has one, and
// leave every other character unescaped if JSON allows that.
var Usual = StringStyle{Short: "\b\f\n\r\t"}

// Append reads the next value and appends it to Buf in the given style. It returns false if
// the value is refused.
func (a *Arguments) Append(style *Style) bool {
	switch a.Next() {
	case '"':
		raw, hasEscapes := a.String()
		return a.appendString(raw, hasEscapes, style)
	case '[':
		a.Buf = append(a.Buf, '[')
		var array jsonorder.Array
		a.Array(&array)
		for a.Element(&array) {
			if !a.Append(style) {
				return false
			}
			a.Buf = append(a.Buf, ',')
		}
		a.writeEnd(']', array.Len)
		return true
	case '{':
		a.Buf = append(a.Buf, '{')
		var object jsonorder.Object
		a.Object(&object)
		for {
			raw, hasEscapes, ok := a.Member(&object)
			if !ok {
				break
			}
			if !a.appendString(raw, hasEscapes, style) {
				return false
			}
			a.Buf = append(a.Buf, ':')
			if !a.Append(style) {
				return false
			}
			a.Buf = append(a.Buf, ',')
		}
		a.writeEnd('}', object.Len)
		return true
	case 'n', 'f', 't':
		a.Write(a.Scalar())
		return true
	}
	literal := a.Scalar()
	if len(literal) == 0 {
		return false
	}
	ok := true
	if !a.Lost {
		a.Buf, ok = style.Number(a.Buf, literal)
	}
	a.Settle()
	return ok
}

// writeEnd writes the bracket that closes an array or object of n values. Each value has a
// comma after it, and the bracket replaces the last comma.
func (a *Arguments) writeEnd(bracket byte, n int) {
	if last := len(a.Buf) - 1; n > 0 && last >= 0 {
		a.Buf[last] = bracket
	} else {
		a.Buf = append(a.Buf, bracket)
	}
	a.Settle()
}

// maxRun is the maximum number of bytes of a string that are appended at once. Escaping may
// turn each of them into six bytes.
const maxRun = 1 << 10

// appendString appends a string in the given style. The parameter raw is the string as it is
// written in the text, between its quotes. The result is false if the style cannot write the
// string.
func (a *Arguments) appendString(raw []byte, hasEscapes bool, style *Style) bool {
	if a.Lost {
		a.Settle()
		return true
	}
	a.Buf = append(a.Buf, '"')
	for len(raw) > 0 {
		var char [utf8.UTFMax]byte
		next := char[:0]
		if hasEscapes && raw[0] == '\\' {
			var r rune
			r, raw = jsonorder.Unescape(raw)
			next = jsonorder.AppendRune(next, r)
		} else {
			next, raw = cutRun(raw, hasEscapes)
		}
		var ok bool
		if a.Buf, ok = appendText(a.Buf, next, &style.Strings); !ok {
			return false
		}
		a.Settle()
	}
	a.Buf = append(a.Buf, '"')
	a.Settle()
	return true
}

// cutRun cuts a string before its first escape, or after about maxRun bytes if that is
// earlier.
func cutRun(raw []byte, hasEscapes bool) (first, rest []byte) {
	end := len(raw)
	if end > maxRun {
		for end = maxRun; !utf8.RuneStart(raw[end]); {
			end--
		}
	}
	if hasEscapes {
		if i := bytes.IndexByte(raw[:end], '\\'); i >= 0 {
			end = i
		}
	}
	return raw[:end], raw[end:]
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// AppendString appends a text as a JSON string, with quotes. It returns false if the style
// cannot write the text, or if the text does not have the form that the package comment
// defines: UTF-8, in which a lone surrogate is encoded in three bytes.
func AppendString(dst []byte, text string, style *StringStyle) ([]byte, bool) {
	dst, ok := appendText(append(dst, '"'), []byte(text), style)
	return append(dst, '"'), ok
}

// appendText appends a text as it is written between the quotes of a JSON string. It returns
// false in the same cases as AppendString.
func appendText(dst, text []byte, style *StringStyle) ([]byte, bool) {
	hex := lowerHex
	if style.Upper {
		hex = upperHex
	}
	afterHigh := false // true if the previous character is a high surrogate without a low one
	for i := 0; i < len(text); {
		if plain := i; jsonorder.IsPlain(text[i]) {
			i = jsonorder.SkipPlain(text, i)
			dst, afterHigh = append(dst, text[plain:i]...), false
			continue
		}
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			afterHigh = false
			switch {
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c < ' ' && strings.IndexByte(style.Short, c) >= 0:
				dst = append(dst, '\\', "btn\x00fr"[c-'\b'])
			case c < ' ' || style.ASCII:
				dst = appendEscape(dst, rune(c), hex)
			default:
				dst = append(dst, c)
			}
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r != utf8.RuneError || size > 1 {
			afterHigh = false
			switch {
			case !style.ASCII:
				dst = append(dst, text[i:i+size]...)
			case r < 0x10000:
				dst = appendEscape(dst, r, hex)
			default:
				high, low := utf16.EncodeRune(r)
				dst = appendEscape(appendEscape(dst, high, hex), low, hex)
			}
			i += size
			continue
		}
		unit, ok := surrogate(text[i:])
		isLow := unit >= 0xDC00
		if !ok || !style.Surrogates || afterHigh && isLow {
			return dst, false
		}
		dst, afterHigh = appendEscape(dst, unit, hex), !isLow
		i += 3
	}
	return dst, true
}

// surrogate decodes the lone surrogate in the first three bytes of a text. It returns false
// if the text does not begin with a lone surrogate.
func surrogate(text []byte) (rune, bool) {
	if len(text) < 3 || text[0] != 0xED || text[1]&0xE0 != 0xA0 || text[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), true
}

func appendEscape(dst []byte, unit rune, hex string) []byte {
	return append(dst, '\\', 'u', hex[unit>>12&0xF], hex[unit>>8&0xF], hex[unit>>4&0xF], hex[unit&0xF])
}

// IsInteger reports whether a JSON number is written without a fraction or an exponent.
func IsInteger[T string | []byte](literal T) bool {
	for i := range len(literal) {
		if c := literal[i]; c != '-' && (c < '0' || '9' < c) {
			return false
		}
	}
	return true
}

// AppendFloat appends the shortest text that reads back as f, always with a decimal
// point or an exponent. The text has no exponent if the power of ten of the first digit is
// between low and high. Otherwise it has an exponent as Go writes it, with a sign and at
// least two digits.
func AppendFloat(dst []byte, f float64, low, high int) []byte {
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
