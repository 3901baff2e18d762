package tripseal

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tripseal/tripseal/internal/guard"
)

// Round is one request of a flow. [Boundary.Open] returns it, and [Boundary.Seal] reuses what Open computed. A Round
// is not safe for concurrent use, and a copy is independent of the original.
type Round struct {
	boundary  *Boundary
	binding   Binding
	digests   digests   // the digests of the binding above
	caller    Principal // tells who is calling; nil after its result was stored in binding.User
	contents            // what the request's token holds; zero on a first round
	arguments []byte    // the digest of the arguments, computed by a format that is not native; nil until it is known
	waived    ClaimSet  // the claims that the operator waived for the token's format
	named     bool      // true if a token says that it was sealed for this target
	opened    bool      // true if the request's token was accepted
}

// contents is what a token holds.
type contents struct {
	claims    Claims
	questions questionList
	sealed    [digestSize]byte // the digest of the arguments, from a native token
}

// Format writes the round's number, without state, user or arguments, for every verb of package fmt. So printing a
// round is safe.
func (r Round) Format(s fmt.State, _ rune) {
	io.WriteString(s, "tripseal.Round("+strconv.Itoa(r.claims.Round)+")")
}

// State returns what the handler wrote in the previous round, and true. It returns false if the handler wrote no state,
// if this is a first round, or if package elicit wrote the state. Pass the state to the handler in place of the token.
func (r *Round) State() (state string, ok bool) {
	if r.claims.Elicit {
		return "", false
	}
	return r.claims.State, r.claims.HasState
}

// Elicit returns what package elicit wrote in the previous round, and true. No handler may get this state, nor the
// answers that came with it: State and Accepts return nothing of them. An adapter passes both to elicit.Arrive.
func (r *Round) Elicit() (state string, ok bool) {
	if !r.claims.Elicit {
		return "", false
	}
	return r.claims.State, true
}

// First reports whether this is a first round: the request brought no token, or its token was rejected and
// [Config.AskAgain] applied. On a first round nothing was asked before, so an adapter usually drops the answers.
func (r *Round) First() bool { return !r.opened }

// Asked yields the questions that the previous round asked: see slices.Collect. It yields none if the operator waived
// [ClaimQuestions] because the token's format cannot carry questions. To check an answer, call [Round.Accepts].
func (r *Round) Asked(yield func(Question) bool) { r.questions.inOrder(yield) }

// FlowEnds returns when the round's flow ends by [Config.MaxFlow], or the zero time if nothing was asked in the flow
// yet, or there is no limit. An adapter that asks during the call waits for no answer beyond that.
func (r *Round) FlowEnds() (at time.Time) {
	if b := r.boundary; b != nil && r.claims.Flow != [16]byte{} && b.config.MaxFlow != NoLimit {
		at = time.UnixMilli(r.claims.FlowStart).Add(b.config.MaxFlow)
	}
	return at
}

// identify calls the function r.caller, unless that was done already, and keeps the user that it returns.
func (r *Round) identify(ctx context.Context) *failure {
	if r.caller == nil {
		return nil
	}
	user, cause := r.caller.identify(ctx)
	if cause != nil {
		return &failure{reason: ReasonPrincipalFailed, cause: cause}
	}
	r.binding.User, r.caller = user, nil
	return nil
}

// Request is a request that carries a token, or whose result will carry one. An adapter makes one for each request,
// and passes it to [Boundary.Open].
type Request struct {
	// Method is the method's name in the protocol: tools/call, prompts/get or resources/read.
	Method string
	// Target is the tool's or prompt's name, or the resource's URI.
	Target string
	// Arguments is the JSON text of params.arguments as it arrived. If the arguments include a cursor, leave the
	// cursor out. Nil and null mean {}. If the request has a token, Open digests the arguments and Seal uses that
	// digest. On a first round Seal reads the arguments, so they must not change until Seal returns: give Open a copy
	// if a handler can change these bytes.
	Arguments []byte
	// Principal tells who is calling; nil means that there is no user. The boundary calls it when it opens or seals a
	// token: once a round, or twice if a token was rejected and [Config.AskAgain] is set. On a first round it is
	// called in Seal, after the handler has run. It must still return the same user at that time.
	Principal Principal
}

// Principal returns the name of the verified user that is calling, or "" for no user. A name has at most 4096 bytes
// and always means the same user. If the principal fails, panics or returns a longer name, the boundary does not open
// or seal the token. An adapter makes a Principal for each request, from what its SDK knows about the caller.
type Principal func(ctx context.Context) (string, error)

