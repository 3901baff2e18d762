package strictjson

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"sync"
	"unicode/utf8"
)

// nextValue moves to the next value or name, and returns its first byte.
func (r *reader) nextValue() byte {
	for {
		switch c := r.next(); c {
		case ',', ':':
			r.pos++
		default:
			return c
		}
	}
}

// literal reads a number, null, false or true, and returns it as it is written.
func (r *reader) literal() []byte {
	start := r.pos
	r.scalar()
	return r.text[start:r.pos]
}

// quoted reads a string. It returns the string as it is written between its quotes, and whether it has escapes.
func (r *reader) quoted() (raw []byte, hasEscapes bool) {
	start := r.pos + 1
	f := r.str()
	return r.text[start : r.pos-1], f != literal
}

// container is an array or object that is read for the second time. Read its values one after the other, each member
// after a call of name, and then call close.
type container struct {
	len     int      // how many values it has
	bits    uint32   // only for an object
	members []member // the members of an object in the order of their names; nil if the text has them in this order
	alike   bool     // whether two names of an object are alike, so that its members stay in the order of the text

	pos, note int // where it ends in the text, and in the notes; only if it is a member's value, or if members is not nil
}

// open moves into the array or object that comes next.
func (r *reader) open(isMember bool) (c container) {
	r.pos++
	if c := r.next(); c == ']' || c == '}' {
		return container{pos: r.pos + 1, note: r.note}
	}
	first := *r.notes.at(r.note)
	c.len, c.bits = int(first&noBits), first&^noBits
	r.note++
	if isMember {
		c.pos, c.note = int(*r.notes.at(r.note)), int(*r.notes.at(r.note + 1))
		r.note += 2
	}
	return c
}

// openObject does what open does, and finds out in which order to read the members. The text is refused if two members
// have the same name.
func (r *reader) openObject(isMember bool) container {
	c := r.open(isMember)
	if c.bits == 0 {
		return c
	}
	pos, note := r.pos, r.note
	members := r.membersOf(&c)
	c.pos, c.note = r.pos, r.note
	c.alike = c.bits&letters != 0 && r.sameLetters(members) ||
		c.bits&numbers != 0 && (r.sameNumber(members, 64) || r.sameNumber(members, 32))
	if c.bits&disorder != 0 {
		r.sort(members)
	}
	if c.bits&disorder != 0 && !c.alike {
		c.members = members
	} else {
		r.done(members)
	}
	r.pos, r.note = pos, note
	return c
}

// name moves to member i of an object, and reads its name as quoted does.
func (r *reader) name(c *container, i int) (raw []byte, hasEscapes bool) {
	if len(c.members) > 0 {
		r.pos, r.note = int(c.members[i].start)-1, int(c.members[i].note)
	}
	r.nextValue()
	return r.quoted()
}

// close moves past the end of an array or object.
func (r *reader) close(c *container) {
	if len(c.members) > 0 {
		r.pos, r.note = c.pos, c.note
		r.done(c.members)
	}
	r.next()
	r.pos++
}

// maxRun is the maximum number of bytes of a string that are written at once. A writer may turn each of them into six
// bytes.
const maxRun = 1 << 10

// cutRun returns the beginning of a string: one character in UTF-8 if the string begins with an escape, otherwise
// everything before the next escape, but not much more than maxRun bytes.
func (r *reader) cutRun(raw []byte, hasEscapes bool) (run, rest []byte) {
	if hasEscapes && raw[0] == '\\' {
		c, end, _ := unescape(raw, 0)
		return AppendRune(r.room[:0], c), raw[end:]
	}
	end := len(raw)
	if end > maxRun {
		for end = maxRun; !utf8.RuneStart(raw[end]); {
			end--
		}
	}
	if hasEscapes {
		if i := bytes.IndexByte(raw[:end], '\\'); i >= 0 {
			end = i
		}
	}
	return raw[:end], raw[end:]
}

// chunk is how many bytes of a stream are hashed at once.
const chunk = 8 << 10

// stream takes the bytes whose SHA-256 is the digest. It holds only about one chunk of them at a time.
type stream struct {
	buf  []byte    // append to it, and call settle after each value
	hash hash.Hash // the hash of what buf held before it was emptied; nil if it was never emptied
	most int       // the largest number of bytes that buf has held
}

// settle hashes the bytes in buf if buf holds at least one chunk.
func (s *stream) settle() {
	if len(s.buf) >= chunk {
		s.flush()
	}
}

// write appends p to the stream. A long p is hashed without being copied.
func (s *stream) write(p []byte) {
	if len(p) < chunk {
		s.buf = append(s.buf, p...)
		s.settle()
		return
	}
	s.flush()
	s.hash.Write(p)
}

func (s *stream) flush() {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(s.buf)
	s.most = max(s.most, len(s.buf))
	s.buf = s.buf[:0]
}

// sum returns the SHA-256 of the whole stream.
func (s *stream) sum() (sum [Size]byte) {
	if s.hash == nil {
		return sha256.Sum256(s.buf)
	}
	s.flush()
	s.buf = s.hash.Sum(s.buf)
	return [Size]byte(s.buf)
}

// What a reader keeps for reuse, at most.
const (
	maxBuffer  = 2 * chunk
	maxBlocks  = 2
	maxMembers = 1 << 10
)

var readers = sync.Pool{New: func() any { return &reader{stream: stream{buf: make([]byte, 0, maxBuffer)}} }}

// release deletes everything that the reader holds of the text, and keeps the reader for reuse if it is small.
func (r *reader) release() {
	if r.forget(); cap(r.buf) <= maxBuffer && len(r.notes.blocks) <= maxBlocks {
		readers.Put(r)
	}
}

func (r *reader) forget() {
	r.text, r.hash = nil, nil // a hash holds parts of the text
	clear(r.members[:r.used])
	clear(r.buf[:max(r.most, len(r.buf))])
	r.used, r.buf, r.most = 0, r.buf[:0], 0
}
