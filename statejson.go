package tripseal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
)

// EncodeState returns a value as JSON, to be used as a state. It refuses a value whose JSON comes back from [DecodeState]
// changed, such as an integer beyond 2^53 in a field of type any. What JSON leaves out by itself, such as unexported
// fields, is lost. Use EncodeState if a handler keeps a Go value and calls [Boundary.Seal] itself; with an adapter, use
// its function SetState.
func EncodeState(value any) (string, error) {
	if value == nil {
		return "null", nil
	}
	// Encode through a pointer, because DecodeState uses the methods of the pointer type too.
	pointer, back := reflect.New(reflect.TypeOf(value)), reflect.New(reflect.TypeOf(value))
	pointer.Elem().Set(reflect.ValueOf(value))
	text, err := encode(pointer.Interface())
	if err != nil {
		return "", fmt.Errorf("tripseal: the state cannot be written as JSON: %w", err)
	}
	if !decodeStrictly(text, back.Interface()) {
		return "", fmt.Errorf("tripseal: a state of type %T cannot be read back from its JSON", value)
	}
	if again, err := encode(back.Interface()); err != nil || !bytes.Equal(again, text) {
		return "", fmt.Errorf("tripseal: a state of type %T would come back from its JSON as another value: "+
			"give numbers fields of their own types, and keep bytes in a []byte", value)
	}
	return string(text), nil
}

// encode does what json.Marshal does, but leaves <, > and & as they are, because a token is not HTML.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// DecodeState decodes a state that [EncodeState] encoded. It refuses a state with members
// that T does not have, or with members of other types than in T. The error quotes
// nothing from the state. Use DecodeState after [Boundary.Open]; with an adapter, use its
// function State.
func DecodeState[T any](state string) (T, error) {
	var value, none T
	if !decodeStrictly([]byte(state), &value) {
		return none, fmt.Errorf("tripseal: the state is not a %T", none)
	}
	return value, nil
}

func decodeStrictly(text []byte, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(into) != nil {
		return false
	}
	_, err := decoder.Token()
	return err == io.EOF
}
