package cursor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/native"
)

// The record in a cursor. docs/token.md defines every byte.
const (
	recordVersion = 1

	forNobody    = 0 // the caller has no name
	forUser      = 1
	forEverybody = 2

	maxNumber = 1<<32 - 1
)

// Offsets of the fields.
const (
	atWho      = 2
	atIssued   = 3  // 6 bytes
	atLifetime = 9  // 5 bytes
	atNumber   = 14 // 4 bytes
	atService  = 18 // 16 bytes
	atDigest   = 34 // 16 bytes
	atHints    = 50 // two hints of 2 bytes each
	atLength   = 54 // 2 bytes: the length of the position
	headSize   = 56

	// minSize is the length that a record is padded to, so that the lengths of short
	// positions do not show. AES-GCM is also faster on whole 128 bytes than on fewer.
	minSize = 128
)

// record is what a cursor says.
type record struct {
	who              byte
	issued, lifetime int64 // milliseconds
	number           int64
	position         []byte // a part of the payload, not a copy
}

func (r *record) fits() bool {
	return r.who <= forEverybody && 0 <= r.issued && r.issued <= native.MaxInstant &&
		0 < r.lifetime && r.lifetime <= native.MaxSpan && 1 <= r.number && r.number <= maxNumber
}

// appendRecord appends the record, bound to b.
func appendRecord(dst []byte, r *record, b *binding) []byte {
	var head [headSize]byte
	binary.BigEndian.PutUint32(head[atNumber:], uint32(r.number))
	native.PutSpan(head[:], atLifetime, r.lifetime) // last field first: each Put overwrites bytes before its field
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

// padded returns how many zeros follow a position of this length.
func padded(length int) int { return max(0, minSize-headSize-length) }

// parseRecord reads the payload of a genuine cursor. reason says why it cannot be read,
// or is "".
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

// boundTo returns why the record is not bound to b, or "". The digest decides; the hints
// only choose the reason, because one user in 65,536 has the same hint as another.
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
		return mcpseal.ReasonUser
	}
	return mcpseal.ReasonRequest
}

// inTime returns why the record's times are refused, or "". Each condition states what
// is accepted, so that a nonsense number is refused.
func (r *record) inTime(now int64) mcpseal.Reason {
	if !(r.issued <= now+clockSkew.Milliseconds()) {
		return mcpseal.ReasonFromTheFuture
	}
	if !(now < r.issued+r.lifetime) {
		return mcpseal.ReasonExpired
	}
	return ""
}

const (
	digestSize = native.DigestSize
	hintSize   = 2
	maxNamed   = 1<<16 - 1 // the longest method or target, in bytes
)

// binding is what a cursor is bound to, as the record has it: a digest of the service,
// one digest of everything else, and hints at two parts of that. The digest decides; the
// hints tell the operator what differs. A page costs one hash, of one block if names are
// short.
type binding struct {
	service *[digestSize]byte
	digest  [digestSize]byte
	hints   hints
}

// hints are two bytes each of hashes: of the arguments, and of who may use the cursor.
type hints struct{ arguments, user [hintSize]byte }

// serviceDigest digests what does not change while the process runs.
func serviceDigest(audience, epoch string) [digestSize]byte {
	return native.Sum(native.AppendFramed(native.AppendFramed([]byte("mc1s"), audience), epoch))
}

// bind computes the binding to a request, its arguments and who may use the cursor.
// The method and the target must have at most maxNamed bytes.
func bind(service *[digestSize]byte, request *mcpseal.Request, arguments *[sha256.Size]byte, who byte, user string) (b binding) {
	var scratch [160]byte
	buf := append(scratch[:0], arguments[:digestSize]...)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(request.Method))), request.Method...)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(request.Target))), request.Target...)
	buf = append(append(buf, who), user...)
	b.service, b.digest = service, native.Sum(buf)
	b.hints = hints{[hintSize]byte(arguments[digestSize:]), hint(who, user)}
	return b
}

// hint returns a short hash of who and name. It uses only the ends of the name, because
// names differ there.
func hint(who byte, name string) (h [hintSize]byte) {
	sum := (uint64(len(name))<<8 | uint64(who)) * 0x9E3779B97F4A7C15
	if n := len(name); n >= 8 {
		sum = (sum ^ word(name)) * 0x9E3779B97F4A7C15
		sum = (sum ^ sum>>29 ^ word(name[n-8:])) * 0x9E3779B97F4A7C15
	} else {
		for i := range n {
			sum = (sum ^ uint64(name[i])) * 0x9E3779B97F4A7C15
		}
	}
	binary.BigEndian.PutUint16(h[:], uint16(sum>>48))
	return h
}

// word returns the first eight bytes of a text.
func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
