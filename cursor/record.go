package cursor

import (
	"crypto/subtle"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
)

// The record in a cursor, to the byte as docs/token.md has it.
const (
	recordVersion = 1

	flagPrincipal = 1 << 0
	flagShared    = 1 << 1 // for everybody

	maxMilli48 = 1<<48 - 1
	maxMilli40 = 1<<40 - 1
	maxNumber  = 1<<32 - 1
)

// Where the fields stand that every record has.
const (
	atFlags     = 2
	atIssued    = 3  // 6 bytes
	atLifetime  = 9  // 5 bytes
	atNumber    = 14 // 4 bytes
	atService   = 18
	atRequest   = 34
	atArguments = 50
	headSize    = 66
)

// record is what a cursor says.
type record struct {
	shared           bool
	issued, lifetime int64 // milliseconds
	number           int64
	principal        []byte // nil is nobody
	position         []byte
}

func (r *record) fits() bool {
	return 0 <= r.issued && r.issued <= maxMilli48 && 0 < r.lifetime && r.lifetime <= maxMilli40 &&
		1 <= r.number && r.number <= maxNumber
}

// appendRecord appends the record, bound to d.
func appendRecord(dst []byte, r *record, d *digests) []byte {
	var head [headSize]byte
	// Eight bytes are written for fewer, from the back to the front.
	binary.BigEndian.PutUint64(head[atNumber+4-8:], uint64(r.number))
	binary.BigEndian.PutUint64(head[atLifetime+5-8:], uint64(r.lifetime))
	binary.BigEndian.PutUint64(head[atIssued+6-8:], uint64(r.issued))
	head[0], head[1], head[atFlags] = mcpseal.PurposeCursor.Mark(), recordVersion, 0
	switch {
	case r.shared:
		head[atFlags] = flagShared
	case d.hasPrincipal:
		head[atFlags] = flagPrincipal
	}
	copy(head[atService:], d.service[:])
	copy(head[atRequest:], d.request[:])
	copy(head[atArguments:], d.arguments[:])
	dst = append(dst, head[:]...)
	if head[atFlags] == flagPrincipal {
		dst = append(dst, d.principal[:]...)
	}
	return append(dst, r.position...)
}

// parseRecord reads a payload that is genuine, and checks that it is bound to
// the request and the service. Its slices point into the payload.
func parseRecord(payload []byte, d *digests) (r record, reason mcpseal.Reason) {
	if len(payload) < 2 || payload[0] != mcpseal.PurposeCursor.Mark() || payload[1] != recordVersion {
		return r, mcpseal.ReasonVersion
	}
	if len(payload) < headSize {
		return r, mcpseal.ReasonMalformed
	}
	head, rest := payload[:headSize], payload[headSize:]
	switch head[atFlags] {
	case 0:
	case flagShared:
		r.shared = true
	case flagPrincipal:
		if len(rest) < digestSize {
			return r, mcpseal.ReasonMalformed
		}
		r.principal, rest = rest[:digestSize], rest[digestSize:]
	default:
		return r, mcpseal.ReasonMalformed
	}
	r.issued = int64(binary.BigEndian.Uint64(head[atIssued+6-8:]) & maxMilli48)
	r.lifetime = int64(binary.BigEndian.Uint64(head[atLifetime+5-8:]) & maxMilli40)
	r.number = int64(binary.BigEndian.Uint32(head[atNumber:]))
	r.position = rest
	if !r.fits() {
		return r, mcpseal.ReasonMalformed
	}
	switch {
	case !same(head[atRequest:atArguments], &d.request):
		return r, mcpseal.ReasonRequest
	case !same(head[atArguments:headSize], &d.arguments):
		return r, mcpseal.ReasonArguments
	case !same(head[atService:atRequest], &d.service):
		return r, mcpseal.ReasonAudience
	}
	return r, ""
}

// isFor says whether the record is bound to the user of d.
func (r *record) isFor(d *digests) bool {
	if r.principal == nil || !d.hasPrincipal {
		return r.principal == nil && !d.hasPrincipal
	}
	return same(r.principal, &d.principal)
}

func same(sealed []byte, digest *[digestSize]byte) bool {
	return subtle.ConstantTimeCompare(sealed, digest[:]) == 1
}
