package exactjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Cut takes the member of this name, a string, out of the text of an object. Use it for the
// cursor among a tool's arguments: the schema has no rules for it, and a limit of the
// arguments, or a cursor, is for the rest. It returns the text of the rest, and the string,
// or "" if the member is missing or null. A text that is no object comes back as it is.
//
// Cut builds no value of the rest, so the rest can be refused for its length before [Read].
// It refuses with [ErrMalformed] a text that is not JSON, and a member that is there twice
// or is no string. A name that differs only in case stays: see [Names].
func Cut(text []byte, name string) (rest []byte, member string, err error) {
	if len(text) == 0 {
		return text, "", nil
	}
	if !json.Valid(text) {
		return nil, "", ErrMalformed
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return text, "", nil
	}
	var value json.RawMessage // of the member
	rest = text
	for decoder.More() { // after this, the offset is that of the comma, or of the first name
		start := decoder.InputOffset()
		found, err := decoder.Token()
		if err != nil {
			return nil, "", ErrMalformed
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, "", ErrMalformed
		}
		if found != name {
			continue
		}
		end := decoder.InputOffset()
		if text[start] != ',' && decoder.More() {
			end = decoder.InputOffset() + 1 // the comma after the first member
		}
		// Half a surrogate pair is decoded as this character, so it may be another name.
		if value != nil || strings.ContainsRune(name, utf8.RuneError) || !utf8.Valid(raw) {
			return nil, "", ErrMalformed
		}
		value = raw
		rest = append(append(make([]byte, 0, len(text)), text[:start]...), text[end:]...)
	}
	if value == nil {
		return rest, "", nil
	}
	if json.Unmarshal(value, &member) != nil {
		return nil, "", fmt.Errorf("%w: the %s is not a text", ErrMalformed, name)
	}
	return rest, member, nil
}
