package tripseal

import (
	"strings"

	"github.com/tripseal/tripseal/internal/strictjson"
)

// Claims is what a token asserts. [Binding] is what the token is bound to. Times are Unix
// times in milliseconds. You need Claims only to write a [Format] of your own.
type Claims struct {
	Issued  int64 // when the token was sealed; 0 if tokens of the format do not hold this time
	Expires int64 // the token opens only before this time

	Flow      [16]byte // a random id that all rounds of one logical request share
	FlowStart int64    // when the first round was sealed
	Round     int      // the number of this token in its flow; the first token has 1

	Questions []Question // the questions that this round asked

	// Arguments is what [Format.Digest] returns for the request's arguments. The boundary
	// sets Arguments before it calls [Format.Seal]. After [Format.Open], the boundary
	// compares Arguments with the digest of the current request's arguments.
	Arguments []byte

	State    string // what the handler wrote
	HasState bool   // true if the handler wrote a state, even an empty one
}

// ClaimSet is a set of things that a token can prove. The config of a boundary demands
// some of these claims, and a [Format] carries some. If a format cannot carry a demanded
// claim, the operator may waive that claim by name. Use a ClaimSet in [Config.Waive] and in
// the methods of a Format.
type ClaimSet uint16

const (
	ClaimRequest   ClaimSet = 1 << iota // which method and target the token is for
	ClaimArguments                      // which arguments of the request the token is for
	ClaimAudience                       // which service the token is for
	ClaimUser                           // which user the token is for
	ClaimQuestions                      // which questions were asked
	ClaimFlow                           // when the flow began, and how many rounds it has had
	ClaimSingleUse                      // an id of this round, so that a replay store can make the token work only once
	ClaimWording                        // the exact wording of the questions; by this claim, package elicit recognises the states that it wrote

	claimsEnd
	allClaims = claimsEnd - 1
)

var claimNames = []string{"request", "arguments", "audience", "user", "questions", "flow", "single use", "wording"}

// String returns the names of the claims in the set. It is for logs and error messages.
func (c ClaimSet) String() string {
	var names []string
	for i, name := range claimNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Binding is what a token is bound to: the request, the user and the service. You need it
// only to write a [Format] of your own.
type Binding struct {
	Method    string // such as tools/call
	Target    string // the tool, the prompt or the resource's URI
	Arguments []byte // JSON text; nil means {}. Always nil in Format.Seal, which uses the digest in Claims.Arguments
	Audience  string // the name of this service; "" means that it has none
	User      string // the user's name; "" means no user
}

// ArgumentsDigest returns a digest of the arguments' JSON value, as docs/token.md
// defines it. An error means that the client sent bad arguments; a [Format] must return
// this error unchanged. Call ArgumentsDigest in [Format.Digest], unless your tokens hold
// a digest of another kind.
func (b *Binding) ArgumentsDigest() ([32]byte, error) { return strictjson.Sum(b.Arguments) }
