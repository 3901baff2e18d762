package mcpseal

import "github.com/mcpseal/mcpseal/internal/argdigest"

// Binding is what a token is bound to: the request, the user and the service.
type Binding struct {
	Method    string // such as tools/call
	Target    string // the tool, the prompt or the resource's URI
	Arguments []byte // JSON text; nil counts as {}. Nil in Seal, where Claims.Arguments counts
	Audience  string // this service; "" means none
	Principal string // the user; "" means nobody
}

// ArgumentsDigest is the digest of the arguments' JSON value as docs/token.md
// defines it. An error is the client's fault; a [Format] returns it as it is.
func (b *Binding) ArgumentsDigest() ([32]byte, error) { return argdigest.Sum(b.Arguments) }
