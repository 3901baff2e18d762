package cursor

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/mcpseal/mcpseal"
)

const (
	digestSize = 16
	hintSize   = 4
	maxHinted  = 128 // how much of a user's name a hint is of
)

// binding is what a cursor is bound to, as the record writes it: one digest of
// everything, which decides, and hints at its parts, which tell the operator what
// differs. One hash is all that a page costs.
type binding struct {
	digest [digestSize]byte
	hints  hints
}

// hints are a few bytes of each part but the request.
type hints struct{ arguments, service, principal [hintSize]byte }

// parts are what a binding is made of.
type parts struct {
	service   *[sha256.Size]byte
	arguments [sha256.Size]byte
	user      string // "" is nobody
}

// serviceDigest does not change while the process runs.
func serviceDigest(audience, epoch string) [sha256.Size]byte {
	return sha256.Sum256(appendFramed(appendFramed([]byte("mc1s"), audience), epoch))
}

// bind computes the binding. One that is shared leaves the user out.
func (p *parts) bind(request *mcpseal.Request, shared bool) (b binding) {
	kind, user := byte(0), p.user
	switch {
	case shared:
		kind, user = flagShared, ""
	case user != "":
		kind = flagPrincipal
	}
	var scratch [160]byte
	buf := append(scratch[:0], "mc1b"...)
	buf = append(buf, p.service[:]...)
	buf = append(buf, p.arguments[:]...)
	buf = appendFramed(appendFramed(buf, request.Method), request.Target)
	buf = appendFramed(append(buf, kind), user)
	sum := sha256.Sum256(buf)
	b.digest = [digestSize]byte(sum[:])
	b.hints = hints{
		[hintSize]byte(p.arguments[:]), [hintSize]byte(p.service[:]), hint(uint32(kind), user),
	}
	return b
}

// hint is FNV-1a of a text, as far as it matters.
func hint(kind uint32, text string) (h [hintSize]byte) {
	sum := (2166136261 ^ kind ^ uint32(len(text))<<8) * 16777619
	for i := range min(len(text), maxHinted) {
		sum = (sum ^ uint32(text[i])) * 16777619
	}
	binary.BigEndian.PutUint32(h[:], sum)
	return h
}

// differs says which part of a binding is not what it was sealed as; the request,
// if it is no other. Two users in four billion look alike to it, but not to the
// digest.
func (h *hints) differs(sealed *hints) mcpseal.Reason {
	switch {
	case h.arguments != sealed.arguments:
		return mcpseal.ReasonArguments
	case h.service != sealed.service:
		return mcpseal.ReasonAudience
	case h.principal != sealed.principal:
		return mcpseal.ReasonPrincipal
	}
	return mcpseal.ReasonRequest
}

func appendFramed(buf []byte, text string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(text)))
	return append(buf, text...)
}
