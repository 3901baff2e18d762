package tripseal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/tripseal/tripseal/internal/jsonloss"
)

// EncodeState returns a value as JSON, to be used as a state. It refuses a value that would come
// back changed from [DecodeState]: one with data in fields that JSON does not carry, with text that
// is not UTF-8, or with a time.Time that would come back as another instant. In a field of type
// any, EncodeState also refuses bytes, and numbers that a float64 cannot hold exactly, such as most
// integers beyond 2^53. DecodeState returns numbers in such a field as float64. Apart from
// time.Time, EncodeState trusts types with JSON methods of their own, even those that lose
// something: *big.Float, for example, may come back rounded. Use EncodeState if a handler keeps a
// Go value and calls [Boundary.Seal] itself; with an adapter, use its function SetState.
func EncodeState(value any) (string, error) {
	v := reflect.ValueOf(value)
	if v.IsValid() { // encode through a pointer, because DecodeState uses the methods of the pointer type too
		pointer := reflect.New(v.Type())
		pointer.Elem().Set(v)
		value, v = pointer.Interface(), pointer.Elem()
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("tripseal: the state cannot be written as JSON: %w", err)
	}
	if problem := jsonloss.Of(v, text); problem != "" {
		return "", fmt.Errorf("tripseal: the state would come back changed: %s", problem)
	}
	return string(text), nil
}

// DecodeState decodes a state that [EncodeState] encoded. It refuses a state with members
// that T does not have, or with members of other types than in T. The error quotes
// nothing from the state. Use DecodeState after [Boundary.Open]; with an adapter, use its
// function State.
func DecodeState[T any](state string) (T, error) {
	var value, none T
	decoder := json.NewDecoder(bytes.NewReader([]byte(state)))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&value) != nil {
		return none, fmt.Errorf("tripseal: the state is not a %T", none)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return none, fmt.Errorf("tripseal: the state is not a %T", none)
	}
	return value, nil
}
