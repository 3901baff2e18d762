// Package jsonorder reads a JSON text so that a digest can write its values with
// the members of every object in order.
//
// The digest writes while the text is read and checked. While its output is short,
// the members of an object are put in order there. If it gets long, the text is read
// a second time, with the members of each object in the order of their names.
//
// The notes for the second reading take four bytes for each array, eight for each
// object with members, twelve for each member, and twelve more for each member of
// the one object that is being sorted. Even for the worst texts that is less than
// four times their length in total.
package jsonorder

import (
	"bytes"
	"unicode/utf8"
)

const (
	// MaxLevels is how deep arrays and objects may nest.
	MaxLevels = 128
	// MaxText is the longest text that is read.
	MaxText = 16 << 20
)

// Lenience is what a [Reader] accepts in addition to what it accepts by default. It is
// only for comparing with peers that accept the same, never for a request's arguments.
type Lenience uint8

const (
	// AnyNames accepts names that are not Unicode, and objects with two members of one
	// name; only the last of them is used.
	AnyNames Lenience = 1 << iota
	// Constants accepts NaN, Infinity and -Infinity as numbers.
	Constants
)

// Refusal says why a text is refused, and where. It never repeats the text.
type Refusal struct {
	Offset  int
	Problem string
}

// Reader reads a text once or twice. After [Reader.Begin], the caller reads the one
// value of the text, and reads it again if [Reader.Check] says so. [Reader.Next] tells
// which type a value has, and the method for that type reads it. If something is not
// JSON or not allowed, there is nothing more to read; Check tells why.
type Reader struct {
	scanner[[]byte]
	Stream
	anyNames bool
	level    int
	levels   int

	// notes hold how many elements or members each array or object has, in the order
	// in which they open. An object with members has a second note: the first of them in
	// the order of their names, if the text does not have them in this order.
	notes      list[uint32]
	note       int // the next note, in the second reading
	members    list[member]
	disordered int   // how many objects do not have their members in order
	keys       []key // the members of the object that is being sorted
	keysUsed   int

	// drafts hold where members are in Buf, while Buf still has all that was written.
	drafts [maxDrafts]draft
}

// draft is where a member is in Buf.
type draft struct{ start, end uint16 }

// maxDrafts is about how many members fit into a stream of one chunk: the shortest
// member takes five bytes.
const maxDrafts = chunk / 5

// disorder marks the note of an object whose members are not in order in the text.
const disorder = 1 << 31

// member is a member of an object. Members are kept while their object is being read,
// and longer if the text does not have them in order.
type member struct {
	start uint32 // position of its name in the text, after the quote
	note  uint32 // the note of the first array or object in its value
	next  uint32 // the next member of the object: in the order of the text, then by name
}

// Begin begins with a text, which must not change until the reader is released.
func (r *Reader) Begin(text []byte, accept Lenience) {
	r.text, r.pos, r.problem = text, 0, ""
	r.constants = accept&Constants != 0
	r.anyNames = accept&AnyNames != 0
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

// Check ends the first reading. It reports whether the value must be read again from
// the start, or why the text is refused.
func (r *Reader) Check() (again bool, refusal *Refusal) {
	if r.skipSpace(); r.pos < len(r.text) {
		r.fail("text after the value")
	}
	if r.problem != "" {
		return false, &Refusal{r.problemAt, r.problem}
	}
	again = r.Lost
	r.pos, r.level, r.note = 0, 0, 0
	r.settled(again)
	return again, nil
}

// Refused reports whether something was not JSON or not allowed.
func (r *Reader) Refused() bool { return r.problem != "" }

// Levels returns how deep arrays and objects nest, after the text was read.
func (r *Reader) Levels() int { return r.levels }

// Release forgets the text. It reports whether the reader is small enough to be
// kept for reuse.
func (r *Reader) Release() bool {
	r.text = nil
	clear(r.keys[:r.keysUsed]) // keys hold pieces of the text
	r.keysUsed = 0
	return r.Stream.release() && r.notes.small() && r.members.small() && cap(r.keys) <= maxKeys
}

// Next goes to the next value and returns its first byte, which tells what it is. If
// there is no value, it returns another byte.
func (r *Reader) Next() byte { return r.next() }

// Scalar reads a number, null, false or true as it is written. It returns nil if
// there is none.
func (r *Reader) Scalar() []byte {
	start := r.pos
	if !r.scalar() {
		return nil
	}
	return r.text[start:r.pos]
}

// Peek returns what Scalar would read.
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

// String reads a string as it is written between its quotes, and reports whether
// it has escapes.
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
	Len  int // 0 until the array has been read once
	read int
	note int
}

// Array begins an array; [Reader.Element] goes to its elements.
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

// open begins an array or object.
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

// Element goes to the next element and returns true, or goes to the end of the array and
// returns false.
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
	Len        int // 0 until the object has been read once
	read       int
	note       int
	first      int  // the first member
	last       int  // the member that was read last
	before     name // the name of that member
	inOrder    bool
	disordered int // Reader.disordered before this object

	// In the second reading, if members are read in the order of their names: the next
	// member, and the furthest position and note that were reached.
	next, pos, endNote int
}

// Object begins an object; [Reader.Member] goes to its members.
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
		o.Len = int(note &^ disorder)
		o.inOrder = note&disorder == 0
		o.next = int(*r.notes.at(r.note))
		r.note++
	}
}

// Member reads the name of the next member, as it is written between its quotes, and
// goes to its value. After the last member it goes to the end of the object, and ok is
// false. What is written to the stream until the next call is this member, and must not
// depend on other members.
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

// name is where a member's name is in the text, between its quotes.
type name struct {
	start, end int
	form       form
}

func (r *Reader) addMember(o *Object, this name) {
	if o.read == 0 {
		r.notes.add(0)
	}
	m := r.members.add(member{start: uint32(this.start), note: uint32(r.notes.len)})
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

// endObject puts the object's members in order, in Buf and in the notes for the second
// reading.
func (r *Reader) endObject(o *Object) {
	o.Len = o.read
	if o.inOrder {
		*r.notes.at(o.note) = uint32(o.Len)
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

// less reports whether a comes before b.
func (r *Reader) less(a, b name) bool {
	if a.form == literal && b.form == literal {
		if v, w := r.text[a.start], r.text[b.start]; v != w && v != '"' && w != '"' {
			return v < w // most names differ here
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

// Unescape returns the character of the escape at the start of raw, a code point or
// half a surrogate pair, and the rest of raw.
func Unescape(raw []byte) (r rune, rest []byte) {
	r, end := unescape(raw, 0)
	return r, raw[end:]
}
