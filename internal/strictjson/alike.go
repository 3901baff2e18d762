package strictjson

import (
	"bytes"
	"hash/maphash"
	"math"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// hint takes note of a name. It costs next to nothing for ordinary names.
func (r *reader) hint(n *names, this name) {
	if this.form != literal { // a name with escapes may be anything
		n.letters = true
		n.numbers++
		return
	}
	raw := r.text[this.start:this.end]
	for _, c := range raw {
		if 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf {
			n.letters = true
			break
		}
	}
	if len(raw) > 0 && mayBeginNumber(rune(raw[0])) {
		if kind, _ := r.number(this.start, 64); kind != notANumber {
			n.numbers++
		}
	}
}

// Two names of an object are alike if they differ only in upper and lower case, or are the same number, such as 1 and
// 1.0 (docs/token.md has the exact rule). Go reads such members into the same field of a struct, or the same element of
// a map, and the last one wins. The two methods below find alike names. They change the order of the members, and take
// n log n steps.

// sameLetters reports whether two names are equal but for upper and lower case. It compares hashes of the names.
func (r *reader) sameLetters(members []member) bool {
	for i := range members {
		members[i].piece = r.foldedHash(int(members[i].start))
	}
	return hasTwins(members)
}

// sameNumber reports whether two names are the same number, as a float of this size.
func (r *reader) sameNumber(members []member, size int) bool {
	n, every := 0, false
	for i := range members {
		if kind, bits := r.number(int(members[i].start), size); kind != notANumber {
			every = every || kind == everyNumber
			members[n], members[i] = members[i], members[n]
			members[n].piece = bits
			n++
		}
	}
	return every && n > 1 || hasTwins(members[:n])
}

// foldSeed is random, so that nobody can choose names with the same hash.
var foldSeed = maphash.MakeSeed()

// foldedHash returns the hash of the name that starts at a position in the text. Names that differ only in upper and
// lower case have the same hash.
func (r *reader) foldedHash(at int) uint64 {
	var h maphash.Hash
	h.SetSeed(foldSeed)
	for r.text[at] != '"' {
		var c rune
		if c, at = character(r.text, at); c < utf8.RuneSelf {
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

// Fold returns the smallest character that equals c if upper and lower case are ignored, as in strings.EqualFold and
// encoding/json.
func Fold(c rune) rune {
	for {
		next := unicode.SimpleFold(c)
		if next <= c {
			return next
		}
		c = next
	}
}

type numberKind uint8

const (
	notANumber  numberKind = iota
	everyNumber            // it counts as equal to every number
	oneNumber              // it is null or a decimal number
)

// mayBeginNumber reports whether a number may begin with a character, such as the n of null.
func mayBeginNumber(c rune) bool {
	return '0' <= c && c <= '9' || c == '.' || c == '+' || c == '-' || c|0x20 == 'i' || c|0x20 == 'n'
}

// maxNumberName limits the length of a number whose value counts. For a text of this length, strconv is fast and
// allocates nothing.
const maxNumberName = 32

// number reads the name that starts at a position in the text as a number: see "Names that are numbers" in
// docs/token.md. If it is one number, bits is the float of this size that is nearest to it.
func (r *reader) number(at, size int) (kind numberKind, bits uint64) {
	first, next := character(r.text, at)
	if first == '+' || first == '-' {
		first, _ = character(r.text, next)
	}
	if !mayBeginNumber(first) {
		return notANumber, 0
	}
	var room [maxNumberName + 1]byte
	name := room[:0]                         // in lower case and without underscores; only the beginning of a longer name
	hex, power, other := false, false, false // hex and power: it has a letter that only a hexadecimal float has
	for r.text[at] != '"' {
		var c rune
		if c, at = character(r.text, at); 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		switch {
		case c == '_':
			continue
		case '0' <= c && c <= '9', c == '.', c == '+', c == '-', c == 'e':
		case 'a' <= c && c <= 'f', c == 'x':
			hex = true
		case c == 'p':
			power = true
		default:
			other = true
		}
		if c >= utf8.RuneSelf || other && len(name) == len("-infinity") {
			return notANumber, 0
		}
		if len(name) < len(room) {
			name = append(name, byte(c))
		}
	}
	unsigned := cutSign(name)
	switch word := string(unsigned); {
	case string(name) == "null":
		return oneNumber, 0
	case word == "inf", word == "infinity", word == "nan", power && !other && bytes.HasPrefix(unsigned, []byte("0x")):
		return everyNumber, 0
	case other, power, hex:
		return notANumber, 0
	case len(name) > maxNumberName:
		return everyNumber, 0
	}
	d, ok := parseDecimal(unsigned)
	if !ok {
		return notANumber, 0
	}
	var f float64
	switch magnitude := d.magnitude(); { // what a float32 cannot hold is infinite or 0
	case magnitude >= 38:
		f = math.Inf(1 - 2*bytes.Count(name[:1], []byte("-")))
	case magnitude >= -38:
		f, _ = strconv.ParseFloat(string(name), size) // a decimal number in range, so there is no error
	}
	return oneNumber, math.Float64bits(f)
}
