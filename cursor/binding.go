package cursor

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
)

const (
	digestSize = 16
	hintSize   = 2
	maxHinted  = 128       // how much of a user's name a hint is of
	maxNamed   = 1<<16 - 1 // bytes of a method or a target
)

// binding is what a cursor is bound to, as the record writes it: the service,
// one digest of everything else, which decides, and hints at two of its parts,
// which tell the operator what differs. One hash is all that a page costs, of
// one block where names are short.
type binding struct {
	service [digestSize]byte
	digest  [digestSize]byte
	hints   hints
}

// hints are a few bytes of the arguments and of who may use the cursor.
type hints struct{ arguments, user [hintSize]byte }

// serviceDigest does not change while the process runs.
func serviceDigest(audience, epoch string) [digestSize]byte {
	sum := sha256.Sum256(appendFramed(appendFramed([]byte("mc1s"), audience), epoch))
	return [digestSize]byte(sum[:])
}

func appendFramed(buf []byte, text string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}

// bind computes the binding of a request, whose names are not too long, and of
// its arguments, to somebody.
func bind(service *[digestSize]byte, request *mcpseal.Request, arguments *[sha256.Size]byte, who byte, user string) (b binding) {
	var scratch [160]byte
	buf := append(scratch[:0], arguments[:digestSize]...)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(request.Method))), request.Method...)
	buf = append(binary.BigEndian.AppendUint16(buf, uint16(len(request.Target))), request.Target...)
	buf = append(append(buf, who), user...)
	sum := sha256.Sum256(buf)
	b.service, b.digest = *service, [digestSize]byte(sum[:])
	b.hints = hints{[hintSize]byte(arguments[digestSize:]), hint(who, user)}
	return b
}

// hint is FNV-1a of a text, as far as it matters.
func hint(who byte, text string) (h [hintSize]byte) {
	sum := (2166136261 ^ uint32(who) ^ uint32(len(text))<<8) * 16777619
	for i := range min(len(text), maxHinted) {
		sum = (sum ^ uint32(text[i])) * 16777619
	}
	binary.BigEndian.PutUint16(h[:], uint16(sum>>16^sum))
	return h
}
