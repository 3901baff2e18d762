package strictjson

import (
	"crypto/sha256"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Size is the length of a digest, in bytes.
const Size = sha256.Size

// The tags in the stream of bytes that is hashed. A tag says which type of value follows.
const (
	tagNull   = 'z'
	tagFalse  = 'f'
	tagTrue   = 't'
	tagNumber = 'n'
	tagString = 's'
	tagArray  = 'a'
	tagObject = 'o'
	tagAlike  = 'O' // an object whose members stay in the order of the text
)

// emptyObject is the stream that is hashed for {}.
var emptyObject = []byte{tagObject, 0, 0, 0, 0}

// noArguments is the digest of {}, for requests without arguments.
var noArguments = sha256.Sum256(emptyObject)

// Sum returns the digest of the JSON text of a request's arguments. An empty text and null mean {}. Two texts have the
// same digest if and only if they have the same value: white space, escapes and the spelling of a number do not change
// it, nor does the order of members, unless two names of an object are alike, such as "a" and "A". docs/token.md
// defines the digest. An error is an [*Error].
//
// Sum allocates at most four times the length of the text, and nothing for a text of a few kilobytes.
func Sum(text []byte) (sum [Size]byte, err error) {
	if len(text) == 0 {
		return noArguments, nil
	}
	r := readers.Get().(*reader)
	defer r.release()
	switch r.begin(text); {
	case r.problem != "":
	case r.nextValue() == 'n':
		return noArguments, nil
	default:
		r.digest(false)
	}
	if r.problem != "" {
		return sum, r.refusal()
	}
	return r.sum(), nil
}

// digest writes the next value to the stream: first a tag for its type, then its length if values of this type differ
// in length, then its content.
func (r *reader) digest(isMember bool) {
	switch r.nextValue() {
	case '"':
		r.tag(tagString)
		r.units(r.quoted())
	case '{':
		c := r.openObject(isMember)
		if c.alike {
			r.tag(tagAlike)
		} else {
			r.tag(tagObject)
		}
		r.length(c.len)
		for i := range c.len {
			r.units(r.name(&c, i))
			r.digest(true)
		}
		r.close(&c)
	case '[':
		c := r.open(isMember)
		r.tag(tagArray)
		r.length(c.len)
		for range c.len {
			r.digest(false)
		}
		r.close(&c)
	case 'n':
		r.literal()
		r.tag(tagNull)
	case 'f':
		r.literal()
		r.tag(tagFalse)
	case 't':
		r.literal()
		r.tag(tagTrue)
	default:
		r.decimal(r.literal())
	}
	r.settle()
}

func (r *reader) tag(t byte) { r.buf = append(r.buf, t) }

func (r *reader) length(n int) { r.buf = binary.BigEndian.AppendUint32(r.buf, uint32(n)) }

// units writes a string: its length, and then its code units in generalised UTF-8, which can also encode lone
// surrogates.
func (r *reader) units(raw []byte, hasEscapes bool) {
	if !hasEscapes {
		r.length(len(raw))
		r.write(raw)
		return
	}
	r.length(unitsLen(raw))
	for len(raw) > 0 {
		var run []byte
		run, raw = r.cutRun(raw, true)
		r.write(run)
	}
}

// unitsLen returns how many bytes a string has after its escapes are resolved.
func unitsLen(raw []byte) (n int) {
	for at := 0; at < len(raw); {
		if raw[at] != '\\' {
			n++
			at++
			continue
		}
		var c rune
		if c, at, _ = unescape(raw, at); utf16.IsSurrogate(c) {
			n += 3
		} else {
			n += utf8.RuneLen(c)
		}
	}
	return n
}

// decimal writes a number as its sign, its digits and its exponent.
func (r *reader) decimal(literal []byte) {
	r.tag(tagNumber)
	sign, unsigned := byte('+'), cutSign(literal)
	if literal[0] == '-' {
		sign = '-'
	}
	r.tag(sign)
	if whole, rest := cutDigits(unsigned); len(rest) == 0 && whole[len(whole)-1] != '0' { // a short cut for most numbers
		r.length(len(whole))
		r.write(whole)
		r.buf = binary.BigEndian.AppendUint64(r.buf, 0)
		return
	}
	d, _ := parseDecimal(unsigned) // every JSON number is one
	r.length(len(d.first) + len(d.last))
	r.write(d.first)
	r.write(d.last)
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(d.exponent))
}
