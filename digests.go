package mcpseal

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

const digestSize = 16

// digests is a binding as the native record writes it, computed when it is
// needed and kept for the round. It belongs to one binding that does not
// change.
//
// The flow's id salts the digests, so that equal users or arguments do not show
// across flows; within a flow they stay the same. The audience needs no salt,
// it is the same public name in every token of a service.
type digests struct {
	plain         [argdigest.Size]byte // of the arguments, without salt
	plainKnown    bool
	audienceKnown bool
	known         bool // the salted ones, in flow
	flow          [16]byte

	request, mask, audience, principal [digestSize]byte // mask salts the arguments
}

// digestArguments is what costs. It alone can fail.
func (d *digests) digestArguments(b *Binding) (err error) {
	if !d.plainKnown {
		d.plain, err = b.ArgumentsDigest()
		d.plainKnown = err == nil
	}
	return err
}

// salt computes the digests in flow, all but the arguments', unless the last call
// was for the same one.
func (d *digests) salt(b *Binding, flow [16]byte) {
	if d.known && d.flow == flow {
		return
	}
	var scratch [128]byte
	buf := append(scratch[:0], "ms1r"...)
	buf = append(buf, flow[:]...)
	buf = appendFramed(buf, b.Method)
	request := sha256.Sum256(appendFramed(buf, b.Target))
	// The second half of the hash salts the digest of the arguments: it is as
	// good as random, and the same whenever the first half is.
	d.request, d.mask = [digestSize]byte(request[:]), [digestSize]byte(request[digestSize:])

	if b.Audience != "" && !d.audienceKnown {
		d.audience, d.audienceKnown = audienceDigest(b.Audience), true
	}
	if b.Principal != "" {
		buf = append(scratch[:0], "ms1p"...)
		buf = append(buf, flow[:]...)
		d.principal = shortSum(appendFramed(buf, b.Principal))
	}
	d.known, d.flow = true, flow
}

// masked salts the digest of the arguments, or takes the salt off.
func (d *digests) masked(arguments []byte) (masked [digestSize]byte) {
	for i := 0; i < digestSize; i += 8 {
		binary.NativeEndian.PutUint64(masked[i:], binary.NativeEndian.Uint64(arguments[i:])^binary.NativeEndian.Uint64(d.mask[i:]))
	}
	return masked
}

func audienceDigest(audience string) [digestSize]byte {
	return shortSum(appendFramed([]byte("ms1s"), audience))
}

func appendFramed(buf []byte, text string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}

func shortSum(b []byte) [digestSize]byte {
	sum := sha256.Sum256(b)
	return [digestSize]byte(sum[:])
}
