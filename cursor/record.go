package cursor

import (
	"bytes"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/native"
)

// The record in a cursor, to the byte as docs/token.md has it.
const (
	recordVersion = 1

	forNobody    = 0 // nobody is known
	forUser      = 1
	forEverybody = 2

	maxNumber = 1<<32 - 1
)

// Where the fields stand.
const (
	atWho      = 2
	atIssued   = 3  // 6 bytes
	atLifetime = 9  // 5 bytes
	atNumber   = 14 // 4 bytes
	atService  = 18 // 16 bytes
	atDigest   = 34 // 16 bytes
	atHints    = 50 // 2 times 2 bytes
	atLength   = 54 // 2 bytes: of the position
	headSize   = 56

	// minSize is what a record is padded to. The lengths of short positions do
	// not show then, and AES-GCM is faster on whole 128 bytes than on less.
	minSize = 128
)

// record is what a cursor says.
type record struct {
	who              byte
	issued, lifetime int64 // milliseconds
	number           int64
	position         []byte // in the payload
}

func (r *record) fits() bool {
	return r.who <= forEverybody && 0 <= r.issued && r.issued <= native.MaxInstant &&
		0 < r.lifetime && r.lifetime <= native.MaxSpan && 1 <= r.number && r.number <= maxNumber
}

// appendRecord appends the record, bound to b.
func appendRecord(dst []byte, r *record, b *binding) []byte {
	var head [headSize]byte
	binary.BigEndian.PutUint32(head[atNumber:], uint32(r.number))
	native.PutSpan(head[:], atLifetime, r.lifetime) // from the back to the front
	native.PutInstant(head[:], atIssued, r.issued)
	head[0], head[1], head[atWho] = mcpseal.PurposeCursor.Mark(), recordVersion, r.who
	copy(head[atService:], b.service[:])
	copy(head[atDigest:], b.digest[:])
	copy(head[atHints:], b.hints.arguments[:])
	copy(head[atHints+hintSize:], b.hints.user[:])
	binary.BigEndian.PutUint16(head[atLength:], uint16(len(r.position)))
	dst = append(append(dst, head[:]...), r.position...)
	return append(dst, padding[:padded(len(r.position))]...)
}

var padding [minSize]byte

// padded is how many zeros stand behind a position.
func padded(length int) int { return max(0, minSize-headSize-length) }

// parseRecord reads a payload that is genuine.
func parseRecord(payload []byte) (r record, head *[headSize]byte, reason mcpseal.Reason) {
	if len(payload) < 2 || payload[0] != mcpseal.PurposeCursor.Mark() || payload[1] != recordVersion {
		return r, nil, mcpseal.ReasonVersion
	}
	if len(payload) < headSize {
		return r, nil, mcpseal.ReasonMalformed
	}
	head = (*[headSize]byte)(payload)
	r.who = head[atWho]
	r.issued = native.Instant(head[:], atIssued)
	r.lifetime = native.Span(head[:], atLifetime)
	r.number = int64(binary.BigEndian.Uint32(head[atNumber:]))
	length, rest := int(binary.BigEndian.Uint16(head[atLength:])), payload[headSize:]
	if len(rest) != length+padded(length) || !r.fits() || !bytes.Equal(rest[length:], padding[:padded(length)]) {
		return r, nil, mcpseal.ReasonMalformed
	}
	r.position = rest[:length]
	return r, head, ""
}

// boundTo returns why the record is not bound to b, or "". The hints only choose
// the word; two users in 65,536 look alike to them, but not to the digest.
func boundTo(head *[headSize]byte, b *binding) mcpseal.Reason {
	if !native.Same(head[atService:atDigest], b.service) {
		return mcpseal.ReasonAudience
	}
	switch {
	case native.Same(head[atDigest:atHints], &b.digest):
		return ""
	case [hintSize]byte(head[atHints:]) != b.hints.arguments:
		return mcpseal.ReasonArguments
	case [hintSize]byte(head[atHints+hintSize:]) != b.hints.user:
		return mcpseal.ReasonPrincipal
	}
	return mcpseal.ReasonRequest
}
