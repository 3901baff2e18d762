package strictjson

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// member is a member of an object whose members must be sorted or compared.
type member struct {
	piece uint64 // the first piece of the name, or another number by which members are sorted
	start uint32 // the position in the text where the name starts, after the opening quote
	note  uint32 // the index of the note for the first array or object in the member's value
}

// membersOf moves through an object: it reads the names, and skips the values. Call done when the members are not
// needed any more.
func (r *reader) membersOf(c *container) (members []member) {
	if r.used+c.len <= len(r.members) {
		members = r.members[r.used : r.used+c.len]
		r.used += c.len
	} else {
		members = make([]member, c.len)
	}
	for i := range members {
		r.nextValue()
		members[i].start = uint32(r.pos + 1)
		r.str()
		first := r.nextValue()
		members[i].note = uint32(r.note)
		if first == '[' || first == '{' {
			inner := r.open(true)
			r.pos, r.note = inner.pos, inner.note
		} else {
			r.scalar()
		}
	}
	return members
}

// done gives back the room of members, after all that were taken later.
func (r *reader) done(members []member) {
	if len(members) > 0 && r.used >= len(members) && &members[0] == &r.members[r.used-len(members)] {
		clear(members) // they hold pieces of names
		r.used -= len(members)
	}
}

// sort sorts members by their names. It refuses the text if two members have the same name.
func (r *reader) sort(members []member) {
	same := r.piecesInCommon(members)
	for i := range members {
		at := int(members[i].start)
		for range same + 1 {
			members[i].piece, at = r.piece(at)
		}
	}
	slices.SortFunc(members, func(a, b member) int {
		if a.piece != b.piece || isLast(a.piece) {
			return cmp.Compare(a.piece, b.piece)
		}
		return r.compare(int(a.start), int(b.start))
	})
	for i := 1; i < len(members); i++ {
		if a, b := &members[i-1], &members[i]; a.piece == b.piece && r.compare(int(a.start), int(b.start)) == 0 {
			r.refuse(int(b.start), "an object with two members of one name")
			return
		}
	}
}

// piecesInCommon returns with how many equal pieces all names begin. It reads no more than each name once, and the
// first name as often as there are names to compare it with.
func (r *reader) piecesInCommon(members []member) int {
	most := math.MaxInt
	for i := 1; i < len(members) && most > 0; i++ {
		a, b, n := int(members[0].start), int(members[i].start), 0
		for ; n < most; n++ {
			var v, w uint64
			v, a = r.piece(a)
			w, b = r.piece(b)
			if v != w || isLast(v) {
				break
			}
		}
		most = n
	}
	return most
}

// compare compares the names at two positions in the text. The result is negative, zero or positive.
func (r *reader) compare(a, b int) int {
	for {
		var v, w uint64
		v, a = r.piece(a)
		w, b = r.piece(b)
		if v != w || isLast(v) {
			return cmp.Compare(v, w)
		}
	}
}

// hasTwins sorts members by their pieces, and reports whether two of them have the same piece.
func hasTwins(members []member) bool {
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.piece, b.piece) })
	for i := 1; i < len(members); i++ {
		if members[i].piece == members[i-1].piece {
			return true
		}
	}
	return false
}

// A piece is up to seven bytes of a name, with escapes resolved. It is stored in the upper bytes of a uint64. The
// lowest byte is the number of bytes in the piece if the name ends with this piece. If another piece follows, the
// lowest byte has the value notLast. Names can be compared piece by piece, as numbers.
const (
	pieceSize = 7
	notLast   = pieceSize + 1 // the lowest byte of a piece, if the name has another piece after it
)

func isLast(piece uint64) bool { return byte(piece) != notLast }

// piece reads one piece of a name, from a position in the text. It returns the piece, and the position of the next
// piece. A piece always starts with a whole character. If only some bytes of a character fit at the end of a piece, the
// next piece starts with the whole character again. So a name has the same pieces with and without escapes.
func (r *reader) piece(at int) (piece uint64, next int) {
	if at+8 <= len(r.text) { // a short cut for plain characters
		v := binary.BigEndian.Uint64(r.text[at:])
		plain := bits.TrailingZeros64(notPlain(bits.ReverseBytes64(v))) / 8
		if plain == 8 {
			return v&^0xFF | notLast, at + pieceSize
		}
		if r.text[at+plain] == '"' {
			return v>>(64-8*plain)<<(64-8*plain) | uint64(plain), at
		}
	}
	var room [utf8.UTFMax]byte
	for taken := 0; ; {
		if r.text[at] == '"' {
			return piece | uint64(taken), at
		}
		c, end := character(r.text, at)
		for _, b := range AppendRune(room[:0], c) {
			if taken == pieceSize {
				return piece | notLast, at
			}
			piece |= uint64(b) << (56 - 8*taken)
			taken++
		}
		at = end
	}
}
