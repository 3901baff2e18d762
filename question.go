package mcpseal

// Kind is the kind of a question.
type Kind uint8

// The kinds of questions that a server may ask.
const (
	KindForm     Kind = iota + 1 // an elicitation in form mode
	KindURL                      // an elicitation in URL mode
	KindSampling                 // a sample from the client's model
	KindRoots                    // the client's roots
)

const (
	maxQuestions   = 64
	maxQuestionKey = 128
)

// Question is one entry of inputRequests, as far as an answer must match it.
// Two questions are the same when they are equal.
type Question struct {
	Key    string   // its name in inputRequests, at most 128 bytes
	Kind   Kind     // what sort of answer fits
	Digest [16]byte // of its exact wording, where the caller has one; zero means none
}

// wellFormed says whether questions fit into one round.
func wellFormed(questions []Question) bool {
	if len(questions) > maxQuestions {
		return false
	}
	for i, q := range questions {
		if len(q.Key) > maxQuestionKey || q.Kind < KindForm || q.Kind > KindRoots {
			return false
		}
		for _, other := range questions[:i] {
			if other.Key == q.Key {
				return false
			}
		}
	}
	return true
}
