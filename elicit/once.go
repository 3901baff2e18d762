package elicit

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tripseal/tripseal"
)

// Once computes a value, such as a random id, a price or a time, in the first round that calls Once with this key, and
// returns the same value in later rounds. The value is kept in the sealed state, as JSON, when the call asks again: so
// if the client repeats a round, Once computes again what that round computed. Use Once for all that must not differ
// between rounds.
//
// Read the answers on which a value depends before you call Once. If such an answer must be given again, the call
// fails: the value may be wrong for the new answer, and Once computes no value twice. The call also fails if the value
// would not come back from JSON as it was, or if an earlier release kept a value of another type under the key: give
// the value another key when you change its type.
func Once[T any](ask *Asker, key string, compute func() (T, error)) (T, error) {
	var none T
	if err := ask.stopped(); err != nil {
		return none, err
	}
	if !utf8.ValidString(key) {
		ask.fail("the key %s of a Once is not UTF-8", tripseal.PlainText(key))
		return none, ask.pending()
	}
	if before := ask.values[key]; before != nil {
		kept, ok := reread[T](before.text)
		if !ok {
			ask.fail("the value that Once keeps under the key %s comes from another release and does not fit its type: "+
				"give a value whose type has changed another key", tripseal.PlainText(key))
			return none, ask.pending()
		}
		return kept, nil
	}
	if ask.waits() {
		return none, ErrPending
	}
	computed, err := compute()
	if err == nil {
		if err = ask.stopped(); err == nil && ask.asks {
			err = ErrPending
		}
	}
	if err != nil {
		return none, err
	}
	text, err := tripseal.EncodeState(computed)
	same, ok := reread[T](text) // what later rounds will get: a time, for example, loses its monotonic part
	if err != nil || !ok {
		ask.fail("the value that Once computes under the key %s does not come back from JSON as it was",
			tripseal.PlainText(key))
		return none, ask.pending()
	}
	ask.values[key] = &value{text, ask.after}
	return same, nil
}

// reread reads what Once wrote. ok is true only if the value encodes to the same text again.
func reread[T any](text string) (value T, ok bool) {
	if json.Unmarshal([]byte(text), &value) == nil {
		if again, err := tripseal.EncodeState(value); err == nil && again == text {
			return value, true
		}
	}
	return *new(T), false
}
