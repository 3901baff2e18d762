package argdigest

import "encoding/binary"

// The tags of the stream.
const (
	tagNull   = 'z'
	tagFalse  = 'f'
	tagTrue   = 't'
	tagNumber = 'n'
	tagString = 's'
	tagArray  = 'a'
	tagObject = 'o'
)

// emptyObject is the stream of {}.
var emptyObject = []byte{tagObject, 0, 0, 0, 0}

// encoder reads a text once and writes its stream. Objects whose members came
// in order are then finished; the others are put in order by a second pass
// over the stream.
type encoder struct {
	text []byte
	pos  int
	out  []byte

	objects  []object // in the order in which they open
	pending  []member // of the objects still open
	members  []member // of the objects that need sorting
	unsorted bool     // some object needs sorting
	sorted   []byte   // what the second pass writes

	alwaysSort bool // for tests: sort objects that are in order too
}

func (e *encoder) encode(text []byte) ([]byte, error) {
	e.text, e.pos = text, 0
	e.out, e.sorted = e.out[:0], e.sorted[:0]
	e.objects, e.pending, e.members = e.objects[:0], e.pending[:0], e.members[:0]
	e.unsorted = false
	if err := e.value(0); err != nil {
		return nil, err
	}
	e.skipSpace()
	if e.pos != len(e.text) {
		return nil, e.fail("text after the value")
	}
	if len(e.out) == 1 && e.out[0] == tagNull {
		return emptyObject, nil
	}
	if e.unsorted {
		return e.reorder(), nil
	}
	return e.out, nil
}

func (e *encoder) fail(problem string) error {
	return &Error{e.pos, problem}
}

func (e *encoder) skipSpace() {
	for e.pos < len(e.text) {
		switch e.text[e.pos] {
		case ' ', '\t', '\n', '\r':
			e.pos++
		default:
			return
		}
	}
}

// peek is the next byte, or 0, which begins nothing in JSON, at the end.
func (e *encoder) peek() byte {
	if e.pos < len(e.text) {
		return e.text[e.pos]
	}
	return 0
}

// value reads one value and the space before it. It is inside level
// containers already.
func (e *encoder) value(level int) error {
	e.skipSpace()
	switch c := e.peek(); {
	case c == '"':
		e.out = append(e.out, tagString)
		return e.string()
	case c == '-' || '0' <= c && c <= '9':
		return e.number()
	case c == '{':
		return e.object(level)
	case c == '[':
		return e.array(level)
	case c == 't':
		return e.literal("true", tagTrue)
	case c == 'f':
		return e.literal("false", tagFalse)
	case c == 'n':
		return e.literal("null", tagNull)
	}
	return e.fail("no value")
}

func (e *encoder) literal(word string, tag byte) error {
	if end := e.pos + len(word); end > len(e.text) || string(e.text[e.pos:end]) != word {
		return e.fail("no value")
	}
	e.pos += len(word)
	e.out = append(e.out, tag)
	return nil
}

func (e *encoder) array(level int) error {
	if level == MaxLevels {
		return e.fail("too many levels")
	}
	e.pos++
	e.out = append(e.out, tagArray)
	frame := e.openFrame()
	count := 0
	e.skipSpace()
	if e.peek() == ']' {
		e.pos++
		return nil
	}
	for {
		if err := e.value(level + 1); err != nil {
			return err
		}
		count++
		e.skipSpace()
		switch e.peek() {
		case ',':
			e.pos++
		case ']':
			e.pos++
			e.closeFrame(frame, count)
			return nil
		default:
			return e.fail("an array goes on without a comma")
		}
	}
}

// openFrame leaves room for a count or a length, to be filled by closeFrame.
func (e *encoder) openFrame() int {
	e.out = append(e.out, 0, 0, 0, 0)
	return len(e.out) - 4
}

func (e *encoder) closeFrame(at, n int) {
	binary.BigEndian.PutUint32(e.out[at:], uint32(n))
}
