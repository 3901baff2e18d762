package mcpseal

import (
	"github.com/mcpseal/mcpseal/internal/argdigest"
)

// Binding is what a token is bound to: the request, the user and the service.
// What is costly to compute is computed once a round.
type Binding struct {
	Method    string // such as tools/call
	Target    string // the tool, the prompt or the resource's URI
	Arguments []byte // JSON text; nil counts as {}
	Audience  string // this service; "" means none
	Principal string // the user; "" means nobody

	arguments struct {
		known  bool
		digest [argdigest.Size]byte
		err    error
	}
	digests digests // of the native record
}

// ArgumentsDigest is the digest of the arguments' JSON value as docs/token.md
// defines it. An error is the client's fault; a [Format] that needs the digest
// asks for it before it looks at a token, so that the answer says nothing
// about the token.
func (b *Binding) ArgumentsDigest() ([32]byte, error) {
	if !b.arguments.known {
		b.arguments.digest, b.arguments.err = argdigest.Sum(b.Arguments)
		b.arguments.known = true
	}
	return b.arguments.digest, b.arguments.err
}
