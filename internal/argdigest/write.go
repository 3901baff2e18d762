package argdigest

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tripseal/tripseal/internal/jsonorder"
)

// The tags in the stream of bytes that is hashed. A tag says which type of value follows.
const (
	tagNull   = 'z'
	tagFalse  = 'f'
	tagTrue   = 't'
	tagNumber = 'n'
	tagString = 's'
	tagArray  = 'a'
	tagObject = 'o'
	tagAlike  = 'O' // an object whose members stay in the order of the text: see jsonorder.Object.Alike
)

// emptyObject is the stream that is hashed for {}.
var emptyObject = []byte{tagObject, 0, 0, 0, 0}

// writer reads a JSON text and writes its stream: the bytes that are hashed.
type writer struct{ jsonorder.Reader }

// root writes the stream of the whole text. For null it writes the stream of {}.
func (w *writer) root() {
	if w.Next() == 'n' {
		w.Scalar()
		w.Write(emptyObject)
		return
	}
	w.value()
}

func (w *writer) value() {
	switch w.Next() {
	case '"':
		raw, hasEscapes := w.String()
		w.tag(tagString)
		w.writeUnits(raw, hasEscapes)
	case '{':
		var o jsonorder.Object
		w.Object(&o)
		w.tag(tagObject)
		if o.Alike {
			w.Buf[len(w.Buf)-1] = tagAlike
		}
		count := w.writeCount(o.Len)
		for {
			raw, hasEscapes, ok := w.Member(&o)
			if !ok {
				break
			}
			w.writeUnits(raw, hasEscapes)
			w.value()
		}
		w.correctCount(count, o.Len)
		if o.Alike && w.Drafting() {
			w.Buf[count-1] = tagAlike
		}
	case '[':
		var a jsonorder.Array
		w.Array(&a)
		w.tag(tagArray)
		count := w.writeCount(a.Len)
		for w.Element(&a) {
			w.value()
		}
		w.correctCount(count, a.Len)
	case 'n':
		w.Scalar()
		w.tag(tagNull)
	case 'f':
		w.Scalar()
		w.tag(tagFalse)
	case 't':
		w.Scalar()
		w.tag(tagTrue)
	default:
		if literal := w.Scalar(); len(literal) > 0 && !w.Lost {
			w.writeNumber(literal)
		}
	}
	w.Settle()
}

func (w *writer) tag(t byte) { w.Buf = append(w.Buf, t) }

// writeCount writes the number n, which is a count or a length, and returns its offset in
// Buf.
func (w *writer) writeCount(n int) int {
	w.Buf = binary.BigEndian.AppendUint32(w.Buf, uint32(n))
	return len(w.Buf) - 4
}

// correctCount replaces the count at an offset in Buf with n. It does so only in the first
// reading, where the count of an array or object is known only at its end.
func (w *writer) correctCount(at, n int) {
	if w.Drafting() {
		binary.BigEndian.PutUint32(w.Buf[at:], uint32(n))
	}
}

// writeFrame writes the length of b, and then b.
func (w *writer) writeFrame(b []byte) {
	const short = 64
	if len(b) > short {
		w.writeCount(len(b))
		w.Write(b)
		return
	}
	w.Buf = append(binary.BigEndian.AppendUint32(w.Buf, uint32(len(b))), b...)
}

// writeUnits writes a string: its length, and then its code units in generalised UTF-8, which
// can also encode lone surrogates.
func (w *writer) writeUnits(raw []byte, hasEscapes bool) {
	switch {
	case w.Lost:
		return
	case !hasEscapes:
		w.writeFrame(raw)
		return
	}
	w.writeCount(unitsLen(raw))
	for {
		plain, escape := cutEscape(raw)
		w.Write(plain)
		if len(escape) == 0 {
			return
		}
		var r rune
		r, raw = jsonorder.Unescape(escape)
		w.Buf = jsonorder.AppendRune(w.Buf, r)
	}
}

// unitsLen returns how many bytes a string has after its escapes are resolved.
func unitsLen(raw []byte) (n int) {
	for {
		plain, escape := cutEscape(raw)
		n += len(plain)
		if len(escape) == 0 {
			return n
		}
		var r rune
		if r, raw = jsonorder.Unescape(escape); utf16.IsSurrogate(r) {
			n += 3
		} else {
			n += utf8.RuneLen(r)
		}
	}
}

// cutEscape cuts a string before its first escape. If the string has no escape, the second
// result is empty.
func cutEscape(raw []byte) (plain, escape []byte) {
	if i := bytes.IndexByte(raw, '\\'); i >= 0 {
		return raw[:i], raw[i:]
	}
	return raw, nil
}

// writeNumber writes a number as sign, digits and exponent: the value is
// digits × 10^exponent, with no zero at either end of the digits. Zero has a sign,
// no digits and exponent 0.
func (w *writer) writeNumber(literal []byte) {
	sign := byte('+')
	if literal[0] == '-' {
		sign, literal = '-', literal[1:]
	}
	w.Buf = append(w.Buf, tagNumber, sign)
	whole, rest := cutDigits(literal)
	if len(rest) == 0 && whole[len(whole)-1] != '0' { // a short cut for most numbers: they are whole and do not end in zero
		w.writeFrame(whole)
		w.exponent(0)
		return
	}
	var fraction []byte
	if len(rest) > 0 && rest[0] == '.' {
		fraction, rest = cutDigits(rest[1:])
	}
	exponent := parseExponent(rest) - int64(len(fraction))

	last := bytes.TrimRight(fraction, "0")
	exponent += int64(len(fraction) - len(last))
	first := whole
	if len(last) == 0 {
		first = bytes.TrimRight(whole, "0")
		exponent += int64(len(whole) - len(first))
	}
	if first = bytes.TrimLeft(first, "0"); len(first) == 0 {
		last = bytes.TrimLeft(last, "0")
	}
	digits := len(first) + len(last)
	if digits == 0 {
		exponent = 0
	}
	w.writeCount(digits)
	w.Write(first)
	w.Write(last)
	w.exponent(exponent)
}

func (w *writer) exponent(n int64) {
	w.Buf = binary.BigEndian.AppendUint64(w.Buf, uint64(n))
}

func cutDigits(literal []byte) (digits, rest []byte) {
	for i, c := range literal {
		if c < '0' || '9' < c {
			return literal[:i], literal[i:]
		}
	}
	return literal, nil
}

// parseExponent returns the value of an exponent such as e+5, or 0 for an empty text.
func parseExponent(text []byte) (n int64) {
	if len(text) == 0 {
		return 0
	}
	negative := text[1] == '-'
	for _, d := range text[1:] {
		if d != '-' && d != '+' {
			n = n*10 + int64(d-'0')
		}
	}
	if negative {
		return -n
	}
	return n
}
