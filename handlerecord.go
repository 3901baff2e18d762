package tripseal

import (
	"bytes"
	"encoding/binary"

	"github.com/tripseal/tripseal/internal/native"
)

const (
	handleVersion = 1
	maxHandleID   = 1024

	// minHandle is the length to which a shorter record is padded, so that a handle does not
	// show the length of a short id.
	minHandle = 128
)

// The offsets of the fields in a handle's record. docs/token.md defines every byte.
const (
	handleIssued   = 2  // 6 bytes long
	handleLifetime = 8  // 5 bytes long
	handleAudience = 13 // 16 bytes long
	handleKind     = 29 // 16 bytes long
	handleUser     = 45 // 16 bytes long
	handleLength   = 61 // 2 bytes: the length of the id
	handleHead     = 63
)

// handleBinding is what a handle is bound to, in the form that its record holds.
type handleBinding struct{ audience, kind, user [digestSize]byte }

// The labels of [handleDigest].
const handleKindLabel, handleUserLabel = "mh1k", "mh1p"

// handleDigest returns the digest of a kind or a user. The user of a caller without one is "".
func handleDigest(label, text string) [digestSize]byte {
	var scratch [128]byte
	return native.Sum(native.AppendFramed(append(scratch[:0], label...), text))
}

// appendHandle appends the record of a handle to dst. The id must have 1 to maxHandleID bytes.
func appendHandle(dst []byte, issued, lifetime int64, b *handleBinding, id string) []byte {
	var head [handleHead]byte
	native.PutSpan(head[:], handleLifetime, lifetime) // backwards: each Put overwrites bytes before its field
	native.PutInstant(head[:], handleIssued, issued)
	head[0], head[1] = PurposeHandle.Mark(), handleVersion
	copy(head[handleAudience:], b.audience[:])
	copy(head[handleKind:], b.kind[:])
	copy(head[handleUser:], b.user[:])
	binary.BigEndian.PutUint16(head[handleLength:], uint16(len(id)))
	return append(append(append(dst, head[:]...), id...), handlePadding(len(id))...)
}

var handleZeros [minHandle - handleHead]byte

// handlePadding returns the zero bytes that follow an id of this length.
func handlePadding(length int) []byte { return handleZeros[:max(0, len(handleZeros)-length)] }

// parseHandle parses the payload of a genuine handle. The results are parts of the payload, not
// copies. If the payload cannot be parsed, the reason says why; otherwise it is "".
func parseHandle(payload []byte) (head *[handleHead]byte, id []byte, reason Reason) {
	if len(payload) < 2 || payload[0] != PurposeHandle.Mark() || payload[1] != handleVersion {
		return nil, nil, ReasonVersion
	}
	if len(payload) < handleHead {
		return nil, nil, ReasonMalformed
	}
	head, rest := (*[handleHead]byte)(payload), payload[handleHead:]
	length := int(binary.BigEndian.Uint16(head[handleLength:]))
	if length == 0 || length > min(maxHandleID, len(rest)) || !bytes.Equal(rest[length:], handlePadding(length)) ||
		native.Span(head[:], handleLifetime) == 0 {
		return nil, nil, ReasonMalformed
	}
	return head, rest[:length], ""
}

// refuses returns why a handle is not for this binding at this time, or "" if it is.
func (b *handleBinding) refuses(head *[handleHead]byte, now int64) Reason {
	issued := native.Instant(head[:], handleIssued)
	switch {
	case !native.Same(head[handleAudience:handleKind], &b.audience):
		return ReasonAudience
	case !native.Same(head[handleKind:handleUser], &b.kind):
		return ReasonRequest
	case !native.Same(head[handleUser:handleLength], &b.user):
		return ReasonUser
	case !(issued <= now+clockSkew.Milliseconds()):
		return ReasonFromTheFuture
	case !(now < issued+native.Span(head[:], handleLifetime)): // last: nobody else learns the age
		return ReasonExpired
	}
	return ""
}
