package jsonorder

import (
	"crypto/sha256"
	"hash"
)

const (
	// chunk is how many bytes of a stream are hashed at once. In a stream, the members of each
	// object must be in the order of their names. If the stream is shorter than one chunk, the
	// members are sorted in the buffer. For a longer stream, the text is read twice: the first
	// reading finds the order of the names, and the second reads the members in that order.
	chunk = 8 << 10
	// maxStream is the size of the largest buffer that is kept for reuse, in bytes.
	maxStream = 2 * chunk
)

// Stream takes the bytes whose SHA-256 is the digest. It holds only about one chunk of them
// at a time.
type Stream struct {
	// Buf is the buffer to which the caller appends the bytes. Call [Stream.Settle] after
	// each value.
	Buf []byte
	// Lost is true if the first reading has found that the stream does not fit in one chunk.
	// Then the text must be read a second time. For the rest of the first reading, the caller
	// need not write anything, because what it writes is discarded.
	Lost bool
	// Whole, if true, makes Buf keep the whole stream. It is for tests.
	Whole bool

	again bool      // true if the text is being read for the second time
	hash  hash.Hash // the hash of what Buf held before it was emptied; nil if it was never emptied
	most  int       // the largest number of bytes that Buf has held
}

func (s *Stream) begin() {
	if s.Buf == nil {
		s.Buf = make([]byte, 0, maxStream)
	}
	s.Buf, s.Lost, s.again = s.Buf[:0], false, false
}

// endFirst ends the first reading of the text. If mustReread is true, a second reading follows.
func (s *Stream) endFirst(mustReread bool) {
	if mustReread {
		s.most = max(s.most, len(s.Buf))
		s.Buf, s.Lost, s.again = s.Buf[:0], false, true
	}
}

// Drafting reports whether this is the first reading and Buf still has the whole stream.
func (s *Stream) Drafting() bool { return !s.again && !s.Lost }

// Settle empties Buf if Buf holds at least one chunk. In the second reading, it hashes the bytes.
// In the first reading, it discards them: the stream is now too long to be sorted in Buf, so the
// text must be read again.
func (s *Stream) Settle() {
	if len(s.Buf) >= chunk {
		s.flush()
	}
}

// Write appends p to the stream. A long p is hashed without being copied.
func (s *Stream) Write(p []byte) {
	if len(p) < chunk || s.Whole && s.again {
		s.Buf = append(s.Buf, p...)
		s.Settle()
		return
	}
	s.flush()
	if s.again {
		s.hash.Write(p)
	}
}

func (s *Stream) flush() {
	if !s.again {
		s.lose()
		return
	}
	if s.Whole {
		return
	}
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.hash.Write(s.Buf)
	s.most = max(s.most, len(s.Buf))
	s.Buf = s.Buf[:0]
}

// lose discards the stream so far, because the text will be read again.
func (s *Stream) lose() {
	s.Lost = true
	s.most = max(s.most, len(s.Buf))
	s.Buf = s.Buf[:0]
}

// Sum sets sum to the SHA-256 of the whole stream.
func (s *Stream) Sum(sum *[sha256.Size]byte) {
	if s.hash == nil {
		*sum = sha256.Sum256(s.Buf)
		return
	}
	s.flush()
	s.Buf = s.hash.Sum(s.Buf)
	copy(sum[:], s.Buf)
}

// release empties the stream. It reports whether the buffer is small enough to be kept for
// reuse.
func (s *Stream) release() bool {
	s.hash = nil // drop the hash, because it holds parts of the text
	clear(s.Buf[:max(s.most, len(s.Buf))])
	s.Buf, s.most, s.Whole = s.Buf[:0], 0, false
	return cap(s.Buf) <= maxStream
}
