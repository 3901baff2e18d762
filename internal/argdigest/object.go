package argdigest

import (
	"bytes"
	"slices"
)

// object is where an object stands in the stream.
type object struct {
	start, end  uint32 // from its tag to behind its last member
	first, last uint32 // its members; empty when they came in order
	next        uint32 // the first object that opens behind this one's end
}

// member is where a member stands in the stream.
type member struct {
	start   uint32 // its name's length
	nameEnd uint32
	end     uint32
	inner   uint32 // the first object that opens inside it
}

func (e *encoder) name(m member) []byte { return e.out[m.start+4 : m.nameEnd] }

func (e *encoder) object(level int) error {
	if level == MaxLevels {
		return e.fail("too many levels")
	}
	e.pos++
	start := len(e.out)
	e.out = append(e.out, tagObject)
	frame := e.openFrame()
	e.skipSpace()
	if e.peek() == '}' {
		e.pos++
		return nil
	}
	id := len(e.objects)
	e.objects = append(e.objects, object{start: uint32(start)})
	base := len(e.pending)
	inOrder := !e.alwaysSort
	for {
		e.skipSpace()
		if e.peek() != '"' {
			return e.fail("no member name")
		}
		m := member{start: uint32(len(e.out)), inner: uint32(len(e.objects))}
		if err := e.string(); err != nil {
			return err
		}
		m.nameEnd = uint32(len(e.out))
		if n := len(e.pending); n > base && bytes.Compare(e.name(e.pending[n-1]), e.name(m)) >= 0 {
			inOrder = false
		}
		e.skipSpace()
		if e.peek() != ':' {
			return e.fail("a member name without a colon")
		}
		e.pos++
		if err := e.value(level + 1); err != nil {
			return err
		}
		m.end = uint32(len(e.out))
		e.pending = append(e.pending, m)
		e.skipSpace()
		switch e.peek() {
		case ',':
			e.pos++
			continue
		case '}':
			e.pos++
		default:
			return e.fail("an object goes on without a comma")
		}
		break
	}
	e.closeFrame(frame, len(e.pending)-base)
	o := &e.objects[id]
	o.end, o.next = uint32(len(e.out)), uint32(len(e.objects))
	if !inOrder {
		o.first = uint32(len(e.members))
		e.members = append(e.members, e.pending[base:]...)
		o.last = uint32(len(e.members))
		e.unsorted = true
		if err := e.sort(e.members[o.first:o.last]); err != nil {
			return err
		}
	}
	e.pending = e.pending[:base]
	return nil
}

func (e *encoder) sort(members []member) error {
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(e.name(a), e.name(b)) })
	for i := 1; i < len(members); i++ {
		if bytes.Equal(e.name(members[i-1]), e.name(members[i])) {
			return e.fail("an object with two members of one name")
		}
	}
	return nil
}

// reorder copies the stream with every object's members in order.
func (e *encoder) reorder() []byte {
	e.sorted = slices.Grow(e.sorted, len(e.out))
	e.copyOrdered(0, uint32(len(e.out)), 0)
	return e.sorted
}

// copyOrdered copies the stream from start to end, in which objects[id] is the
// first object to open. Each byte is copied once.
func (e *encoder) copyOrdered(start, end, id uint32) {
	for int(id) < len(e.objects) && e.objects[id].start < end {
		o := e.objects[id]
		if o.first == o.last {
			id++ // in order: what needs sorting inside it comes next
			continue
		}
		e.sorted = append(e.sorted, e.out[start:o.start+uint32(len(emptyObject))]...)
		for _, m := range e.members[o.first:o.last] {
			e.copyOrdered(m.start, m.end, m.inner)
		}
		start, id = o.end, o.next
	}
	e.sorted = append(e.sorted, e.out[start:end]...)
}
