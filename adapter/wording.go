package adapter

import "github.com/tripseal/tripseal"

// PinsWording reports whether the token of a round pins the wording of its questions: the token has questions, and each
// of them has a digest of its wording. Only a package that asks in the middle of a handler's code, such as
// gosdk/elicit, seals such a token. That package also writes the state in the token. A handler that does not use the
// package could mistake this state for a state that the handler itself wrote. It could also use the answers for its own
// questions. This can happen, for example, while a tool moves from one SDK to another. So give such a handler neither
// the state nor the answers, as if the call had no token.
func PinsWording(round *tripseal.Round) (pins bool) {
	for q := range round.Asked {
		if pins = q.Digest != [16]byte{}; !pins {
			return false
		}
	}
	return pins
}
