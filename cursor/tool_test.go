package cursor_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripseal/tripseal/cursor"
)

func pageOptions(t testing.TB, o cursor.PageOptions) *cursor.PageOptions {
	t.Helper()
	options, err := o.WithDefaults(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	return &options
}

func TestWhatIsLeftOfTheArgumentsStaysAsItIsWritten(t *testing.T) {
	options := pageOptions(t, cursor.PageOptions{Cursor: `a "c"`})
	for arguments, want := range map[string]string{
		``: `{}`, ` null `: `{}`, `{}`: `{}`, "\t{ }\n": `{}`,
		`{"a \"c\"":"x"}`:                             `{}`,
		`{"a \u0022c\u0022":"x","b" : 1.50e+1 }`:      `{"b" : 1.50e+1}`,
		` {"b":"\u00e9\ud800" ,"a \"c\"" : "x"}`:      `{"b":"\u00e9\ud800"}`,
		`{"b":1,"a \"c\"":"x","b":{"a \"c\"":[ 2 ]}}`: `{"b":1,"b":{"a \"c\"":[ 2 ]}}`,
	} {
		rest, token, err := options.Cut([]byte(arguments))
		if err != nil || string(rest) != want || (token == "x") != strings.Contains(arguments, `"x"`) {
			t.Errorf("%s: %s, %q, %v", arguments, rest, token, err)
		}
	}
}

func TestTheListedSchemaIsTheAuthorsWithTheCursor(t *testing.T) {
	options := pageOptions(t, cursor.PageOptions{Cursor: `c"`, Unbound: []string{"b"}})
	property := `"c\"":{"description":"Where to go on: the cursor that came with the page before, ` +
		`with the other arguments unchanged, except \"b\". Leave it out for the first page.","type":["string","null"]}`
	for schema, want := range map[string]string{
		`{"properties":{"b":1e400}, "type":"object"}`:  `{"properties":{"b":1e400,` + property + `}, "type":"object"}`,
		`{ "prop\u0065rties" : {"z" : {} , "b":{} } }`: `{ "prop\u0065rties" : {"z" : {} , "b":{},` + property + `} }`,
	} {
		if listed, err := options.InputSchema([]byte(schema)); err != nil || string(listed) != want {
			t.Errorf("%s: %s, %v", schema, listed, err)
		}
	}
	options.Unbound = nil
	property = strings.Replace(property, `, except \"b\"`, "", 1)
	for schema, want := range map[string]string{
		`{}`:                    `{"properties":{` + property + `}}`,
		` { "type":"object" } `: ` { "type":"object","properties":{` + property + `}} `,
		`{"properties":null}`:   `{"properties":{` + property + `}}`,
		`{"properties":{ }}`:    `{"properties":{` + property + `}}`,
	} {
		if listed, err := options.InputSchema([]byte(schema)); err != nil || string(listed) != want {
			t.Errorf("%s: %s, %v", schema, listed, err)
		}
	}
}

func TestAnArgumentThatClashesWithTheCursorIsRefusedAtRegistration(t *testing.T) {
	for _, name := range []string{"cursor", "Cursor", "CURSOR", "curſor", `\u0063ursor`, `C\u0055RSOR`} {
		schema := []byte(`{"properties":{"a":{},"` + name + `":{}}}`)
		_, err := pageOptions(t, cursor.PageOptions{}).InputSchema(schema)
		if err == nil || !strings.Contains(err.Error(), "clashes") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := pageOptions(t, cursor.PageOptions{Cursor: "page"}).InputSchema(schema); err != nil {
			t.Error(err)
		}
	}
	for _, schema := range []string{
		``, `null`, `true`, `[]`, `{`, `{} {}`, `{"properties":[]}`, `{"properties":{"a"}}`,
	} {
		if listed, err := pageOptions(t, cursor.PageOptions{}).InputSchema([]byte(schema)); err == nil {
			t.Errorf("%s: %s", schema, listed)
		}
	}
}

// FuzzCut compares the arguments before and after, as encoding/json decodes them.
func FuzzCut(f *testing.F) {
	options := pageOptions(f, cursor.PageOptions{MaxArguments: 512})
	f.Fuzz(func(t *testing.T, arguments string) {
		rest, token, err := options.Cut([]byte(arguments))
		isObject, found, text := members(arguments)
		if err != nil {
			levels := strings.Count(arguments, "[") + strings.Count(arguments, "{")
			plain := utf8.ValidString(arguments) && len(arguments) <= 512 && levels <= 100 && !strings.ContainsAny(arguments, "eE")
			if plain && isObject && found <= 1 && (text == nil || text[0] == '"' || string(text) == "null") {
				t.Fatalf("%q is refused: %v", arguments, err)
			}
			return
		}
		if !isObject || found > 1 || len(rest) > 512 {
			t.Fatalf("%q is taken: %q", arguments, rest)
		}
		before, after := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		unread := json.Unmarshal([]byte(arguments), &before) != nil && strings.TrimSpace(arguments) != ""
		if unread || json.Unmarshal(rest, &after) != nil {
			t.Fatalf("%q became %q", arguments, rest)
		}
		delete(before, "cursor")
		if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q", arguments, rest)
		}
		var want string
		if text != nil && json.Unmarshal(text, &want) != nil || utf8.ValidString(token) && token != want {
			t.Fatalf("%q holds the cursor %q, not %q", arguments, want, token)
		}
		if again, none, err := options.Cut(rest); err != nil || none != "" || !bytes.Equal(again, rest) {
			t.Fatalf("%q is cut to %q, then to %q, %v", arguments, rest, again, err)
		}
	})
}

// members reads arguments with encoding/json. It returns how many members are called cursor, and the
// value of the last one.
func members(arguments string) (isObject bool, found int, value json.RawMessage) {
	if text := strings.Trim(arguments, " \t\r\n"); text == "" || text == "null" {
		return true, 0, nil
	}
	decoder := json.NewDecoder(strings.NewReader(arguments))
	if open, err := decoder.Token(); !json.Valid([]byte(arguments)) || err != nil || open != json.Delim('{') {
		return false, 0, nil
	}
	for decoder.More() {
		name, _ := decoder.Token()
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return false, 0, nil
		}
		if name == "cursor" {
			found, value = found+1, raw
		}
	}
	return true, found, value
}
