package native

import (
	"crypto/sha256"
	"encoding/binary"
)

// DigestSize is the length of a digest in a record.
const DigestSize = 16

// Digest is the first half of a SHA-256.
type Digest = [DigestSize]byte

// Sum returns the digest of b.
func Sum(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(sum[:])
}

// Same compares a digest in a record in constant time, as
// subtle.ConstantTimeCompare does, but not byte by byte.
func Same(sealed []byte, digest *Digest) bool {
	other := (*Digest)(sealed)
	difference := binary.NativeEndian.Uint64(other[:8]) ^ binary.NativeEndian.Uint64(digest[:8])
	difference |= binary.NativeEndian.Uint64(other[8:]) ^ binary.NativeEndian.Uint64(digest[8:])
	return difference == 0
}

// AppendFramed appends a text behind its length, so that no two lists of texts are
// alike.
func AppendFramed(buf []byte, text string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}

// The largest times in a record, in milliseconds: an instant has six bytes, a span
// five.
const (
	MaxInstant = 1<<48 - 1
	MaxSpan    = 1<<40 - 1
)

// PutInstant and PutSpan write a time, and zeros into the bytes before it: write
// those later.

// PutInstant writes the six bytes at a place.
func PutInstant(head []byte, at int, t int64) { binary.BigEndian.PutUint64(head[at+6-8:], uint64(t)) }

// PutSpan writes the five bytes at a place.
func PutSpan(head []byte, at int, t int64) { binary.BigEndian.PutUint64(head[at+5-8:], uint64(t)) }

// Instant reads what PutInstant wrote.
func Instant(head []byte, at int) int64 {
	return int64(binary.BigEndian.Uint64(head[at+6-8:]) & MaxInstant)
}

// Span reads what PutSpan wrote.
func Span(head []byte, at int) int64 { return int64(binary.BigEndian.Uint64(head[at+5-8:]) & MaxSpan) }
