package cursor

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
)

const digestSize = 16

// digests is what a cursor is bound to, as the record writes it.
type digests struct {
	service, request, arguments, principal [digestSize]byte

	hasPrincipal bool // there is a user
}

// serviceDigest does not change while the process runs.
func serviceDigest(audience, epoch string) [digestSize]byte {
	sum := sha256.Sum256(appendFramed(appendFramed([]byte("mc1s"), audience), epoch))
	return [digestSize]byte(sum[:])
}

// bindRequest fails on arguments that have no digest.
func (d *digests) bindRequest(request *mcpseal.Request) error {
	binding := mcpseal.Binding{Arguments: request.Arguments}
	arguments, err := binding.ArgumentsDigest()
	if err != nil {
		return err
	}
	var scratch [256]byte
	sum := sha256.Sum256(appendFramed(appendFramed(append(scratch[:0], "mc1r"...), request.Method), request.Target))
	d.request = [digestSize]byte(sum[:])
	// The other half of the hash hides the digest of the arguments, as in the
	// native token.
	subtle.XORBytes(d.arguments[:], arguments[:digestSize], sum[digestSize:])
	return nil
}

func (d *digests) bindUser(user string) {
	if d.hasPrincipal = user != ""; d.hasPrincipal {
		var scratch [256]byte
		sum := sha256.Sum256(appendFramed(append(scratch[:0], "mc1p"...), user))
		d.principal = [digestSize]byte(sum[:])
	}
}

func appendFramed(buf []byte, text string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}
