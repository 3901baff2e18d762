package mcpseal

import (
	"strings"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

// Claims is what a token asserts. What the token is bound to is in [Binding]. Times are
// Unix times in milliseconds.
type Claims struct {
	Issued  int64 // when the token was sealed; 0 if the format does not say
	Expires int64 // the token opens only before this time

	Flow      [16]byte // a random id that all rounds of one logical request share
	FlowStart int64    // when the first round was sealed
	Round     int      // how many times this flow has been sealed, this token included

	Questions []Question // the questions that this round asked

	// Arguments is what [Format.Digest] returns for the request's arguments. The
	// boundary sets it before Seal, and compares it after Open.
	Arguments []byte

	State    string // what the handler wrote
	HasState bool   // false if the handler wrote no state; "" is a state
}

// ClaimSet is a set of things that a token can prove. Policy demands some of
// them, and a [Format] carries some. An operator may waive, by name, those that
// a format cannot carry.
type ClaimSet uint16

const (
	ClaimRequest   ClaimSet = 1 << iota // which method and target the token is for
	ClaimArguments                      // which arguments of the request the token is for
	ClaimAudience                       // which service the token is for
	ClaimUser                           // which user the token is for
	ClaimQuestions                      // which questions were asked
	ClaimFlow                           // when the flow began, and how many rounds it has had
	ClaimSingleUse                      // an id of this round, so that a replay store can make the token work only once
	ClaimWording                        // the exact wording of the questions, and so which code asked them

	claimsEnd
	allClaims = claimsEnd - 1
)

var claimNames = []string{"request", "arguments", "audience", "user", "questions", "flow", "single use", "wording"}

// String returns the names of the claims in the set.
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

// Binding is what a token is bound to: the request, the user and the service.
type Binding struct {
	Method    string // such as tools/call
	Target    string // the tool, the prompt or the resource's URI
	Arguments []byte // JSON text; nil means {}. Format.Seal gets nil, and uses Claims.Arguments instead
	Audience  string // the name of this service; "" means that it has none
	User      string // the user's name; "" means no user
}

// ArgumentsDigest returns a digest of the arguments' JSON value, as docs/token.md
// defines it. An error means that the client sent bad arguments; a [Format] must return
// this error unchanged.
func (b *Binding) ArgumentsDigest() ([32]byte, error) { return argdigest.Sum(b.Arguments) }
