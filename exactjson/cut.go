package exactjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Cut removes the member with this name from the text of a JSON object. The member's value must be
// a string. Cut returns the rest of the text, and the string, which is "" if the member is missing
// or null. If the text is not an object, Cut returns it unchanged. Use Cut to take the cursor out
// of a tool's arguments. Do this before you check them against the schema, check their length, or
// bind the next cursor to them: the cursor counts in none of these.
//
// Cut builds no Go value from the rest, so you can check the length of the rest before
// you call [Read]. The error is [ErrMalformed] if the text is not JSON, or if the member
// occurs twice or is not a string. Cut does not remove a member whose name differs from
// the given name only in upper and lower case: see [Names].
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
	var value json.RawMessage // the value of the member; nil until it is found
	rest = text
	for decoder.More() { // decoder.More moves the offset to the comma before the next member, or to the name of the first member
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
			end = decoder.InputOffset() + 1 // also remove the comma after the first member
		}
		// Refuse the text if the given name has U+FFFD. The decoder also turns half a surrogate
		// pair into U+FFFD, so the name in the text may differ from the given name.
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
