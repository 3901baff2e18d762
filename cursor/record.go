package cursor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/internal/native"
)

// The version of a cursor's record, and the values of the field that says who may use the cursor. docs/token.md
// defines every byte of the record.
const (
	recordMark    = 'C' // the first byte of every record
	recordVersion = 1

	forNobody    = 0 // only callers without a user may use the cursor
	forUser      = 1 // only one user may use the cursor
	forEverybody = 2 // every caller may use the cursor

	maxNumber = 1<<32 - 1
)

// The offsets of the fields in a cursor's record.
const (
	atWho      = 2
	atIssued   = 3  // 6 bytes long
	atLifetime = 9  // 5 bytes long
	atNumber   = 14 // 4 bytes long
	atService  = 18 // 16 bytes long
	atDigest   = 34 // 16 bytes long
	atHints    = 50 // two hints of 2 bytes each
	atLength   = 54 // 2 bytes: the length of the position
	headSize   = 56

	// minSize is the length to which a shorter record is padded. So a cursor does not show the length of a short
	// position. Also, AES-GCM in Go takes less time for 128 bytes than for 70 to 120, because it can work on 128 bytes
	// at once.
	minSize = 128
)

// record is the decoded payload of a cursor.
type record struct {
	who              byte
	issued, lifetime int64 // in milliseconds; issued is a Unix time
	number           int64
	position         []byte // a part of the payload, not a copy
}

func (r *record) fits() bool {
	return r.who <= forEverybody && 0 <= r.issued && r.issued <= native.MaxInstant &&
		0 < r.lifetime && r.lifetime <= native.MaxSpan && 1 <= r.number && r.number <= maxNumber
}

// appendRecord appends the record r to dst in its encoded form, with the digests of the binding b.
func appendRecord(dst []byte, r *record, b *binding) []byte {
	var head [headSize]byte
	binary.BigEndian.PutUint32(head[atNumber:], uint32(r.number))
	native.PutSpan(head[:], atLifetime, r.lifetime) // backwards: each Put overwrites bytes before its field
	native.PutInstant(head[:], atIssued, r.issued)
	head[0], head[1], head[atWho] = recordMark, recordVersion, r.who
	copy(head[atService:], b.service[:])
	copy(head[atDigest:], b.digest[:])
	copy(head[atHints:], b.arguments[:])
	copy(head[atHints+hintSize:], b.user[:])
	binary.BigEndian.PutUint16(head[atLength:], uint16(len(r.position)))
	dst = append(append(dst, head[:]...), r.position...)
	return append(dst, padding[:paddingAfter(len(r.position))]...)
}

var padding [minSize]byte

// paddingAfter returns how many zero bytes follow a record's position, if this position has the given length.
func paddingAfter(length int) int { return max(0, minSize-headSize-length) }

// parseRecord decodes the payload of a genuine cursor. If the payload cannot be decoded, the reason says why;
// otherwise it is "".
func parseRecord(payload []byte) (r record, head *[headSize]byte, reason tripseal.Reason) {
	if len(payload) < 2 || payload[0] != recordMark || payload[1] != recordVersion {
		return r, nil, tripseal.ReasonVersion
	}
	if len(payload) < headSize {
		return r, nil, tripseal.ReasonMalformed
	}
	head = (*[headSize]byte)(payload)
	r.who = head[atWho]
	r.issued = native.Instant(head[:], atIssued)
	r.lifetime = native.Span(head[:], atLifetime)
	r.number = int64(binary.BigEndian.Uint32(head[atNumber:]))
	length, rest := int(binary.BigEndian.Uint16(head[atLength:])), payload[headSize:]
	zeros := padding[:paddingAfter(length)]
	if len(rest) != length+len(zeros) || !r.fits() || !bytes.Equal(rest[length:], zeros) {
		return r, nil, tripseal.ReasonMalformed
	}
	r.position = rest[:length]
	return r, head, ""
}

