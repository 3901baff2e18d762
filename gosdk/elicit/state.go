package elicit

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk/internal/passage"
)

// state is what a call remembers between two rounds. It is sealed before it leaves the
// server.
type state struct {
	Version int `json:"v"`
	// Asked has the questions of the last round, by their keys.
	Asked map[string]question `json:"q,omitempty"`
	// Answers are the answers so far, by the key of the question.
	Answers map[string]answer `json:"a,omitempty"`
	// Kept has the values that Once computed, by the key passed to Once.
	Kept map[string]kept `json:"k,omitempty"`
	// Numbers is how many answers have been numbered: see answer.Number.
	Numbers int `json:"n,omitempty"`
	// Seed is a random text that elicitation ids are made from; "" if there are none.
	Seed string `json:"u,omitempty"`
	// Reworded has a count for the key of a question: how often in a row the question changed after
	// the user had answered it.
	Reworded map[string]int `json:"r,omitempty"`
}

const stateVersion = 2

// question identifies a question by its digest.
type question struct {
	Digest string `json:"d"`
	// After is the highest answer.Number among the answers that the handler had read
	// when it made the question.
	After int `json:"p,omitempty"`
}

// answer is a recorded answer, together with the question that it answers.
type answer struct {
	question
	Action  Action          `json:"o"`
	Content json.RawMessage `json:"c,omitempty"`
	// Number is the place of this answer in the order in which the handler first read
	// the answers: 1 for the first. It is 0 for an answer that was not read.
	Number int `json:"n,omitempty"`
}

// kept is a value that Once computed.
type kept struct {
	Value json.RawMessage `json:"v"`
	// After is the highest answer.Number among the answers that the handler had read when the value
	// was computed.
	After int `json:"p,omitempty"`
}

// readState reads a state that elicit wrote in an earlier round. ok is false for any
// other text, such as a state that the handler wrote when it did not use elicit yet.
// Another text may look like a state of elicit, so the caller must also check it with
// passage.Call.Written.
func readState(text string) (s state, ok bool) {
	if json.Unmarshal([]byte(text), &s) != nil || s.Version != stateVersion {
		return s, false
	}
	for key, a := range s.Answers {
		if !a.Action.valid() {
			delete(s.Answers, key)
		}
	}
	return s, true
}

// wording returns the digests of the questions that were asked, by key, in the form that
// tokens use.
func (s *state) wording() map[string][16]byte {
	wording := make(map[string][16]byte, len(s.Asked))
	for key, q := range s.Asked {
		sum, err := base64.RawURLEncoding.DecodeString(q.Digest[min(1, len(q.Digest)):])
		if err != nil || len(sum) != 16 {
			sum = make([]byte, 16) // a zero digest, which matches no token
		}
		wording[key] = [16]byte(sum)
	}
	return wording
}

