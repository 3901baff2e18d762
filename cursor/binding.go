package cursor

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/native"
)

const (
	digestSize = native.DigestSize
	hintSize   = 2
	maxNamed   = 1<<16 - 1 // bytes of a method or a target
)

// binding is what a cursor is bound to, as the record writes it: the service,
// one digest of everything else, which decides, and hints at two of its parts,
// which tell the operator what differs. One hash is all that a page costs, of
// one block where names are short.
type binding struct {
	service *[digestSize]byte
	digest  [digestSize]byte
	hints   hints
}

// hints are a few bytes of the arguments and of who may use the cursor.
type hints struct{ arguments, user [hintSize]byte }

// serviceDigest does not change while the process runs.
func serviceDigest(audience, epoch string) [digestSize]byte {
	return native.Sum(native.AppendFramed(native.AppendFramed([]byte("mc1s"), audience), epoch))
}

// bind computes the binding of a request, whose names are not too long, and of
// its arguments, to somebody.
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

// hint mixes the ends of a name, which is where names differ.
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

// word is the first eight bytes of a text.
func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