// boundTo returns why the record is not bound to the binding b, or "" if it is. The digests decide. The hints only
// help to choose the reason: they decide nothing, because two users have the same hint in one of 65,536 cases.
func boundTo(head *[headSize]byte, b *binding) tripseal.Reason {
	if !native.Same(head[atService:atDigest], b.service) {
		return tripseal.ReasonAudience
	}
	switch {
	case native.Same(head[atDigest:atHints], &b.digest):
		return ""
	case [hintSize]byte(head[atHints:]) != b.arguments:
		return tripseal.ReasonArguments
	case [hintSize]byte(head[atHints+hintSize:]) != b.user:
		return tripseal.ReasonUser
	}
	return tripseal.ReasonRequest
}

const (
	digestSize = native.DigestSize
	hintSize   = 2
	maxNamed   = 1<<16 - 1 // the greatest length of a method or target, in bytes
)

// binding is what a cursor is bound to, in the form that the record holds. The two digests decide whether a cursor
// opens. If it does not open, the hints, two short hashes, tell the operator what differs. Each page costs one hash,
// over a single block of SHA-256 if the names are short.
type binding struct {
	service   *[digestSize]byte
	digest    [digestSize]byte // of the request, the arguments and who may use the cursor
	who       byte
	arguments [hintSize]byte // a hint
	user      [hintSize]byte // a hint
}

// serviceDigest returns the digest of the audience and the epoch.
func serviceDigest(audience, epoch string) [digestSize]byte {
	return native.Sum(native.AppendFramed(native.AppendFramed([]byte("mc1s"), audience), epoch))
}

// bind returns the binding to a service, a request, the digest of its arguments and the user who may use the cursor.
// The method and the target must have at most maxNamed bytes.
func bind(
	service *[digestSize]byte, request *tripseal.Request, arguments *[sha256.Size]byte, who byte, user string,
) binding {
	var scratch [160]byte
	buf := append(scratch[:0], arguments[:digestSize]...)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(request.Method))), request.Method...)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(request.Target))), request.Target...)
	buf = append(append(buf, who), user...)
	return binding{service, native.Sum(buf), who, [hintSize]byte(arguments[digestSize:]), hint(who, user)}
}

// hint returns a short hash of its two parameters: who may use the cursor (forNobody, forUser or forEverybody), and
// the user's name. It hashes only the first and the last eight bytes of a long name, because names usually differ
// there.
func hint(who byte, name string) (h [hintSize]byte) {
	sum := (uint64(len(name))<<8 | uint64(who)) * 0x9E3779B97F4A7C15
	if n := len(name); n >= 8 {
		sum = (sum ^ binary.LittleEndian.Uint64([]byte(name[:8]))) * 0x9E3779B97F4A7C15
		sum = (sum ^ sum>>29 ^ binary.LittleEndian.Uint64([]byte(name[n-8:]))) * 0x9E3779B97F4A7C15
	} else {
		for i := range n {
			sum = (sum ^ uint64(name[i])) * 0x9E3779B97F4A7C15
		}
	}
	binary.BigEndian.PutUint16(h[:], uint16(sum>>48))
	return h
}

// Sealed is what a cursor holds. Times are Unix times in milliseconds.
type Sealed struct {
	Issued, Expires int64
	Page            int64  // the number of pages before the page that the cursor leads to
	Position        []byte // where that page begins
	User, Everybody bool   // who may use the cursor: one user, everybody or, if both are false, callers without a user
}

// Read decodes the payload of a cursor that a codec opened, for tools that show what a cursor holds. It checks nothing
// but the form of the payload: to accept a cursor, call [Cursors.Open].
func Read(payload []byte) (Sealed, error) {
	r, _, reason := parseRecord(bytes.Clone(payload))
	if reason != "" {
		return Sealed{}, reason
	}
	return Sealed{r.issued, r.issued + r.lifetime, r.number, r.position, r.who == forUser, r.who == forEverybody}, nil
}
