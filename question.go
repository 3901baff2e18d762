package tripseal

import (
	"slices"
	"strings"
)

// Kind is the kind of a question. An adapter derives it from the method and the mode of
// the question.
type Kind uint8

// The kinds of questions that a server may ask.
const (
	KindForm     Kind = iota + 1 // asks the user to fill in a form: an elicitation in form mode
	KindURL                      // asks the user to open a URL: an elicitation in URL mode
	KindSampling                 // asks the client's model for a message: a sampling request
	KindRoots                    // asks the client which roots (folders) the server may use
)

// Takes reports whether an answer of the given kind fits a question of kind k. An answer
// to a form looks like an answer to a URL, so an answer to one kind also fits the other.
// [Round.Accepts] calls Takes; call it yourself only to compare kinds without a round.
func (k Kind) Takes(answer Kind) bool { return k == answer || k.elicits() && answer.elicits() }

func (k Kind) elicits() bool { return k == KindForm || k == KindURL }

// The limits of what one round can ask. [Boundary.Seal] refuses more.
const (
	MaxQuestions   = 64  // how many questions one round can ask
	MaxQuestionKey = 128 // how many bytes the key of a question can have
)

// Question identifies one entry of inputRequests: an answer must match its key and
// kind. Questions can be compared with ==. An adapter passes one to [Boundary.Seal] for
// each entry.
type Question struct {
	Key  string // the entry's name in inputRequests, at most [MaxQuestionKey] bytes
	Kind Kind   // tells which kind of answer fits
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

// distinctKeys reports whether no two questions have the same key. It sorts the keys,
// because comparing every pair of keys takes long if there are many.
func distinctKeys(questions []Question) bool {
	var room [MaxQuestions]string
	keys := room[:0]
	for i := range questions {
		keys = append(keys, questions[i].Key)
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i-1] == keys[i] {
			return false
		}
	}
	return true
}

// Accepts reports whether an answer may reach the handler. The previous round must have
// asked a question with this key, and an answer of this kind must fit it. An adapter
// calls Accepts for each answer, and drops the answer if Accepts returns false. On a
// first round, Accepts always returns false, and also if package elicit asked: see
// [Round.Elicit]. If the operator waived [ClaimQuestions] for the token's format, Accepts
// returns true for every other answer.
func (r *Round) Accepts(key string, kind Kind) bool {
	if r.claims.Elicit {
		return false
	}
	if r.waived&ClaimQuestions != 0 {
		return true
	}
	question, asked := r.questions.kindOf(key)
	return asked && question.Takes(kind)
}

// questionList holds questions in the encoding of the native record. A round keeps them
// encoded, and decodes them on demand without an allocation.
type questionList struct {
	text  string // the questions, in the order in which they were asked
	order string // two bytes for each question, sorted by key: where the question begins in questionList.text
}

const _ = uint16(MaxQuestions * (2 + MaxQuestionKey)) // compiles only if two bytes can hold every position in a text of questions

func appendQuestions(dst []byte, questions []Question) []byte {
	for i := range questions {
		q := &questions[i]
		dst = append(dst, byte(q.Kind), byte(len(q.Key)))
		dst = append(dst, q.Key...)
	}
	return dst
}

// cutQuestions cuts n well-formed questions off the front of a payload, and returns them
// and the rest of the payload. One allocation holds the questions and the rest.
// cutQuestions returns false if the payload does not begin with n well-formed questions,
// or if two of them have the same key.
func cutQuestions(payload []byte, n int) (list questionList, rest string, ok bool) {
	var all strings.Builder
	all.Grow(len(payload) + 2*n)
	all.Write(payload)
	rest = all.String()
	var room [MaxQuestions]uint16
	starts := room[:0]
	for range n {
		starts = append(starts, uint16(len(payload)-len(rest)))
		if _, rest, ok = cutQuestion(rest); !ok {
			return questionList{}, "", false
		}
	}
	list.text = all.String()[:len(payload)-len(rest)]
	slices.SortFunc(starts, func(a, b uint16) int { return strings.Compare(list.keyAt(a), list.keyAt(b)) })
	for i, start := range starts {
		if i > 0 && list.keyAt(starts[i-1]) == list.keyAt(start) {
			return questionList{}, "", false
		}
		all.WriteByte(byte(start >> 8))
		all.WriteByte(byte(start))
	}
	list.order = all.String()[len(payload):]
	return list, rest, true
}

// cutQuestion decodes the question at the front of a text, and also returns what comes
// after it in the text. It returns false if there is no well-formed question.
func cutQuestion(text string) (q Question, rest string, ok bool) {
	if len(text) < 2 || len(text)-2 < int(text[1]) {
		return q, "", false
	}
	size := int(text[1])
	q.Kind, q.Key, rest = Kind(text[0]), text[2:2+size], text[2+size:]
	return q, rest, q.wellFormed()
}

// inOrder yields the questions, in the order in which they were asked.
func (l questionList) inOrder(yield func(Question) bool) {
	for text := l.text; text != ""; {
		q, rest, ok := cutQuestion(text)
		if !ok || !yield(q) {
			return
		}
		text = rest
	}
}

// kindOf returns the kind of the question with this key, and false if there is no such
// question. kindOf uses a binary search, because reading all questions for each answer
// takes long if there are many questions and answers.
func (l questionList) kindOf(key string) (kind Kind, ok bool) {
	for order := l.order; order != ""; {
		middle := len(order) / 4 * 2
		start := int(order[middle])<<8 | int(order[middle+1])
		q, _, wellFormed := cutQuestion(l.text[start:])
		if !wellFormed {
			break
		}
		switch strings.Compare(key, q.Key) {
		case 0:
			return q.Kind, true
		case -1:
			order = order[:middle]
		default:
			order = order[middle+2:]
		}
	}
	return 0, false
}

func (l questionList) keyAt(start uint16) string {
	text := l.text[start+1:]
	return text[1 : 1+int(text[0])]
}
