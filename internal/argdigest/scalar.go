package argdigest

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string and writes its length and its code units as
// generalised UTF-8: as UTF-8, with a lone surrogate in the three bytes that
// the same scheme gives it.
func (e *encoder) string() error {
	frame := e.openFrame()
	e.pos++
	run := e.pos // where the text not yet written begins
	ascii := true
	for {
		if e.pos >= len(e.text) {
			return e.fail("a string without an end")
		}
		c := e.text[e.pos]
		switch {
		case c == '"' || c == '\\':
			if !ascii && !utf8.Valid(e.text[run:e.pos]) {
				return e.fail("a string that is not UTF-8")
			}
			e.out = append(e.out, e.text[run:e.pos]...)
			if c == '"' {
				e.pos++
				e.closeFrame(frame, len(e.out)-frame-4)
				return nil
			}
			if err := e.escape(); err != nil {
				return err
			}
			run, ascii = e.pos, true
		case c < 0x20:
			return e.fail("a control character in a string")
		default:
			if c >= utf8.RuneSelf {
				ascii = false
			}
			e.pos++
		}
	}
}

// escape reads one escape, or two that make a surrogate pair.
func (e *encoder) escape() error {
	e.pos++
	c := e.peek()
	if c == 'u' {
		return e.unicodeEscape()
	}
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	default:
		return e.fail("an unknown escape")
	}
	e.pos++
	e.out = append(e.out, c)
	return nil
}

func (e *encoder) unicodeEscape() error {
	unit, ok := e.hex4(e.pos + 1)
	if !ok {
		return e.fail("a broken \\u escape")
	}
	e.pos += 5
	if !utf16.IsSurrogate(unit) {
		e.out = utf8.AppendRune(e.out, unit)
		return nil
	}
	if e.peek() == '\\' && e.pos+1 < len(e.text) && e.text[e.pos+1] == 'u' {
		if low, ok := e.hex4(e.pos + 2); ok {
			if r := utf16.DecodeRune(unit, low); r != utf8.RuneError {
				e.pos += 6
				e.out = utf8.AppendRune(e.out, r)
				return nil
			}
		}
	}
	e.out = append(e.out, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
	return nil
}

func (e *encoder) hex4(at int) (r rune, ok bool) {
	if at+4 > len(e.text) {
		return 0, false
	}
	for _, c := range e.text[at : at+4] {
		switch {
		case '0' <= c && c <= '9':
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

// number reads a number and writes it as sign, digits and exponent: the value
// is digits × 10^exponent, with no zero at either end of the digits. Zero has
// a sign, no digits and exponent 0.
func (e *encoder) number() error {
	sign := byte('+')
	if e.peek() == '-' {
		sign = '-'
		e.pos++
	}
	whole := e.digits()
	if len(whole) == 0 || len(whole) > 1 && whole[0] == '0' {
		return e.fail("a malformed number")
	}
	if whole[0] == '0' {
		whole = nil
	}
	var fraction []byte
	if e.peek() == '.' {
		e.pos++
		if fraction = e.digits(); len(fraction) == 0 {
			return e.fail("a malformed number")
		}
	}
	exponent, err := e.exponent()
	if err != nil {
		return err
	}
	exponent -= int64(len(fraction))
	if len(whole) == 0 {
		for len(fraction) > 0 && fraction[0] == '0' {
			fraction = fraction[1:]
		}
	}

	e.out = append(e.out, tagNumber, sign)
	frame := e.openFrame()
	e.out = append(e.out, whole...)
	e.out = append(e.out, fraction...)
	for len(e.out) > frame+4 && e.out[len(e.out)-1] == '0' {
		e.out = e.out[:len(e.out)-1]
		exponent++
	}
	if len(e.out) == frame+4 {
		exponent = 0
	}
	e.closeFrame(frame, len(e.out)-frame-4)
	e.out = binary.BigEndian.AppendUint64(e.out, uint64(exponent))
	return nil
}

func (e *encoder) digits() []byte {
	start := e.pos
	for e.pos < len(e.text) && '0' <= e.text[e.pos] && e.text[e.pos] <= '9' {
		e.pos++
	}
	return e.text[start:e.pos]
}

func (e *encoder) exponent() (int64, error) {
	if c := e.peek(); c != 'e' && c != 'E' {
		return 0, nil
	}
	e.pos++
	negative := e.peek() == '-'
	if negative || e.peek() == '+' {
		e.pos++
	}
	digits := e.digits()
	if len(digits) == 0 {
		return 0, e.fail("a malformed number")
	}
	if len(digits) > maxExponentDigits {
		return 0, e.fail("an exponent of more than 18 digits")
	}
	var n int64
	for _, d := range digits {
		n = n*10 + int64(d-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}
