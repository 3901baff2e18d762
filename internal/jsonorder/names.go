package jsonorder

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// A piece is up to seven bytes of a name, with escapes resolved. It is stored in the upper bytes of
// a uint64. The lowest byte is the number of bytes in the piece if the name ends with this piece.
// If another piece follows, the lowest byte has the value notLast. Names can be compared piece by
// piece, as numbers. The method sortKeys reads one piece of each name, sorts the names by this
// piece, and reads further pieces only of names that are still equal. So it reads each piece at
// most once.
const (
	pieceSize = 7
	notLast   = pieceSize + 1 // the lowest byte of a piece, if the name has another piece after it
)

func isLast(piece uint64) bool { return byte(piece) != notLast }

// piece reads one piece of a name, from a position in the text. It returns the piece, and the
// position of the next piece. A piece always starts with a whole character. If only some bytes of a
// character fit at the end of a piece, the next piece starts with the whole character again. So a
// name has the same pieces with and without escapes.
func (r *Reader) piece(at int) (piece uint64, next int) {
	if at+8 <= len(r.text) {
		v := binary.BigEndian.Uint64(r.text[at:])
		plain := bits.TrailingZeros64(notPlain(bits.ReverseBytes64(v))) / 8
		if plain == 8 {
			return v&^0xFF | notLast, at + pieceSize
		}
		if r.text[at+plain] == '"' {
			return v>>(64-8*plain)<<(64-8*plain) | uint64(plain), at
		}
	}
	return r.mixedPiece(at)
}

// mixedPiece does what the method piece does, but it also reads escapes and characters that
// are not ASCII. It is slower.
func (r *Reader) mixedPiece(at int) (piece uint64, next int) {
	var scratch [utf8.UTFMax]byte
	for taken := 0; ; {
		if r.text[at] == '"' {
			return piece | uint64(taken), at
		}
		char, end := scratch[:0], at+1
		if r.text[at] == '\\' {
			var c rune
			c, end = unescape(r.text, at)
			char = AppendRune(char, c)
		} else {
			for !utf8.RuneStart(r.text[end]) {
				end++
			}
			char = r.text[at:end]
		}
		for _, b := range char {
			if taken == pieceSize {
				return piece | notLast, at
			}
			piece |= uint64(b) << (56 - 8*taken)
			taken++
		}
		at = end
	}
}

// key represents one member while the members of an object are sorted. It has the index of the
// member, and one piece of the member's name. The piece is stored as two halves, high and low, so
// that a key takes 12 bytes and not 16. During the sort, the field next of the type member is not
// an index, but the position in the text where the next piece of the name starts.
type key struct {
	high, low uint32
	member    uint32 // the index of the member: see the type member
}

func (k key) piece() uint64 { return uint64(k.high)<<32 | uint64(k.low) }

// sort links the members of an object in the order of their names, and returns them in this
// order. It returns nil if two members have the same name and the Reader refuses that.
func (r *Reader) sort(o *Object) []key {
	keys := r.keysFor(o)
	for i, m := 0, uint32(o.first); i < o.Len; i++ {
		at := r.members.at(int(m))
		keys[i].member = m
		m, at.next = at.next, at.start
	}
	if keys = r.sortKeys(keys); len(keys) == 0 {
		return nil
	}
	for i := 1; i < len(keys); i++ {
		r.members.at(int(keys[i-1].member)).next = keys[i].member
	}
	*r.notes.at(o.note) = uint32(len(keys)) | disorder
	*r.notes.at(o.note + 1) = keys[0].member
	return keys
}

func (r *Reader) keysFor(o *Object) []key {
	if cap(r.keys) < o.Len {
		r.keys = make([]key, o.Len)
		r.keysUsed = 0
	}
	r.keysUsed = max(r.keysUsed, o.Len)
	return r.keys[:o.Len]
}

// sortKeys sorts the given members by their names, and returns them. It skips the start of each
// name, up to the position member.next: see the comment of the type named key. This start must be
// the same in all names. If several members have the same name, sortKeys keeps only the last one.
// If the Reader refuses such members, sortKeys returns nil.
func (r *Reader) sortKeys(keys []key) []key {
	for differ := false; !differ; {
		for i := range keys {
			m := r.members.at(int(keys[i].member))
			piece, next := r.piece(int(m.next))
			keys[i].high, keys[i].low, m.next = uint32(piece>>32), uint32(piece), uint32(next)
			differ = differ || piece != keys[0].piece() || isLast(piece)
		}
	}
	sortPieces(keys, 56)
	counting := keys[:0]
	for start := 0; start < len(keys); {
		piece, end := keys[start].piece(), start+1
		for end < len(keys) && keys[end].piece() == piece {
			end++
		}
		same := keys[start:end]
		start = end
		if len(same) > 1 {
			if isLast(piece) {
				same = r.lastOf(same)
			} else {
				same = r.sortKeys(same)
			}
			if len(same) == 0 {
				return nil
			}
		}
		counting = append(counting, same...)
	}
	return counting
}

// fewKeys is the largest number of keys that are sorted by insertion, which is faster for
// few keys.
const fewKeys = 32

// sortPieces sorts keys by their pieces. It begins with one byte of the pieces: the first if
// shift is 56, the second if it is 48, and so on. All bytes before this one must be equal in
// all pieces. This is a radix sort in place: it groups the keys by this byte, and then sorts
// each group by the bytes after it.
func sortPieces(keys []key, shift int) {
	if len(keys) <= fewKeys {
		for i := 1; i < len(keys); i++ {
			k, piece := keys[i], keys[i].piece()
			j := i
			for ; j > 0 && keys[j-1].piece() > piece; j-- {
				keys[j] = keys[j-1]
			}
			keys[j] = k
		}
		return
	}
	var next, end [256]int32
	for _, k := range keys {
		end[byte(k.piece()>>shift)]++
	}
	if end[byte(keys[0].piece()>>shift)] == int32(len(keys)) { // this byte is the same in all keys
		if shift > 0 {
			sortPieces(keys, shift-8)
		}
		return
	}
	sum := int32(0)
	for b, n := range end {
		next[b] = sum
		sum += n
		end[b] = sum
	}
	for b := range end {
		for next[b] < end[b] {
			k := keys[next[b]]
			for to := int(byte(k.piece() >> shift)); to != b; to = int(byte(k.piece() >> shift)) {
				k, keys[next[to]] = keys[next[to]], k
				next[to]++
			}
			keys[next[b]] = k
			next[b]++
		}
	}
	if shift == 0 {
		return
	}
	start := int32(0)
	for _, end := range end {
		if end-start > 1 {
			sortPieces(keys[start:end], shift-8)
		}
		start = end
	}
}

// lastOf returns the last of several members with the same name, or nil if the Reader refuses
// such members.
func (r *Reader) lastOf(keys []key) []key {
	slices.SortFunc(keys, func(a, b key) int { return cmp.Compare(a.member, b.member) })
	if !r.anyNames {
		r.refuse(int(r.members.at(int(keys[1].member)).start), "an object with two members of one name")
		return nil
	}
	return keys[len(keys)-1:]
}
