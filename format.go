package mcpseal

import "context"

// Format turns claims and state into a token and back. [NativeFormat] and
// [RecordFormat] carry every claim. Others exist to work with servers that use
// other tokens.
//
// A format proves that a token is genuine and that it is bound to this method
// and target, user and service, as far as it carries those claims; the boundary
// checks everything else, the arguments included. Exactly one text opens for
// each token. A format is called concurrently and keeps neither the binding nor
// the claims. It refuses a token with a user for a request without one, and the
// reverse; the same goes for the service.
//
// An error that wraps one of the reasons from [ReasonMalformed] to [ReasonUser]
// says why the token is refused; any other error, and a panic, says that the
// format failed.
//
// A format may have a method KeyID(token string) string, for the log: it reads
// the id of the key from a token, genuine or not.
//
// A format whose tokens anybody can write, such as compat.Plaintext, must have a
// method Unsealed() (tools []string, until time.Time). It serves only tools/call of
// these tools, and only before until. [New] accepts it only if every claim is waived
// by name, a sealed format is accepted beside it, and its tools do not have single
// use; the log gets a warning. The package elicit refuses it. A format that wraps such
// a format must have the method too.
//
// The suite sealtest.TestFormat checks that a sealed format does all this.
type Format interface {
	// Prefix returns what every token begins with: 2 to 16 lower-case letters and
	// digits, then a full stop. A boundary chooses the format of a token by its prefix,
	// and never tries several. One format of a boundary, such as that of an existing
	// service, may have the prefix "". It gets the tokens that begin neither with the
	// prefix of another format nor with one of mcpseal's own, and must not seal a token
	// that begins with one of these.
	Prefix() string
	// Carries returns the claims that a token of this format proves.
	Carries() ClaimSet
	// Digest returns what a token says about the request's arguments, or nil if it
	// says nothing. A boundary calls it once a round, and seals what it returned
	// even if the arguments change later. An error of [Binding.ArgumentsDigest] is
	// the client's fault; any other error says that the format failed.
	Digest(binding *Binding) ([]byte, error)
	// Seal returns the token for claims, bound to binding. What Digest returned is
	// in claims.Arguments.
	Seal(ctx context.Context, binding *Binding, claims *Claims) (token string, err error)
	// Open returns the claims of a genuine token that is bound to binding. They
	// include the digest of the arguments that was sealed: the boundary compares
	// it. Open itself digests the arguments only if it needs them to tell whether
	// the token is genuine.
	Open(ctx context.Context, binding *Binding, token string) (Claims, error)
}

// Accepted is a format that a boundary opens in addition to its own.
type Accepted struct {
	Format Format
	// Waive names claims that policy demands but the format cannot carry; the boundary
	// does without them. New refuses a format that lacks any other demanded claim.
	Waive ClaimSet
}
