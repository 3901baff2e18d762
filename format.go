package mcpseal

import "context"

// Format is how claims and state become a token and back. The native one,
// [RecordFormat], carries every claim. Others exist to speak with servers that
// use another token.
//
// A format proves that a token is genuine and that it is bound to this method
// and target, user and service, as far as it carries those claims; the boundary
// checks everything else, the arguments included. Exactly one text opens for
// each token. A format is called concurrently and keeps neither the binding nor
// the claims.
//
// An error that wraps a [Reason] up to [ReasonUser] says why the token is
// refused; any other error, and a panic, says that the format failed. A token
// that carries a user or a service for a request that has none, or the
// reverse, is refused.
//
// A format may have a method KeyID(token string) string that reads from a
// token, genuine or not, the id of its key for the log.
//
// The suite sealtest.TestFormat holds a format to all this.
type Format interface {
	// Prefix is what every token begins with. A boundary tells formats apart
	// by it and never tries a token against several.
	Prefix() string
	// Carries returns the claims that a token of this format proves.
	Carries() ClaimSet
	// Digest returns what a token says of the request's arguments, or nil if it
	// says nothing. A boundary calls it once a round: what it returned is what
	// the round seals, whatever happens to the arguments meanwhile. An error of
	// [Binding.ArgumentsDigest] is the client's fault; any other says that the
	// format failed.
	Digest(binding *Binding) ([]byte, error)
	// Seal returns the token for claims, bound to binding. The arguments are in
	// claims.Arguments, as Digest returned them.
	Seal(ctx context.Context, binding *Binding, claims *Claims) (token string, err error)
	// Open returns the claims of a genuine token that is bound to binding, with
	// the arguments' digest that was sealed: the boundary compares it. Only a
	// format that cannot tell whether a token is genuine without the arguments
	// digests them here.
	Open(ctx context.Context, binding *Binding, token string) (Claims, error)
}

// Accepted is a format that a boundary opens beside its own.
type Accepted struct {
	Format Format
	// Waive names claims that policy demands and the format cannot carry, and
	// does without them. New refuses a format that lacks any other.
	Waive ClaimSet
}
