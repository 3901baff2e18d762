// Package jsonorder reads a JSON text for a caller that computes a digest of the text. The caller
// writes the values of the text to a [Stream]. The digest is the SHA-256 of the stream. In the
// stream, the members of every object are in the order of their names.
//
// A short text is read only once: the caller reads the values, and writes them to the stream at the
// same time. At the end of each object, this package sorts the object's members inside the stream.
// If the stream gets too long for this, the stream is discarded, and the caller must read the text
// a second time. In this second reading, the caller gets the members of each object in the order of
// their names.
//
// For the second reading, the package keeps notes. They take four bytes for each array,
// eight for each object with members, twelve for each member, and twelve more for each
// member of the one object that is being sorted. In total, the notes take less than four
// times the length of the text, even for the worst texts.
package jsonorder

import (
	"bytes"
	"unicode/utf8"
)

const (
	// MaxLevels is how deep arrays and objects may nest.
	MaxLevels = 128
	// MaxText is the greatest length of a text, in bytes.
	MaxText = 16 << 20
)

// Lenience is a set of exceptions: things that a [Reader] accepts if they are in the set, and
// refuses otherwise. Use AnyNames and Constants only to compare with peers that accept
// the same things, never for a request's arguments.
type Lenience uint8

const (
	// AnyNames accepts names with half a surrogate pair, and objects in which several
	// members have the same name. Of these members, only the last one is used.
	AnyNames Lenience = 1 << iota
	// Constants accepts NaN, Infinity and -Infinity as numbers.
	Constants
	// AlikeNames accepts objects with alike names: see [Object.Alike].
	AlikeNames
)

// Refusal says why a text is refused, and where. It never repeats the text.
type Refusal struct {
	Offset  int
	Problem string
}

// Reader reads a JSON text once or twice. After [Reader.Begin], the caller reads the one
// value of the text, calls [Reader.Check], and reads the value again if Check says so.
// [Reader.Next] tells which type a value has, and the method for that type reads it. If the
// text has something that is not JSON or not allowed, the Reader reads nothing more, and
// Check returns the problem.
type Reader struct {
	scanner[[]byte]
	Stream
	anyNames   bool
	alikeNames bool
	level      int
	levels     int

	// notes has a note for each array and object, in the order in which they begin in the
	// text. The note says how many elements or members the array or object has. An object
	// with members has a second note. If the members are not sorted in the text, this second
	// note is the index of the member whose name sorts first.
	notes      list[uint32]
	note       int // in the second reading, the index of the next note
	members    list[member]
	disordered int   // how many objects so far have members that are not in order in the text
	keys       []key // the members of the object that is being sorted
	keysUsed   int

	// drafts holds the place of each member in Buf. It is used while Buf still has the whole
	// stream.
	drafts [maxDrafts]draft
}

// draft is the place of a member in Buf.
type draft struct{ start, end uint16 }

// maxDrafts is the largest number of members in a stream of one chunk, because the shortest
// member takes five bytes.
const maxDrafts = chunk / 5

// Two bits of an object's note. The other bits of the note are the number of members.
const (
	disorder = 1 << 31 // set if the members are not in order in the text
	alike    = 1 << 30 // set if Object.Alike is true
)

// member is a member of an object. Members are kept while their object is being read,
// and longer if the text does not have them in order.
type member struct {
	start uint32 // the position of the member's name in the text, after the opening quote
	note  uint32 // the index of the note for the first array or object in the member's value
	next  uint32 // the index of the next member: in the order of the text, or, after sorting, in the order of the names
}

// Begin prepares r to read a text. The text must not change until [Reader.Release].
func (r *Reader) Begin(text []byte, accept Lenience) {
	r.text, r.pos, r.problem = text, 0, ""
	r.constants = accept&Constants != 0
	r.anyNames, r.alikeNames = accept&AnyNames != 0, accept&AlikeNames != 0
	r.level, r.levels, r.disordered = 0, 0, 0
	r.notes.len, r.members.len = 0, 0
	r.begin()
	if len(text) > MaxText {
		r.refuse(MaxText, "the text is too long")
	} else if !utf8.Valid(text) {
		r.refuse(firstInvalid(text), "text that is not UTF-8")
	}
}

func firstInvalid(text []byte) (at int) {
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
}

// Check ends the first reading. If mustReread is true, the caller must read the value a second
// time, from the start. If the text is refused, the second result says why; otherwise it is nil.
func (r *Reader) Check() (mustReread bool, refusal *Refusal) {
	if r.skipSpace(); r.pos < len(r.text) {
		r.fail("text after the value")
	}
	if r.problem != "" {
		return false, &Refusal{r.problemAt, r.problem}
	}
	mustReread = r.Lost
	r.pos, r.level, r.note = 0, 0, 0
	r.endFirst(mustReread)
	return mustReread, nil
}

