package jsonorder

import (
	"crypto/sha256"
	"hash"
)

const (
	// chunk is how much of a stream is hashed at once. A longer stream cannot be
	// written in the first reading of the text.
	chunk = 8 << 10
	// maxStream is the largest buffer that is kept for reuse.
	maxStream = 2 * chunk
)

// Stream is the bytes whose SHA-256 is the digest. It holds only a little of them at
// once.
type Stream struct {
	// Buf is where to write; call [Stream.Settle] after each value.
	Buf []byte
	// Lost means that the stream is too long for the first reading. From then on, what
	// is written is not used, so the caller need not write anything.
	Lost bool
	// Whole makes Buf keep the whole stream, for tests.
	Whole bool

	again bool      // the text is read for the second time
	hash  hash.Hash // of what Buf held before it was emptied; nil if it never was
	most  int       // the most that Buf has held
}

func (s *Stream) begin() {
	if s.Buf == nil {
		s.Buf = make([]byte, 0, maxStream)
	}
	s.Buf, s.Lost, s.again = s.Buf[:0], false, false
}

// settled ends the first reading. again tells whether there is a second.
func (s *Stream) settled(again bool) {
	if again {
		s.most = max(s.most, len(s.Buf))
		s.Buf, s.Lost, s.again = s.Buf[:0], false, true
	}
}

// Drafting reports whether this is the first reading and Buf has all that was written.
func (s *Stream) Drafting() bool { return !s.again && !s.Lost }

// Settle empties Buf if it is full.
func (s *Stream) Settle() {
	if len(s.Buf) >= chunk {
		s.flush()
	}
}

// Write appends p. A long p is hashed without being copied.
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

// lose discards what was written: the text will be read again.
func (s *Stream) lose() {
	s.Lost = true
	s.most = max(s.most, len(s.Buf))
	s.Buf = s.Buf[:0]
}

// Sum sets sum to the digest of all that was written.
func (s *Stream) Sum(sum *[sha256.Size]byte) {
	if s.hash == nil {
		*sum = sha256.Sum256(s.Buf)
		return
	}
	s.flush()
	s.Buf = s.hash.Sum(s.Buf)
	copy(sum[:], s.Buf)
}

// release empties the stream. It reports whether it is small enough to be kept
// for reuse.
func (s *Stream) release() bool {
	s.hash = nil // the hash holds parts of the text
	clear(s.Buf[:max(s.most, len(s.Buf))])
	s.Buf, s.most, s.Whole = s.Buf[:0], 0, false
	return cap(s.Buf) <= maxStream
}
