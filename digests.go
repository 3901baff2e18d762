package mcpseal

import (
	"crypto/sha256"
	"encoding/binary"
)

const digestSize = 16

// digests is the binding as the native record writes it. The flow's id salts
// them, so that equal users or arguments do not show across flows; within a
// flow they stay the same. The audience needs no salt, it is the same public
// name in every token of a service.
type digests struct {
	known, audienceKnown bool
	flow                 [16]byte

	request, arguments, audience, principal [digestSize]byte
}

// digestsFor returns the binding's digests in flow, computing them unless the
// last call was for the same flow.
func (b *Binding) digestsFor(flow [16]byte) (*digests, error) {
	d := &b.digests
	if d.known && d.flow == flow {
		return d, nil
	}
	arguments, err := b.ArgumentsDigest()
	if err != nil {
		return nil, err
	}
	var scratch [128]byte
	buf := append(scratch[:0], "ms1r"...)
	buf = append(buf, flow[:]...)
	buf = appendFramed(buf, b.Method)
	d.request = shortSum(appendFramed(buf, b.Target))

	buf = append(scratch[:0], "ms1a"...)
	buf = append(buf, flow[:]...)
	d.arguments = shortSum(append(buf, arguments[:]...))

	if b.Audience != "" && !d.audienceKnown {
		d.audience = audienceDigest(b.Audience)
		d.audienceKnown = true
	}
	if b.Principal != "" {
		buf = append(scratch[:0], "ms1p"...)
		buf = append(buf, flow[:]...)
		d.principal = shortSum(appendFramed(buf, b.Principal))
	}
	d.known, d.flow = true, flow
	return d, nil
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