// Refused reports whether r has found something in the text that is not JSON or is not
// allowed.
func (r *Reader) Refused() bool { return r.problem != "" }

// Levels returns how deep arrays and objects nest in the text. Call it after reading.
func (r *Reader) Levels() int { return r.levels }

// Release deletes everything that the reader holds of the text. It reports whether the
// reader is small enough to be kept for reuse.
func (r *Reader) Release() bool {
	r.text = nil
	clear(r.keys[:r.keysUsed]) // clear keys too, because they hold pieces of the text
	r.keysUsed = 0
	return r.Stream.release() && r.notes.small() && r.members.small() && cap(r.keys) <= maxKeys
}

// Next moves to the next value and returns its first byte, which tells the value's type. If
// there is no value, it returns a byte with which no value begins.
func (r *Reader) Next() byte { return r.next() }

// Scalar reads a number, null, false or true, and returns it as it is written. It returns
// nil if none of these comes next.
func (r *Reader) Scalar() []byte {
	start := r.pos
	if !r.scalar() {
		return nil
	}
	return r.text[start:r.pos]
}

// Peek returns what Scalar would return, without moving past it.
func (r *Reader) Peek() []byte {
	start := r.pos
	literal := r.Scalar()
	if len(literal) > 0 {
		r.pos = start
	}
	return literal
}

// Empty reports whether the string, array or object that comes next is empty.
func (r *Reader) Empty() bool {
	switch rest := r.text[r.pos:]; rest[0] {
	case '"':
		return bytes.HasPrefix(rest, []byte(`""`))
	case '[', '{':
		rest = bytes.TrimLeft(rest[1:], " \t\r\n")
		return len(rest) > 0 && (rest[0] == ']' || rest[0] == '}')
	}
	return false
}

// String reads a string. It returns the string as it is written between its quotes, and
// whether it has escapes.
func (r *Reader) String() (raw []byte, hasEscapes bool) {
	start := r.pos + 1
	f := r.str()
	if f == broken {
		return nil, false
	}
	return r.text[start : r.pos-1], f != literal
}

// Array is an array that is being read.
type Array struct {
	Len  int // the number of elements; 0 until the array has been read once
	read int
	note int
}

// Array begins to read an array. Call [Reader.Element] to move to each element.
func (r *Reader) Array(a *Array) {
	if !r.open() {
		return
	}
	if !r.again {
		a.note = r.notes.add(0)
		return
	}
	a.Len = int(*r.notes.at(r.note))
	r.note++
}

// open moves past the bracket that opens an array or object. It returns false if there are
// already too many levels.
func (r *Reader) open() bool {
	if r.level == MaxLevels {
		return r.fail("too many levels")
	}
	r.pos++
	r.level++
	if r.level > r.levels {
		r.levels = r.level
	}
	return true
}

// Element moves to the next element and returns true. After the last element it moves past
// the end of the array and returns false.
func (r *Reader) Element(a *Array) bool {
	switch c := r.next(); {
	case c == ']':
		r.pos++
		r.level--
		if !r.again {
			a.Len = a.read
			*r.notes.at(a.note) = uint32(a.Len)
		}
		return false
	case c == ',' && a.read > 0:
		r.pos++
	case a.read > 0:
		return r.fail("an array goes on without a comma")
	}
	if r.problem != "" {
		return false
	}
	a.read++
	return true
}

// Object is an object that is being read.
type Object struct {
	Len int // the number of members; 0 until the object has been read once
	// Alike is true if two names are alike: they differ only in upper and lower case, or are
	// the same number, such as 1 and 1.0 (docs/token.md has the exact rule). Go reads such
	// members into the same field of a struct, or the same element of a map, and the last one
	// wins. So the members are not sorted, but stay in the order of the text. Alike is false
	// until the object has been read once.
	Alike      bool
	read       int
	note       int
	first      int  // the index of the first member
	last       int  // the index of the member that was read last
	before     name // the name of the member that was read last
	inOrder    bool
	hints      hints
	disordered int // the value of Reader.disordered when this object began

	// In the second reading, members that are not sorted in the text are read in the order
	// of their names. The fields below are for that.
	next    int // the index of the next member, in the order of the names
	pos     int // the furthest position that was reached in the text
	endNote int // the highest index in Reader.notes that was reached
}

// Object begins to read an object. Call [Reader.Member] to move to each member.
func (r *Reader) Object(o *Object) {
	o.inOrder = true
	if !r.open() {
		return
	}
	if !r.again {
		o.note, o.first, o.disordered = r.notes.add(0), r.members.len, r.disordered
		return
	}
	note := *r.notes.at(r.note)
	r.note++
	if note > 0 {
		o.Len = int(note &^ (disorder | alike))
		o.inOrder, o.Alike = note&disorder == 0, note&alike != 0
		o.next = int(*r.notes.at(r.note))
		r.note++
	}
}

