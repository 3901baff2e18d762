package jsonorder

import (
	"bytes"
	"hash/maphash"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// hints says which tests hasAlike must make. It is collected while an object is read, and costs
// next to nothing for ordinary names.
type hints struct {
	letters bool // a name may differ from another one only in upper and lower case
	numbers int  // how many names may be numbers
	spelt   bool // one of them may be another spelling of another one
}

// hint takes note of a name. A name with escapes may be anything.
func (r *Reader) hint(h *hints, this name) {
	if this.form != literal {
		h.letters, h.numbers, h.spelt = true, h.numbers+1, true
		return
	}
	raw := r.text[this.start:this.end]
	for _, c := range raw {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			h.letters = true
			break
		}
	}
	switch {
	case len(raw) == 0 || !mayBeginNumber(rune(raw[0])):
	case isShortWhole(raw):
		h.numbers++
	case r.number(this.start).kind != notANumber:
		h.numbers, h.spelt = h.numbers+1, true
	}
}

// mayBeginNumber reports whether a number may begin with a character, such as the n of null.
func mayBeginNumber(c rune) bool {
	return '0' <= c && c <= '9' || c == '.' || c == '+' || c == '-' || c|0x20 == 'i' || c|0x20 == 'n'
}

// isShortWhole reports whether a name is a whole number of up to seven digits without leading
// zeros. Two such names are never the same number, because a float32 holds each of them exactly.
func isShortWhole(name []byte) bool {
	for _, c := range name {
		if !isDigit(c) {
			return false
		}
	}
	return len(name) <= 7 && (name[0] != '0' || len(name) == 1)
}

// hasAlike reports whether two names of an object are equal or alike: see [Object.Alike]. Call it
// before the members are sorted. It takes n log n steps for n names.
func (r *Reader) hasAlike(o *Object) bool {
	return o.hints.letters && r.sameLetters(o) || o.hints.spelt && o.hints.numbers > 1 && r.sameNumber(o)
}

// sameLetters reports whether two names are equal but for upper and lower case. It compares hashes
// of the names.
func (r *Reader) sameLetters(o *Object) bool {
	keys := r.keysFor(o)
	for i, m := 0, uint32(o.first); i < o.Len; i++ {
		at := r.members.at(int(m))
		keys[i] = keyOf(r.foldedHash(int(at.start)))
		m = at.next
	}
	return hasTwins(keys)
}

// sameNumber reports whether two names are the same number, as a float64 or as a float32.
func (r *Reader) sameNumber(o *Object) bool {
	for _, size := range [...]int{64, 32} {
		keys, numbers, every := r.keysFor(o)[:0], 0, false
		for i, m := 0, uint32(o.first); i < o.Len; i++ {
			at := r.members.at(int(m))
			m = at.next
			n := r.number(int(at.start))
			if n.kind == notANumber {
				continue
			}
			every = every || n.kind == everyNumber
			if numbers++; every && numbers > 1 {
				return true
			}
			if !every {
				keys = append(keys, keyOf(n.bits(size)))
			}
		}
		if hasTwins(keys) {
			return true
		}
	}
	return false
}

func keyOf(piece uint64) key { return key{high: uint32(piece >> 32), low: uint32(piece)} }

// hasTwins sorts the keys, and reports whether two of them are equal.
func hasTwins(keys []key) bool {
	sortPieces(keys, 56)
	for i := 1; i < len(keys); i++ {
		if keys[i].piece() == keys[i-1].piece() {
			return true
		}
	}
	return false
}

// foldSeed is random, so that nobody can choose names with the same hash.
var foldSeed = maphash.MakeSeed()

// foldedHash returns the hash of the name that starts at a position in the text. Names that
// differ only in upper and lower case have the same hash.
func (r *Reader) foldedHash(at int) uint64 {
	var h maphash.Hash
	h.SetSeed(foldSeed)
	for r.text[at] != '"' {
		var c rune
		if c, at = r.character(at); c < utf8.RuneSelf {
			if 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
			h.WriteByte(byte(c))
			continue
		}
		var char [utf8.UTFMax]byte
		h.Write(utf8.AppendRune(char[:0], Fold(c)))
	}
	return h.Sum64()
}

// maxNumberName limits the length of a number whose value counts. For a text of this length,
// strconv is fast and allocates nothing.
const maxNumberName = 32

// numberName is a name that is read as a number: see "Names that are numbers" in docs/token.md.
type numberName struct {
	kind      numberKind
	magnitude int // the number is d.ddd × 10^magnitude, and the first digit is not 0
	text      [maxNumberName]byte
	len       int
}

type numberKind uint8

const (
	notANumber  numberKind = iota
	everyNumber            // it counts as equal to every number
	oneNumber              // it is a decimal number
)

// noMagnitude is the magnitude of 0.
const noMagnitude = math.MinInt32

