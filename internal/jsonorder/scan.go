package jsonorder

import (
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// maxExponentDigits limits the digits of an exponent, so that the exponent fits into an
// int64 even after the number is normalised.
const maxExponentDigits = 18

// maxNumber limits the length of a number with a point or an exponent. strconv.ParseFloat
// miscounts the digits of a longer number, so a handler could read a wrong value.
const maxNumber = 800

// scanner reads JSON (RFC 8259) from a text that is valid UTF-8. A method returns false if
// what it should read is missing or not allowed. After such a problem nothing more is read.
type scanner[T string | []byte] struct {
	text      T
	pos       int
	constants bool   // true if NaN, Infinity and -Infinity are accepted as numbers, as in Python
	problem   string // the first problem, or "" if there is none
	problemAt int
}

func (s *scanner[T]) fail(problem string) bool {
	s.refuse(s.pos, problem)
	return false
}

func (s *scanner[T]) refuse(at int, problem string) {
	if s.problem == "" {
		s.problem, s.problemAt = problem, at
	}
	s.pos = len(s.text)
}

// next skips white space and returns the byte after it, or 0 at the end of the text. It does
// not move past that byte. It is fast if there is no white space, as in most texts.
func (s *scanner[T]) next() byte {
	if s.pos < len(s.text) && s.text[s.pos] > ' ' {
		return s.text[s.pos]
	}
	s.skipSpace()
	return s.peek()
}

func (s *scanner[T]) skipSpace() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// peek returns the next byte without moving past it, or 0 at the end of the text. No JSON
// value begins with a zero byte.
func (s *scanner[T]) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

// take moves past the next byte if that is c, and reports whether it did.
func (s *scanner[T]) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// scalar reads a value that is neither an array nor an object.
func (s *scanner[T]) scalar() bool {
	switch c := s.peek(); {
	case c == '"':
		return s.str() != broken
	case isDigit(c):
		return s.number()
	case c == '-':
		return s.constants && s.word("-Infinity") || s.number()
	case c == 't' && s.word("true"), c == 'f' && s.word("false"), c == 'n' && s.word("null"):
		return true
	case s.constants && (s.word("NaN") || s.word("Infinity")):
		return true
	}
	return s.fail("no value")
}

func (s *scanner[T]) word(w string) bool {
	if end := s.pos + len(w); end <= len(s.text) && string(s.text[s.pos:end]) == w {
		s.pos = end
		return true
	}
	return false
}

func (s *scanner[T]) number() bool {
	start := s.pos
	s.take('-')
	if !s.take('0') && s.digits() == 0 {
		return s.fail("a malformed number")
	}
	if c := s.peek(); c != '.' && c|0x20 != 'e' {
		return true // a number without a fraction or an exponent, as most numbers are
	}
	if s.take('.') && s.digits() == 0 {
		return s.fail("a malformed number")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		switch n := s.digits(); {
		case n == 0:
			return s.fail("a malformed number")
		case n > maxExponentDigits:
			return s.fail("an exponent of more than 18 digits")
		}
	}
	if s.pos-start > maxNumber {
		return s.fail("a number with a point or an exponent, and more than 800 characters")
	}
	return true
}

func (s *scanner[T]) digits() int {
	start := s.pos
	for s.pos < len(s.text) && isDigit(s.text[s.pos]) {
		s.pos++
	}
	return s.pos - start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// form is how a string is written in the text.
type form uint8

const (
	broken  form = iota // no valid string
	literal             // a string without escapes
	escaped             // a string with escapes
	lone                // a string with an escape that is half a surrogate pair
)

// str reads a string, beginning at its opening quote, and returns its form.
func (s *scanner[T]) str() form {
	f := literal
	text, at := s.text, s.pos+1
	for at < len(text) {
		if at+8 <= len(text) {
			special := notPlain(load8(text, at))
			if special == 0 {
				at += 8
				continue
			}
			at += bits.TrailingZeros64(special) / 8
		}
		switch c := text[at]; {
		case c == '"':
			s.pos = at + 1
			return f
		case c == '\\':
			s.pos = at
			e := s.escape()
			if e == broken {
				return broken
			}
			f, at = max(f, e), s.pos
		case c < ' ':
			s.pos = at
			s.fail("a control character in a string")
			return broken
		default:
			at++
			for at < len(text) && text[at] >= utf8.RuneSelf {
				at++
			}
		}
	}
	s.pos = at
	s.fail("a string without an end")
	return broken
}

// escape reads one escape, or the two escapes of a surrogate pair. It returns one of three forms:
// broken if the escape is not valid, lone if it is half a surrogate pair, and escaped otherwise.
func (s *scanner[T]) escape() form {
	if s.pos+1 < len(s.text) {
		switch s.text[s.pos+1] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.pos += 2
			return escaped
		case 'u':
			if _, ok := hex4(s.text, s.pos+2); !ok {
				s.fail("a broken \\u escape")
				return broken
			}
			var r rune
			if r, s.pos = unescape(s.text, s.pos); utf16.IsSurrogate(r) {
				return lone
			}
			return escaped
		}
	}
	s.fail("an unknown escape")
	return broken
}

// unescape reads the escape at a position. It returns the character that the escape stands
// for, and the position after the escape. Two escapes that make a surrogate pair count as
// one.
func unescape[T string | []byte](text T, at int) (rune, int) {
	c := text[at+1]
	switch c {
	case 'u':
	case 'b':
		return '\b', at + 2
	case 'f':
		return '\f', at + 2
	case 'n':
		return '\n', at + 2
	case 'r':
		return '\r', at + 2
	case 't':
		return '\t', at + 2
	default:
		return rune(c), at + 2
	}
	unit, _ := hex4(text, at+2)
	at += 6
	if utf16.IsSurrogate(unit) && at+1 < len(text) && text[at] == '\\' && text[at+1] == 'u' {
		if low, ok := hex4(text, at+2); ok {
			if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
				return r, at + 6
			}
		}
	}
	return unit, at
}

func hex4[T string | []byte](text T, at int) (r rune, ok bool) {
	if at+4 > len(text) {
		return 0, false
	}
	for i := range 4 {
		c := text[at+i]
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// AppendRune appends a code point in UTF-8. Half a surrogate pair becomes three bytes, by
// the same rule as other code points.
func AppendRune(dst []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(dst, r)
}

const (
	everyByte = 0x0101010101010101
	everyHigh = 0x8080808080808080
)

// SkipPlain returns the position of the first byte, from i on, that is not plain (see
// [IsPlain]), or the length of the text if all are plain. It reads eight bytes at a time,
// because most bytes of most texts are plain.
func SkipPlain[T string | []byte](text T, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if special := notPlain(load8(text, i)); special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(text) && IsPlain(text[i]) {
		i++
	}
	return i
}

// IsPlain reports whether c is printable ASCII and neither a quote nor a backslash.
func IsPlain(c byte) bool { return ' ' <= c && c < 0x7F && c != '"' && c != '\\' }

// notPlain returns 0 if all eight bytes of its argument are plain. Otherwise, the
// lowest bit that is set in the result is in the lowest byte that is not plain. The bits
// above it mean nothing.
func notPlain(eight uint64) uint64 {
	quote, backslash := eight^(everyByte*'"'), eight^(everyByte*'\\')
	return ((eight - everyByte*' ') | (quote - everyByte) | (backslash - everyByte) | (eight + everyByte) | eight) & everyHigh
}

func load8[T string | []byte](text T, at int) uint64 {
	b := text[at : at+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