// Member reads the name of the next member, as it is written between its quotes, and moves
// to its value. After the last member it moves past the end of the object, and ok is false.
// Everything that the caller writes to the stream before it calls Member again belongs to
// this member, and must not depend on other members.
func (r *Reader) Member(o *Object) (raw []byte, hasEscapes, ok bool) {
	if r.again && !o.inOrder {
		o.pos, o.endNote = max(o.pos, r.pos), max(o.endNote, r.note)
		if o.read < o.Len {
			m := r.members.at(o.next)
			r.pos, r.note, o.next = int(m.start)-1, int(m.note), int(m.next)
		} else {
			r.pos, r.note = o.pos, o.endNote
		}
	}
	c := r.next()
	switch {
	case c == '}':
		r.pos++
		r.level--
		if !r.again {
			r.endObject(o)
		}
		return nil, false, false
	case c == ',' && o.read > 0:
		r.pos++
		c = r.next()
	case o.read > 0 && (o.inOrder || !r.again):
		return nil, false, r.fail("an object goes on without a comma")
	}
	if c != '"' {
		return nil, false, r.fail("no member name")
	}
	this := name{start: r.pos + 1}
	if this.form = r.str(); this.form == broken {
		return nil, false, false
	}
	this.end = r.pos - 1
	if this.form == lone && !r.anyNames {
		r.pos = this.start
		return nil, false, r.fail("a member name with half a surrogate pair")
	}
	if r.next() != ':' {
		return nil, false, r.fail("a member name without a colon")
	}
	r.pos++
	if !r.again {
		r.addMember(o, this)
	}
	o.read++
	return r.text[this.start:this.end], this.form != literal, true
}

// name says where a member's name is in the text. The quotes around the name are not included.
type name struct {
	start, end int
	form       form
}

func (r *Reader) addMember(o *Object, this name) {
	if o.read == 0 {
		r.notes.add(0)
	}
	m := r.members.add(member{start: uint32(this.start), note: uint32(r.notes.len)})
	r.hint(&o.hints, this)
	if o.read > 0 {
		r.members.at(o.last).next = uint32(m)
		o.inOrder = o.inOrder && r.less(o.before, this)
	}
	if !r.Lost {
		if m >= maxDrafts || len(r.Buf) >= chunk {
			r.lose()
		} else {
			at := uint16(len(r.Buf))
			if o.read > 0 {
				r.drafts[o.last].end = at
			}
			r.drafts[m].start = at
		}
	}
	o.last, o.before = m, this
}

// endObject sorts the object's members by name, in Buf and in the notes for the second
// reading. If names are alike, the members stay as they are.
func (r *Reader) endObject(o *Object) {
	o.Len = o.read
	note := uint32(o.Len)
	if !r.anyNames && r.hasAlike(o) {
		if !o.inOrder && len(r.sort(o)) == 0 {
			return // two names are equal, so r.sort has refused the text
		}
		if !r.alikeNames {
			r.fail("an object with two names that differ only in upper and lower case, or that are the same number")
			return
		}
		o.Alike, o.inOrder = true, true
		note |= alike
	}
	if o.inOrder {
		*r.notes.at(o.note) = note
		if r.disordered == o.disordered {
			r.members.len = o.first // this object's members are no longer needed
		}
		return
	}
	r.disordered++
	keys := r.sort(o)
	if len(keys) == 0 || r.Lost {
		return
	}
	if len(r.Buf) >= chunk {
		r.lose()
		return
	}
	o.Len = len(keys)
	r.drafts[o.last].end = uint16(len(r.Buf))
	sorted := len(r.Buf)
	for _, k := range keys {
		d := r.drafts[k.member]
		r.Buf = append(r.Buf, r.Buf[d.start:d.end]...)
	}
	r.most = max(r.most, len(r.Buf))
	start := int(r.drafts[o.first].start)
	r.Buf = r.Buf[:start+copy(r.Buf[start:], r.Buf[sorted:])]
}

// less reports whether the first name comes before the second.
func (r *Reader) less(a, b name) bool {
	if a.form == literal && b.form == literal {
		if v, w := r.text[a.start], r.text[b.start]; v != w && v != '"' && w != '"' {
			return v < w // most names differ in the first byte
		}
		return bytes.Compare(r.text[a.start:a.end], r.text[b.start:b.end]) < 0
	}
	atA, atB := a.start, b.start
	for {
		var v, w uint64
		v, atA = r.piece(atA)
		w, atB = r.piece(atB)
		if v != w || isLast(v) {
			return v < w
		}
	}
}

// Unescape reads the escape at the start of a string. It returns the character that the
// escape stands for, and the rest of the string. The character is a code point or half a
// surrogate pair.
func Unescape(raw []byte) (r rune, rest []byte) {
	r, end := unescape(raw, 0)
	return r, raw[end:]
}
