package strictjson

import (
	"bytes"
	"unicode/utf8"
)

// reader reads a whole text twice. Its method begin reads it for the first time, and refuses what is not JSON. The
// methods in walk.go are for the second reading.
type reader struct {
	scanner[[]byte]
	stream
	levels int // how deep arrays and objects nest

	// notes is about each array and object that is not empty, in the order in which they begin in the text. The first
	// note says how many values it has. If it is the value of a member, two more notes say where it ends in the text,
	// and which note comes after those about everything inside it, because the members may have to be sorted.
	notes notes
	note  int // in the second reading, the index of the next note

	members [maxMembers]member // room for the members of objects that are being read; a larger object gets its own room
	used    int

	room [utf8.UTFMax]byte // for one character
}

// The bits of an object's first note that are not part of the number of members.
const (
	disorder = 1 << 31 // some name does not sort after the name before it
	letters  = 1 << 30 // two names may differ only in upper and lower case
	numbers  = 1 << 29 // two names may be the same number
	noBits   = numbers - 1
)

// name says where a member's name is in the text. The quotes around the name are not included.
type name struct {
	start, end int
	form       form
}

// begin reads a text for the first time. The text must not change until [reader.release].
func (r *reader) begin(text []byte) {
	r.scanner = scanner[[]byte]{text: text}
	r.levels, r.notes.len, r.note = 0, 0, 0
	switch {
	case len(text) > MaxText:
		r.refuse(MaxText, "the text is too long")
	case !utf8.Valid(text):
		r.fail("text that is not UTF-8")
	case r.value(0, false):
		if r.skipSpace(); r.pos < len(text) {
			r.fail("text after the value")
		}
	}
	if r.problem == "" {
		r.pos = 0
	}
}

// refusal returns why the text is refused, or nil if it is not.
func (r *reader) refusal() error {
	if r.problem == "" {
		return nil
	}
	return &Error{r.problemAt, r.problem}
}

// value reads any value. The parameter level is how many arrays and objects are around it, and isMember says whether
// it is the value of a member.
func (r *reader) value(level int, isMember bool) bool {
	open := r.next()
	if open != '[' && open != '{' {
		return r.scalar()
	}
	if level == MaxLevels {
		return r.fail("too many levels")
	}
	level++
	r.levels = max(r.levels, level)
	end := open + 2 // in ASCII, ] is two after [, and } is two after {
	r.pos++
	if r.next() == end {
		r.pos++
		return true
	}
	note := r.notes.add(0)
	if isMember {
		r.notes.add(0)
		r.notes.add(0)
	}
	var names names
	for n := uint32(1); ; n++ {
		if open == '{' && !r.memberName(&names) || !r.value(level, open == '{') {
			return false
		}
		switch r.next() {
		case ',':
			r.pos++
		case end:
			r.pos++
			*r.notes.at(note) = n | names.bits()
			if isMember {
				*r.notes.at(note + 1), *r.notes.at(note + 2) = uint32(r.pos), uint32(r.notes.len)
			}
			return true
		default:
			return r.fail("no comma between two values")
		}
	}
}

// names is what is known about the names of an object while it is read for the first time.
type names struct {
	last     name
	disorder bool // some name does not sort after the name before it
	letters  bool // a name may differ from another one only in upper and lower case
	numbers  int  // how many names may be numbers
}

func (n *names) bits() (bits uint32) {
	if n.disorder {
		bits |= disorder
	}
	if n.letters {
		bits |= letters
	}
	if n.numbers > 1 {
		bits |= numbers
	}
	return bits
}

// memberName reads the name of a member and moves past its colon.
func (r *reader) memberName(n *names) bool {
	if r.next() != '"' {
		return r.fail("no member name")
	}
	this := name{start: r.pos + 1}
	if this.form = r.str(); this.form == broken {
		return false
	}
	this.end = r.pos - 1
	if this.form == lone {
		return r.refuse(this.start, "a member name with half a surrogate pair")
	}
	n.disorder = n.disorder || n.last.form != broken && !r.less(n.last, this)
	n.last = this
	r.hint(n, this)
	return r.colon()
}

// less reports whether the first name comes before the second.
func (r *reader) less(a, b name) bool {
	if a.form == literal && b.form == literal {
		if v, w := r.text[a.start], r.text[b.start]; v != w && v != '"' && w != '"' {
			return v < w // most names differ in the first byte
		}
		return bytes.Compare(r.text[a.start:a.end], r.text[b.start:b.end]) < 0
	}
	return r.compare(a.start, b.start) < 0
}
