package native

import (
	"crypto/sha256"
	"encoding/binary"
)

// DigestSize is the length of a digest in a record, in bytes.
const DigestSize = 16

// Digest is the first half of a SHA-256.
type Digest = [DigestSize]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(sum[:])
}

// Same reports whether a digest in a record equals another digest. Like subtle.ConstantTimeCompare, it takes constant
// time, but it compares eight bytes at a time.
func Same(sealed []byte, digest *Digest) bool {
	other := (*Digest)(sealed)
	difference := binary.NativeEndian.Uint64(other[:8]) ^ binary.NativeEndian.Uint64(digest[:8])
	difference |= binary.NativeEndian.Uint64(other[8:]) ^ binary.NativeEndian.Uint64(digest[8:])
	return difference == 0
}

// AppendFramed appends the length of a text and then the text. So two different lists of texts never become the same
// bytes.
func AppendFramed(buf []byte, text string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}

// The largest times that fit into a record, in milliseconds: an instant (a point in time) has six bytes, and a span (a
// duration) has five.
const (
	MaxInstant = 1<<48 - 1
	MaxSpan    = 1<<40 - 1
)

// PutInstant and PutSpan write eight bytes, but their fields are shorter. So PutInstant also overwrites the two bytes
// before the field, and PutSpan overwrites three. The caller must write those bytes after the call.

// PutInstant writes an instant as six bytes at an offset.
func PutInstant(head []byte, at int, t int64) { binary.BigEndian.PutUint64(head[at+6-8:], uint64(t)) }

// PutSpan writes a span as five bytes at an offset.
func PutSpan(head []byte, at int, t int64) { binary.BigEndian.PutUint64(head[at+5-8:], uint64(t)) }

// Instant returns the instant that PutInstant wrote at an offset.
func Instant(head []byte, at int) int64 {
	return int64(binary.BigEndian.Uint64(head[at+6-8:]) & MaxInstant)
}

// Span returns the span that PutSpan wrote at an offset.
func Span(head []byte, at int) int64 { return int64(binary.BigEndian.Uint64(head[at+5-8:]) & MaxSpan) }
