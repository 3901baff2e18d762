package strictjson

import (
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Style is how another MCP implementation, a peer, writes JSON values. In all styles there is no white space, and
// members are sorted by the code points of their names.
type Style struct {
	Strings StringStyle
	// Number reads a JSON number and appends it to dst in the form that the peer writes. It returns false if the peer
	// refuses the number.
	Number func(dst, literal []byte) ([]byte, bool)
	// Empty has the values for which the peer writes {}, in the form that it would write otherwise.
	Empty []string
	// Levels is how deep arrays and objects may nest for the peer, at most MaxLevels.
	Levels int
	// Refusal says why Strings or Number refuses a value.
	Refusal string
}

// StringStyle is how a peer writes JSON strings.
type StringStyle struct {
	ASCII      bool   // true if the peer escapes everything but printable ASCII
	Surrogates bool   // true if the peer escapes lone surrogates, false if it refuses them
	Short      string // the control characters that the peer escapes with one letter, such as \n
	Upper      bool   // true if escapes have hexadecimal digits in upper case
}

// Usual is how most peers write strings. They write a one-letter escape if JSON has one, and leave every other
// character unescaped if JSON allows that.
var Usual = StringStyle{Short: "\b\f\n\r\t"}

// Sum returns the SHA-256 of a request's arguments as the peer writes them. An empty text means {}. An error is the
// client's fault, and is an [*Error].
//
// It refuses what [Sum] refuses, such as two members of the same name. The peer may read only the last of these
// members, but a handler that uses encoding/json gets both merged. It also refuses objects with alike names, because
// the peer sorts them. It needs no more memory than the other Sum.
func (s *Style) Sum(text []byte) (sum [Size]byte, err error) {
	if len(text) == 0 {
		text = []byte("{}")
	}
	r := readers.Get().(*reader)
	defer r.release()
	r.begin(text)
	written := r.problem == "" && r.append(s, false)
	switch {
	case r.problem != "":
		return sum, r.refusal()
	case !written:
		return sum, Whole(s.Refusal)
	case r.levels > s.Levels:
		return sum, Whole("more levels than the peer reads")
	case r.hash == nil && slices.Contains(s.Empty, string(r.buf)):
		r.buf = append(r.buf[:0], "{}"...)
	}
	return r.sum(), nil
}

// append writes the next value to the stream in the given style. It returns false if the style refuses the value.
func (r *reader) append(s *Style, isMember bool) (ok bool) {
	switch r.nextValue() {
	case '"':
		raw, hasEscapes := r.quoted()
		return r.appendString(raw, hasEscapes, s)
	case '[':
		r.tag('[')
		c := r.open(isMember)
		for i := range c.len {
			if i > 0 {
				r.tag(',')
			}
			if !r.append(s, false) {
				return false
			}
		}
		r.close(&c)
		r.tag(']')
	case '{':
		r.tag('{')
		c := r.openObject(isMember)
		if c.alike {
			return r.fail("two names that differ only in upper and lower case, or that are the same number")
		}
		for i := range c.len {
			if i > 0 {
				r.tag(',')
			}
			raw, hasEscapes := r.name(&c, i)
			if !r.appendString(raw, hasEscapes, s) {
				return false
			}
			r.tag(':')
			if !r.append(s, true) {
				return false
			}
		}
		r.close(&c)
		r.tag('}')
	case 'n', 'f', 't':
		r.write(r.literal())
	default:
		if r.buf, ok = s.Number(r.buf, r.literal()); !ok {
			return false
		}
	}
	r.settle()
	return true
}

// appendString writes a string in the given style. The parameter raw is the string as it is written in the text,
// between its quotes. It returns false if the style refuses the string.
func (r *reader) appendString(raw []byte, hasEscapes bool, s *Style) (ok bool) {
	r.tag('"')
	for len(raw) > 0 {
		var run []byte
		run, raw = r.cutRun(raw, hasEscapes)
		if r.buf, ok = appendText(r.buf, run, &s.Strings); !ok {
			return false
		}
		r.settle()
	}
	r.tag('"')
	r.settle()
	return true
}

const (
	lowerHex = "0123456789abcdef"
	upperHex = "0123456789ABCDEF"
)

// AppendString appends a text as a JSON string, with quotes. The text is in UTF-8, in which a lone surrogate is
// encoded in three bytes, by the same rule as other code points. AppendString returns false if the text does not have
// this form, or if the style cannot write it.
func AppendString(dst []byte, text string, style *StringStyle) ([]byte, bool) {
	dst, ok := appendText(append(dst, '"'), []byte(text), style)
	return append(dst, '"'), ok
}

// appendText appends a text as it is written between the quotes of a JSON string. It returns false in the same cases
// as AppendString.
func appendText(dst, text []byte, style *StringStyle) ([]byte, bool) {
	hex := lowerHex
	if style.Upper {
		hex = upperHex
	}
	afterHigh := false // true if the previous character is a high surrogate without a low one
	for i := 0; i < len(text); {
		if plain := skipPlain(text, i); plain > i {
			dst, i, afterHigh = append(dst, text[i:plain]...), plain, false
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		isHigh := false
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' && strings.IndexByte(style.Short, c) >= 0:
			dst = append(dst, '\\', "btn\x00fr"[c-'\b'])
		case c < ' ':
			dst = appendEscape(dst, r, hex)
		case r == utf8.RuneError && size == 1: // no UTF-8, so it must be a lone surrogate
			unit, ok := surrogate(text[i:])
			if !ok || !style.Surrogates || afterHigh && unit >= 0xDC00 {
				return dst, false
			}
			dst, isHigh, size = appendEscape(dst, unit, hex), unit < 0xDC00, 3
		case !style.ASCII:
			dst = append(dst, text[i:i+size]...)
		case r < 0x10000:
			dst = appendEscape(dst, r, hex)
		default:
			high, low := utf16.EncodeRune(r)
			dst = appendEscape(appendEscape(dst, high, hex), low, hex)
		}
		i, afterHigh = i+size, isHigh
	}
	return dst, true
}

// surrogate decodes the lone surrogate in the first three bytes of a text. It returns false if the text does not begin
// with a lone surrogate.
func surrogate(text []byte) (rune, bool) {
	if len(text) < 3 || text[0] != 0xED || text[1]&0xE0 != 0xA0 || text[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), true
}

func appendEscape(dst []byte, unit rune, hex string) []byte {
	return append(dst, '\\', 'u', hex[unit>>12&0xF], hex[unit>>8&0xF], hex[unit>>4&0xF], hex[unit&0xF])
}
