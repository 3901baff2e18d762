package mcpseal

import "slices"

// Kind is the kind of a question.
type Kind uint8

// The kinds of questions that a server may ask.
const (
	KindForm     Kind = iota + 1 // asks the user to fill in a form: an elicitation in form mode
	KindURL                      // asks the user to open a URL: an elicitation in URL mode
	KindSampling                 // asks the client's model for a message: a sampling request
	KindRoots                    // asks the client which roots (folders) the server may use
)

// Takes reports whether an answer of the given kind fits a question of kind k. An answer
// to a form looks like an answer to a URL, so either answer fits both questions.
func (k Kind) Takes(answer Kind) bool { return k == answer || k.elicits() && answer.elicits() }

func (k Kind) elicits() bool { return k == KindForm || k == KindURL }

// The limits of what one round can ask.
const (
	MaxQuestions   = 64  // how many questions one round can ask
	MaxQuestionKey = 128 // how many bytes the key of a question can have
)

// Question identifies one entry of inputRequests: an answer must match its key and
// kind. Questions can be compared with ==.
type Question struct {
	Key    string   // the entry's name in inputRequests, at most [MaxQuestionKey] bytes
	Kind   Kind     // tells which kind of answer fits
	Digest [16]byte // a digest of the question's exact wording; zero means that the caller gives no digest
}

func (q *Question) wellFormed() bool {
	return len(q.Key) <= MaxQuestionKey && KindForm <= q.Kind && q.Kind <= KindRoots
}

// wellFormed reports whether one round can ask these questions: there are not too many,
// each is well-formed, and no two have the same key.
func wellFormed(questions []Question) bool {
	if len(questions) > MaxQuestions {
		return false
	}
	for i := range questions {
		if !questions[i].wellFormed() {
			return false
		}
	}
	return len(questions) < 2 || distinctKeys(questions)
}

func distinctKeys(questions []Question) bool {
	var room [MaxQuestions]string
	keys := room[:0]
	for i := range questions {
		keys = append(keys, questions[i].Key)
	}
	return distinct(keys)
}

// distinct reports whether no two keys are the same. It sorts the keys, because comparing
// each with each takes long if there are many.
func distinct(keys []string) bool {
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i-1] == keys[i] {
			return false
		}
	}
	return true
}

// Accepts reports whether an answer may reach the handler, that is, whether the previous
// round asked a question with this key that takes an answer of this kind. On a first round
// it is false. It is true for every answer if the operator waived [ClaimQuestions].
func (r *Round) Accepts(key string, kind Kind) bool {
	if r.waived&ClaimQuestions != 0 {
		return true
	}
	for q := range r.questions.all {
		if q.Key == key {
			return q.Kind.Takes(kind)
		}
	}
	return false
}

// questionList holds questions in the encoding of the native record. A round keeps them
// encoded, and decodes them on demand without an allocation.
type questionList string

const flagQuestionDigest = 1 << 7

func appendQuestions(dst []byte, questions []Question) []byte {
	for i := range questions {
		q := &questions[i]
		kind := byte(q.Kind)
		if q.Digest != [digestSize]byte{} {
			kind |= flagQuestionDigest
		}
		dst = append(dst, kind, byte(len(q.Key)))
		dst = append(dst, q.Key...)
		if kind&flagQuestionDigest != 0 {
			dst = append(dst, q.Digest[:]...)
		}
	}
	return dst
}

// cutQuestions cuts n well-formed questions off the front of text. ok is false if text
// does not begin with n well-formed questions.
func cutQuestions(text string, n int) (list questionList, rest string, ok bool) {
	rest = text
	for range n {
		if _, rest, ok = cutQuestion(rest); !ok {
			return "", "", false
		}
	}
	list = questionList(text[:len(text)-len(rest)])
	if n > 1 && !list.distinctKeys() {
		return "", "", false
	}
	return list, rest, true
}

// cutQuestion decodes the well-formed question at the front of text, and returns the rest
// of text after it. ok is false if there is no such question.
func cutQuestion(text string) (q Question, rest string, ok bool) {
	if len(text) < 2 || len(text)-2 < int(text[1]) {
		return q, "", false
	}
	kind, size := text[0], int(text[1])
	q.Kind, q.Key, rest = Kind(kind&^flagQuestionDigest), text[2:2+size], text[2+size:]
	if kind&flagQuestionDigest != 0 {
		if len(rest) < digestSize {
			return q, "", false
		}
		copy(q.Digest[:], rest)
		rest = rest[digestSize:]
		if q.Digest == [digestSize]byte{} {
			return q, "", false
		}
	}
	return q, rest, q.wellFormed()
}

// all yields the questions in a list that cutQuestions or appendQuestions made.
func (l questionList) all(yield func(Question) bool) {
	for text := string(l); text != ""; {
		q, rest, ok := cutQuestion(text)
		if !ok || !yield(q) {
			return
		}
		text = rest
	}
}

func (l questionList) distinctKeys() bool {
	var room [MaxQuestions]string
	keys := room[:0]
	for q := range l.all {
		keys = append(keys, q.Key)
	}
	return distinct(keys)
}
