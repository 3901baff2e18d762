package mcpseal

import "strings"

// ClaimSet is a set of things that a token can prove beside its state. Policy
// demands claims; a [Format] carries some; an operator may waive, by name,
// those that a format cannot carry.
type ClaimSet uint16

const (
	ClaimRequest   ClaimSet = 1 << iota // method and target
	ClaimArguments                      // the request's arguments
	ClaimAudience                       // the service
	ClaimPrincipal                      // the user
	ClaimQuestions                      // what was asked
	ClaimFlow                           // when the flow began, and how many rounds it has had
	ClaimSingleUse                      // a name for this round that is good for a single use
	ClaimWording                        // the exact wording of what was asked, which also tells who asked it

	claimsEnd
	allClaims = claimsEnd - 1
)

var claimNames = []string{"request", "arguments", "audience", "principal", "questions", "flow", "single use", "wording"}

// String lists the names in the set.
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