func (s *state) text() (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

// digestOf returns a text: the question's kind as one digit, then the digest of its
// wording. It returns false if passage.DigestOf refuses the question.
func digestOf(question mcp.InputRequest) (string, bool) {
	kind, digest, ok := passage.DigestOf(question)
	return string('0'+rune(kind)) + base64.RawURLEncoding.EncodeToString(digest[:]), ok
}

// canAnswer reports whether the kind of an answer fits a question. The digest is that of the
// question, and begins with the question's kind.
func canAnswer(digest string, answer mcp.InputResponse) bool {
	kind := passage.KindOfAnswer(answer)
	return kind != 0 && digest != "" && tripseal.Kind(digest[0]-'0').Takes(kind)
}

// Once computes a value, such as a random id, a price or a time, in the first round that calls Once
// with this key. In later rounds it returns the same value. It keeps the value in the sealed state,
// which is sent with the call's next questions. If no more questions are sent, the value is not
// kept: Once computes a new value if the client sends the last round again. Use Once for everything
// that must not differ between rounds.
//
// If a value depends on an answer, read the answer first. If the handler has tried to read an
// answer that has not arrived yet, the function Once computes nothing and returns an error. The
// handler must return that error.
//
// Suppose that the handler read an answer, and Once then computed a value. If the user
// must now answer again, for example because the question changed, the call fails: the
// value may be wrong for the new answer, and Once never computes a value twice.
//
// The value must be the same after it was written as JSON and read back. Otherwise the call fails,
// and the log tells the author why. A call also fails if it began on a release of your server that
// kept another type under the key. One added or moved field already makes it another type. The call
// fails because Once never computes a value twice, and never returns a value with something
// missing. You can change the type of a value in two ways without failed calls:
//
//   - Give the value another key. A call that began on the earlier release then computes
//     the value under the new key.
//   - Add only fields with omitzero. In a call that began on the earlier release, the new
//     fields are empty.
func Once[T any](ask *Asker, key string, compute func() (T, error)) (T, error) {
	if ask.over {
		ask.recordMistake("a question was asked, or Once called," + insideWithin)
		return *new(T), passage.ErrPending
	}
	if !utf8.ValidString(key) {
		ask.recordMistake("the key %s of a Once is not UTF-8, so its value would not come back", tripseal.PlainText(key))
		return *new(T), passage.ErrPending
	}
	if !ask.claimKey(usedKey{true, key}) {
		ask.recordMistake("two parts of the handler (calls of Within, or the handler itself) call Once with the key %s, or inner middleware ran the handler twice: "+
			"use different keys; with Within, run the handler once", tripseal.PlainText(key))
		return *new(T), passage.ErrPending
	}
	of := reflect.TypeFor[T]()
	if before, ok := ask.onces[key]; ok && before != of {
		ask.recordMistake("two values of different types are computed by Once under the key %s: give each a key of its own", tripseal.PlainText(key))
		return *new(T), passage.ErrPending
	}
	ask.onces[key] = of
	if before, ok := ask.state.Kept[key]; ok {
		ask.after = max(ask.after, before.After)
		value, ok := reread[T](string(before.Value))
		if !ok {
			ask.recordMistake("the value that Once keeps under the key %s comes from another release and does not fit the type %v: Once computes no value twice; "+
				"if you change the type of a value, change its key too", tripseal.PlainText(key), of)
			return value, passage.ErrPending
		}
		return value, nil
	}
	if err := ask.missingAnswer(); err != nil {
		return *new(T), err
	}
	value, err := compute()
	if err == nil {
		err = ask.missingAnswer() // the function compute may have tried to read an answer that has not arrived yet
	}
	if err != nil {
		return value, err
	}
	// Return the value that later rounds will get, not the computed one: a time, for
	// example, loses its monotonic part in JSON.
	text, err := tripseal.EncodeState(value)
	same, ok := reread[T](text)
	if err != nil || !ok {
		ask.recordMistake("what Once computes under the key %s cannot be written as JSON, or would come back as another value: its type is %v", tripseal.PlainText(key), of)
		return same, passage.ErrPending
	}
	if ask.state.Kept == nil {
		ask.state.Kept = make(map[string]kept)
	}
	ask.state.Kept[key] = kept{json.RawMessage(text), ask.after}
	return same, nil
}

// missingAnswer returns an error if the handler may lack an answer that it tried to read.
// In that case, Once must not compute or keep a value. Otherwise the error is nil.
func (a *Asker) missingAnswer() error {
	if a.misfit != nil {
		return a.misfit
	}
	if a.asks || a.mistake != "" {
		return passage.ErrPending
	}
	return nil
}

// reread reads what Once wrote. ok is true only if the value encodes to the same text
// again, so that nothing was lost or added.
func reread[T any](text string) (value T, ok bool) {
	if json.Unmarshal([]byte(text), &value) == nil {
		if again, err := tripseal.EncodeState(value); err == nil && again == text {
			return value, true
		}
	}
	return *new(T), false
}
