package exactjson

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
)

type fuzzIn struct {
	fuzzFilter
	*FuzzEmbedded
	ID     int64                 `json:"id,omitempty"`
	Limit  *int64                `json:"limit,omitempty"`
	Filter *fuzzFilter           `json:"filter,omitempty"`
	Own    *fuzzOwn              `json:"own,omitempty"`
	List   []fuzzFilter          `json:"list,omitempty"`
	Map    map[string]fuzzFilter `json:"map,omitempty"`
	Any    any                   `json:"any,omitempty"`
	Raw    json.RawMessage       `json:"raw,omitempty"`
	Pair   *[2]int8              `json:"pair,omitempty"`
}

// FuzzRead compares the results of Read, Text and Put with those of oracle, which shares no
// code with them.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"own":{"Tenant":"other"},"raw":{"tenant":"mine"}}`, `{"any":[1.5,18446744073709551615,{"x":-0.0}],"count":18446744073709551615}`,
		`{"any":[1e20,9007199254740992.5,1e-400]}`, `{"pair":[1,2,3]}`, `{"list":[{"size":1e1}],"map":{"a":{"tenant":"mine"},"A":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	var known Names // the member names of fuzzOwn, so that Put refuses misspelt ones
	known.Add("tenant", "size")
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := Read(text)
		if err != nil {
			if value != nil || !errors.Is(err, ErrMalformed) && err != errNumber {
				t.Fatalf("%q: %v, and yet %v", text, err, value)
			}
			return
		}
		given := oracle(t, text)
		one, err := Text(value)
		if err != nil {
			t.Fatalf("%q has no text: %v", text, err)
		}
		if was := oracle(t, one); !agree(given, was) || !agree(was, given) {
			t.Fatalf("%q is written as %s", text, one)
		}
		again, err := Read(one)
		if err != nil || !reflect.DeepEqual(again, value) {
			t.Fatalf("%q is read as %v, and its text as %v, %v", text, value, again, err)
		}
		var whatever any
		if err := Put(value, &whatever, Names{}); err != nil || !reflect.DeepEqual(whatever, value) {
			t.Fatalf("%q in an any is %v, %v", text, whatever, err)
		}
		in := fuzzIn{ID: 7}
		if err := Put(value, &in, known); err != nil {
			if !reflect.DeepEqual(in, fuzzIn{}) {
				t.Fatalf("%q: %v, and yet %+v", text, err, in)
			}
			return
		}
		landed, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := oracle(t, landed); value != nil && !agree(got, given) {
			t.Fatalf("%q became %s", text, landed)
		}
	})
}

// FuzzCut compares Cut with Read, which reads the whole text.
func FuzzCut(f *testing.F) {
	for _, seed := range []string{``, `null`, `{"cursor":"x"}`, `{ "cursor" : "x" , "a":1}`, `{"a":1,"\u0063ursor":null,"b":2}`, `{"cursor":"x","cursor":"y"}`, `{"cursor":7}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rest, cursor, err := Cut(text, "cursor")
		value, wrong := Read(text)
		object, _ := value.(map[string]any)
		if err != nil {
			_, isText := object["cursor"].(string)
			if rest != nil || cursor != "" || !errors.Is(err, ErrMalformed) {
				t.Fatalf("%q: %v, and yet %q and %q", text, err, rest, cursor)
			}
			if wrong == nil && (object["cursor"] == nil || isText) {
				t.Fatalf("%q can be read, but not cut: %v", text, err)
			}
			return
		}
		if len(rest) > len(text) || strings.TrimSpace(string(text)) == "" && len(text) > 0 {
			t.Fatalf("%q was cut to %q", text, rest)
		}
		left, err := Read(rest)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v; without the cursor, %q: %v", text, wrong, rest, err)
		}
		if err != nil {
			return
		}
		if want, _ := object["cursor"].(string); cursor != want {
			t.Fatalf("%q: the cursor is %q", text, cursor)
		}
		if object != nil {
			object = maps.Clone(object)
			delete(object, "cursor")
			value = object
		}
		if !reflect.DeepEqual(left, value) {
			t.Fatalf("%q was cut to %q", text, rest)
		}
	})
}
