package strictjson

import (
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxExponentDigits limits the digits of an exponent, so that the exponent fits into an int64 even after the number is
// normalised.
const maxExponentDigits = 18

// maxNumber limits the length of a number with a point or an exponent. strconv.ParseFloat miscounts the digits of a
// longer number, so a handler could read a wrong value.
const maxNumber = 800

// scanner reads JSON from a text that is valid UTF-8. A method returns false if what it should read is missing or not
// allowed. After such a problem nothing more is read.
type scanner[T string | []byte] struct {
	text      T
	pos       int
	problem   string // the first problem, or "" if there is none
	problemAt int
}

func (s *scanner[T]) fail(problem string) bool { return s.refuse(s.pos, problem) }

// refuse notes a problem at a position, and always returns false.
func (s *scanner[T]) refuse(at int, problem string) bool {
	if s.problem == "" {
		s.problem, s.problemAt = problem, at
	}
	s.pos = len(s.text)
	return false
}

// next skips white space and returns the byte after it, or 0 at the end of the text. It does not move past that byte.
// It is fast if there is no white space, as in most texts.
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

// peek returns the next byte without moving past it, or 0 at the end of the text. No JSON value begins with a zero
// byte.
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

// colon moves past the colon between a name and its value.
func (s *scanner[T]) colon() bool {
	if s.next() != ':' {
		return s.fail("a member name without a colon")
	}
	s.pos++
	return true
}

// scalar reads a value that is neither an array nor an object.
func (s *scanner[T]) scalar() bool {
	switch c := s.peek(); {
	case c == '"':
		return s.str() != broken
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't' && s.word("true"), c == 'f' && s.word("false"), c == 'n' && s.word("null"):
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
			c, next, ok := unescape(text, at)
			if !ok {
				s.refuse(at, "a broken escape")
				return broken
			}
			if f, at = max(f, escaped), next; utf16.IsSurrogate(c) {
				f = lone
			}
		case c < ' ':
			s.refuse(at, "a control character in a string")
			return broken
		default:
			at++
			for at < len(text) && text[at] >= utf8.RuneSelf {
				at++
			}
		}
	}
	s.refuse(at, "a string without an end")
	return broken
}

// unescape reads the escape at a position. It returns the character that the escape stands for, which may be half a
// surrogate pair, and the position after the escape. Two escapes that make a surrogate pair count as one. ok is false
// if there is no valid escape.
func unescape[T string | []byte](text T, at int) (c rune, next int, ok bool) {
	if at+1 == len(text) {
		return 0, at, false
	}
	switch c := text[at+1]; c {
	case '"', '\\', '/':
		return rune(c), at + 2, true
	case 'b', 'f', 'n', 'r', 't':
		return rune("\b   \f       \n   \r \t"[c-'b']), at + 2, true
	case 'u':
		c, ok := hex4(text, at+2)
		if at += 6; ok && utf16.IsSurrogate(c) && at+1 < len(text) && text[at] == '\\' && text[at+1] == 'u' {
			if low, ok := hex4(text, at+2); ok && utf16.DecodeRune(c, low) != utf8.RuneError {
				return utf16.DecodeRune(c, low), at + 6, true
			}
		}
		return c, at, ok
	}
	return 0, at, false
}

func hex4[T string | []byte](text T, at int) (r rune, ok bool) {
	if at+4 > len(text) {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[at:at+4]), 16, 16)
	return rune(unit), err == nil
}

// character returns the character at a position in a string, and the position after it. The character may be half a
// surrogate pair.
func character(text []byte, at int) (c rune, next int) {
	switch b := text[at]; {
	case b == '\\':
		c, next, _ = unescape(text, at)
		return c, next
	case b < utf8.RuneSelf:
		return rune(b), at + 1
	}
	c, size := utf8.DecodeRune(text[at:])
	return c, at + size
}

// AppendRune appends a code point in UTF-8. Half a surrogate pair becomes three bytes, by the same rule as other code
// points.
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

// skipPlain returns the position of the first byte, from i on, that is not plain, or the length of the text if all are
// plain. Plain is printable ASCII that is neither a quote nor a backslash. skipPlain reads eight bytes at a time,
// because most bytes of most texts are plain.
func skipPlain[T string | []byte](text T, i int) int {
	for ; i+8 <= len(text); i += 8 {
		if special := notPlain(load8(text, i)); special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(text) && ' ' <= text[i] && text[i] < 0x7F && text[i] != '"' && text[i] != '\\' {
		i++
	}
	return i
}

// notPlain returns 0 if all eight bytes of its argument are plain. Otherwise, the lowest bit that is set in the result
// is in the lowest byte that is not plain. The bits above it mean nothing.
func notPlain(eight uint64) uint64 {
	quote, backslash := eight^(everyByte*'"'), eight^(everyByte*'\\')
	special := (eight - everyByte*' ') | (quote - everyByte) | (backslash - everyByte) | (eight + everyByte) | eight
	return special & everyHigh
}

func load8[T string | []byte](text T, at int) uint64 {
	b := text[at : at+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
