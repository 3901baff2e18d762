package atd

import (
	"bytes"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// payload is what a cursor holds. Its fields are encoded in the order of this declaration.
type payload struct {
	Tool        string  `cbor:"tool_id"`
	Caller      *string `cbor:"caller_id,omitempty"` // nil means no caller
	Fingerprint numbers `cbor:"args_fingerprint"`
	Page        uint32  `cbor:"page_index"`
	Issued      uint64  `cbor:"issued_at_unix"`
	Session     numbers `cbor:"server_session"`
	State       []byte  `cbor:"opaque_state"`
}

const (
	fingerprintSize = 32
	sessionSize     = 8
)

// numbers holds bytes that the ATD runtime writes as an array of numbers.
type numbers []uint16

func numbersOf(b []byte) numbers {
	n := make(numbers, len(b))
	for i := range b {
		n[i] = uint16(b[i])
	}
	return n
}

// fits reports whether n has exactly this number of elements, each of which fits into a byte.
func (n numbers) fits(size int) bool {
	return len(n) == size && !slices.ContainsFunc(n, func(b uint16) bool { return b > 0xFF })
}

var (
	encoding = must(cbor.EncOptions{Sort: cbor.SortNone}.EncMode())
	decoding = must(cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		UTF8:              cbor.UTF8RejectInvalid,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		MaxNestedLevels:   4,
		MaxArrayElements:  fingerprintSize,
		MaxMapPairs:       16,
	}.DecMode())
)

func must[T any](mode T, err error) T {
	if err != nil {
		panic(err) // cannot happen unless the options above are wrong
	}
	return mode
}

func (p *payload) encode() ([]byte, error) {
	if p.State == nil {
		p.State = []byte{} // nil would be written as null
	}
	return encoding.Marshal(p)
}

// decodePayload decodes the body of a cursor. It accepts only the exact bytes that the
// method encode writes.
func decodePayload(body []byte) (*payload, error) {
	p := new(payload)
	if err := decoding.Unmarshal(body, p); err != nil {
		return nil, ErrFormat
	}
	if !p.Fingerprint.fits(fingerprintSize) || !p.Session.fits(sessionSize) || len(p.State) > MaxState {
		return nil, ErrFormat
	}
	if again, err := p.encode(); err != nil || !bytes.Equal(again, body) {
		return nil, ErrFormat
	}
	return p, nil
}