// User returns a principal for a user that is already known. If id is empty, the principal returns an error: a caller
// who has signed in must not count as nobody. Use this principal if the user was verified before the request reached
// the adapter.
func User(id string) Principal {
	return func(context.Context) (string, error) {
		if id == "" {
			return "", errEmptyUser
		}
		return id, nil
	}
}

// Identify calls p and returns the name of the user that is calling. It returns "" if p is nil. If p fails, panics or
// returns a name of more than 4096 bytes, the error is a [*PartError]. Use Identify if your own code needs the name; a
// boundary calls the principal itself.
func (p Principal) Identify(ctx context.Context) (user string, err error) {
	user, failed := p.identify(ctx)
	return user, failed.OrNil()
}

func (p Principal) identify(ctx context.Context) (user string, failed *PartError) {
	if p == nil {
		return "", nil
	}
	failed = guard.Call(func() (err error) {
		if user, err = p(ctx); err == nil && len(user) > maxUser {
			err = errLongUser
		}
		return err
	})
	if failed != nil {
		return "", failed
	}
	return user, nil
}

const maxUser = 4096 // bytes

const errLongUser = plainError("the user's name is longer than 4096 bytes")

const errEmptyUser = plainError("the user's id is empty")

// Kind is the kind of a question. An adapter derives it from the method and the mode of the question.
type Kind uint8

// The kinds of questions that a server may ask.
const (
	KindForm     Kind = iota + 1 // asks the user to fill in a form: an elicitation in form mode
	KindURL                      // asks the user to open a URL: an elicitation in URL mode
	KindSampling                 // asks the client's model for a message: a sampling request
	KindRoots                    // asks the client which roots (folders) the server may use
)

// Takes reports whether an answer of the given kind fits a question of kind k. An answer to a form looks like an
// answer to a URL, so an answer to one kind also fits the other. [Round.Accepts] calls Takes; call it yourself only to
// compare kinds without a round.
func (k Kind) Takes(answer Kind) bool { return k == answer || k.elicits() && answer.elicits() }

func (k Kind) elicits() bool { return k == KindForm || k == KindURL }

// The limits of what one round can ask. [Boundary.Seal] refuses more.
const (
	MaxQuestions   = 64  // how many questions one round can ask
	MaxQuestionKey = 128 // how many bytes the key of a question can have
)

// Question identifies one entry of inputRequests: an answer must match its key and kind. Questions can be compared
// with ==. An adapter passes one to [Boundary.Seal] for each entry.
type Question struct {
	Key  string // the entry's name in inputRequests, at most [MaxQuestionKey] bytes
	Kind Kind   // tells which kind of answer fits
}

func (q *Question) wellFormed() bool {
	return len(q.Key) <= MaxQuestionKey && KindForm <= q.Kind && q.Kind <= KindRoots
}

// wellFormed reports whether one round can ask these questions: there are not too many, each is well-formed, and no
// two have the same key.
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

// distinctKeys reports whether no two questions have the same key. It sorts the keys, because comparing every pair of
// keys takes long if there are many.
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

// Accepts reports whether an answer may reach the handler. The previous round must have asked a question with this
// key, and an answer of this kind must fit it. An adapter calls Accepts for each answer, and drops the answer if
// Accepts returns false. On a first round, Accepts always returns false, and also if package elicit asked: see
// [Round.Elicit]. If the operator waived [ClaimQuestions] for the token's format, Accepts returns true for every other
// answer.
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

// questionList holds questions in the encoding of the native record. A round keeps them encoded, and decodes them on
// demand without an allocation.
type questionList struct {
	text  string // the questions, in the order in which they were asked
	order string // two bytes for each question, sorted by key: where the question begins in questionList.text
}

// This compiles only if two bytes can hold every position in a text of questions.
const _ = uint16(MaxQuestions * (2 + MaxQuestionKey))

func appendQuestions(dst []byte, questions []Question) []byte {
	for i := range questions {
		q := &questions[i]
		dst = append(dst, byte(q.Kind), byte(len(q.Key)))
		dst = append(dst, q.Key...)
	}
	return dst
}

// cutQuestions cuts n well-formed questions off the front of a payload, and returns them and the rest of the payload.
// One allocation holds the questions and the rest. cutQuestions returns false if the payload does not begin with n
// well-formed questions, or if two of them have the same key.
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

// cutQuestion decodes the question at the front of a text, and also returns what comes after it in the text. It
// returns false if there is no well-formed question.
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

// kindOf returns the kind of the question with this key, and false if there is no such question. kindOf uses a binary
// search, because reading all questions for each answer takes long if there are many questions and answers.
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
