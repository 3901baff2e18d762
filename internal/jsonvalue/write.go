package jsonvalue

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Style is how an implementation writes values: compact, members sorted by
// code points, the last of two with one name.
type Style struct {
	Strings StringStyle
	// Number appends a number in place of its literal, or refuses it.
	Number func(dst []byte, literal string) ([]byte, bool)
}

// StringStyle is how an implementation writes strings.
type StringStyle struct {
	ASCII      bool   // escape everything but printable ASCII
	Surrogates bool   // escape lone surrogates; otherwise refuse them
	Short      string // the control characters with an escape of one letter
	Upper      bool   // hexadecimal digits in upper case
}

// Usual is what most write: short escapes, everything else as it is.
var Usual = StringStyle{Short: "\b\f\n\r\t"}

// Append appends the document as the style writes it, or refuses.
func (d *Document) Append(dst []byte, style *Style) ([]byte, bool) {
	return d.append(dst, &d.nodes[0], style)
}

func (d *Document) append(dst []byte, n *node, style *Style) ([]byte, bool) {
	switch n.kind {
	case Number:
		return style.Number(dst, d.at(n.text))
	case String:
		return AppendString(dst, d.at(n.text), &style.Strings)
	case Array:
		ok := true
		dst = append(dst, '[')
		for i := n.first; i != 0 && ok; i = d.nodes[i].next {
			if i != n.first {
				dst = append(dst, ',')
			}
			dst, ok = d.append(dst, &d.nodes[i], style)
		}
		return append(dst, ']'), ok
	case Object:
		return d.appendMembers(dst, n, style)
	}
	return append(dst, d.at(n.text)...), true
}

// appendMembers appends the members by name; of those of one name the last.
func (d *Document) appendMembers(dst []byte, n *node, style *Style) ([]byte, bool) {
	dst = append(dst, '{')
	written, before := 0, ""
	for _, i := range d.sorted(n.first) {
		name := d.at(d.nodes[i].name)
		if written > 0 {
			if name == before {
				continue
			}
			dst = append(dst, ',')
		}
		written, before = written+1, name
		var ok bool
		if dst, ok = AppendString(dst, name, &style.Strings); !ok {
			return dst, false
		}
		if dst, ok = d.append(append(dst, ':'), &d.nodes[i], style); !ok {
			return dst, false
		}
	}
	return append(dst, '}'), true
}

// sorted returns where the members from first on are, by name, the last of one
// name first.
func (d *Document) sorted(first int32) []int32 {
	var few [16]int32
	members := few[:0]
	for i := first; i != 0; i = d.nodes[i].next {
		members = append(members, i)
	}
	if len(members) > len(few) {
		slices.SortFunc(members, d.compareNames)
		return members
	}
	for i := 1; i < len(members); i++ { // few are sorted in place, which takes less than setting out to
		for j := i; j > 0 && d.compareNames(members[j-1], members[j]) > 0; j-- {
			members[j-1], members[j] = members[j], members[j-1]
		}
	}
	return members
}

// compareNames orders members by name, and those of one name the last first.
func (d *Document) compareNames(i, j int32) int {
	if order := strings.Compare(d.at(d.nodes[i].name), d.at(d.nodes[j].name)); order != 0 {
		return order
	}
	return int(j - i)
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// AppendString appends the JSON string for text, or refuses a text that is not
// in the form that [Parse] gives.
func AppendString(dst []byte, text string, style *StringStyle) ([]byte, bool) {
	hex := lowerHex
	if style.Upper {
		hex = upperHex
	}
	dst = append(dst, '"')
	afterHigh := false // the unit before is a high surrogate without its partner
	for i := 0; i < len(text); {
		if plain := i; isPlain(text[i]) {
			i = skipPlain(text, i)
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
		r, size := utf8.DecodeRuneInString(text[i:])
		if r != utf8.RuneError || size > 1 {
			afterHigh = false
			switch {
			case !style.ASCII:
				dst = append(dst, text[i:i+size]...)
			case r < 0x10000:
				dst = appendEscape(dst, r, hex)
			default:
				dst = appendEscape(dst, 0xD800+(r-0x10000)>>10, hex)
				dst = appendEscape(dst, 0xDC00+(r-0x10000)&0x3FF, hex)
			}
			i += size
			continue
		}
		unit, ok := surrogate(text[i:])
		if !ok || !style.Surrogates || afterHigh && isLow(unit) {
			return dst, false
		}
		dst, afterHigh = appendEscape(dst, unit, hex), isHigh(unit)
		i += 3
	}
	return append(dst, '"'), true
}

// surrogate reads a lone surrogate.
func surrogate(text string) (rune, bool) {
	if len(text) < 3 || text[0] != 0xED || text[1]&0xE0 != 0xA0 || text[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), true
}

func appendEscape(dst []byte, unit rune, hex string) []byte {
	return append(dst, '\\', 'u', hex[unit>>12&0xF], hex[unit>>8&0xF], hex[unit>>4&0xF], hex[unit&0xF])
}

// IsInteger says whether a literal has neither fraction nor exponent.
func IsInteger(literal string) bool { return strings.Trim(literal, "-0123456789") == "" }

// AppendFloat appends the shortest text that reads back as f, with a decimal
// point or an exponent in it: without exponent when the power of ten of the
// first digit is between low and high. Exponents are as Go writes them, with a
// sign and two digits.
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

// Float reads a literal as the nearest double. It may be infinite.
func Float(literal string) float64 {
	f, _ := strconv.ParseFloat(literal, 64) // the error says that it is out of range
	return f
}