// bits returns the bits of the float of this size that is nearest to the number. Numbers that a
// float32 cannot hold are infinite or 0.
func (n *numberName) bits(size int) uint64 {
	switch {
	case n.magnitude < -38:
		return 0
	case n.magnitude >= 38 && n.text[0] == '-':
		return math.Float64bits(math.Inf(-1))
	case n.magnitude >= 38:
		return math.Float64bits(math.Inf(1))
	}
	f, _ := strconv.ParseFloat(string(n.text[:n.len]), size) // a decimal number in range, so there is no error
	return math.Float64bits(f)
}

// Three sets of characters that a name may have, apart from those of a decimal number.
const (
	withHex   = 1 << iota // a, b, c, d, f, x
	withPower             // p
	withOther
)

// number reads the name that starts at a position in the text.
func (r *Reader) number(at int) (n numberName) {
	first, next := r.character(at)
	if first == '+' || first == '-' {
		first, _ = r.character(next)
	}
	if !mayBeginNumber(first) {
		return n
	}
	length, has := 0, 0
	for r.text[at] != '"' {
		var c rune
		c, at = r.character(at)
		switch lower := c | 0x20; {
		case c == '_':
			continue
		case '0' <= c && c <= '9', c == '.', c == '+', c == '-', lower == 'e':
		case 'a' <= lower && lower <= 'f', lower == 'x':
			has |= withHex
		case lower == 'p':
			has |= withPower
		default:
			has |= withOther
		}
		if c >= utf8.RuneSelf || has&withOther != 0 && length == len("-infinity") {
			return n
		}
		if length < maxNumberName {
			n.text[length] = byte(c)
		}
		length++
	}
	n.len = min(length, maxNumberName)
	text := n.text[:n.len]
	unsigned := cutSign(text)
	switch {
	case has&withOther != 0:
		n.readWord(text, unsigned)
	case has == 0 && length > maxNumberName:
		n.kind = everyNumber
	case has == 0:
		n.readDecimal(unsigned)
	case has&withPower != 0 && len(unsigned) > 1 && unsigned[0] == '0' && unsigned[1]|0x20 == 'x':
		n.kind = everyNumber
	}
	return n
}

func cutSign(text []byte) []byte {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		return text[1:]
	}
	return text
}

func (n *numberName) readWord(text, unsigned []byte) {
	switch {
	case bytes.EqualFold(text, []byte("null")):
		n.kind, n.magnitude = oneNumber, noMagnitude
	case bytes.EqualFold(unsigned, []byte("inf")), bytes.EqualFold(unsigned, []byte("infinity")), bytes.EqualFold(unsigned, []byte("nan")):
		n.kind = everyNumber
	}
}

// readDecimal reads a number such as 15, .5 or 1.5e+3, whose sign is cut off.
func (n *numberName) readDecimal(text []byte) {
	whole, rest := cutDigits(text)
	var fraction []byte
	if len(rest) > 0 && rest[0] == '.' {
		fraction, rest = cutDigits(rest[1:])
	}
	exponent, ok := readExponent(rest)
	if !ok || len(whole)+len(fraction) == 0 {
		return
	}
	n.kind = oneNumber
	switch whole, last := bytes.TrimLeft(whole, "0"), bytes.TrimLeft(fraction, "0"); {
	case len(whole) > 0:
		n.magnitude = exponent + len(whole) - 1
	case len(last) > 0:
		n.magnitude = exponent - 1 - (len(fraction) - len(last))
	default:
		n.magnitude = noMagnitude
	}
}

// readExponent reads nothing, or an exponent such as e+5. A large exponent becomes 1000, which
// makes a number of maxNumberName characters infinite or 0 as well.
func readExponent(text []byte) (exponent int, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	digits, rest := cutDigits(cutSign(text[1:]))
	if text[0]|0x20 != 'e' || len(digits) == 0 || len(rest) > 0 {
		return 0, false
	}
	for _, d := range digits {
		exponent = min(exponent*10+int(d-'0'), 1000)
	}
	if text[1] == '-' {
		exponent = -exponent
	}
	return exponent, true
}

func cutDigits(text []byte) (digits, rest []byte) {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return text[:n], text[n:]
}

// character returns the character at a position in a string, and the position after it.
func (r *Reader) character(at int) (c rune, next int) {
	switch b := r.text[at]; {
	case b == '\\':
		return unescape(r.text, at)
	case b < utf8.RuneSelf:
		return rune(b), at + 1
	}
	c, size := utf8.DecodeRune(r.text[at:])
	return c, at + size
}

// Fold returns the smallest character that equals c if upper and lower case are ignored,
// as in strings.EqualFold and encoding/json.
func Fold(c rune) rune {
	for {
		next := unicode.SimpleFold(c)
		if next <= c {
			return next
		}
		c = next
	}
}
