package exactjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal/exactjson"
)

func TestNamesThatEncodingJSONTreatsAsOneAreNotDistinct(t *testing.T) {
	var many []string
	for c := 'a'; c <= 'z'; c++ {
		many = append(many, `"`+string(c)+`":{"k":1}`)
	}
	long := strings.Join(many, ",")
	for text, want := range map[string]bool{
		``: true, `null`: true, `1`: true, `"{\"a\":1,\"a\":2}"`: true, ` [ ] `: true, `{ }`: true, `[1,"a",true,{"a":[]}]`: true, `{"a":1,"b":{"a":1}}`: true,
		`{"a":"a","b":"a"}`: true, `[{"a":1},{"a":1}]`: true, `{"a":{"x":1},"b":{"x":1}}`: true, `{"i":1,"ı":2}`: true, `{` + long + `}`: true,
		`{"a":1,"a":1}`: false, `{"a":1,"A":1}`: false, `{ "a" : 1 , "b" : 2 , "\u0041" : 3 }`: false, `[{"b":{"a":[{"x":1,"X":2}]}}]`: false, `{"k":1,"K":2}`: false,
		`{"s":1,"ſ":2}`: false, `{"ß":1,"ẞ":2}`: false, `{"\ud800":1,"\udc00":2}`: false, "{\"\xff\":1,\"\ufffd\":2}": false, `{"":1,"":2}`: false,
		`{` + long + `,"Z":1}`: false, `{"a":1,` + long + `}`: false, `{"0":[` + strings.Repeat(`{"a":1},`, 100) + `{"a":1,"A":1}]}`: false,
		`{`: false, `{"a":1} {}`: false, `{"a"}`: false, ` `: false, strings.Repeat("[", 20_000): false,
		strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000): true,
	} {
		before := []byte(text)
		if got := exactjson.Distinct(before); got != want || string(before) != text {
			t.Errorf("%.80s: %v, want %v", text, got, want)
		}
	}
}

func TestNamesBelowTheOuterLevelsAreNotCompared(t *testing.T) {
	for text, want := range map[string]int{ // the outermost level at which an object has the same name twice, or 9 if there is none
		`{"a":1,"A":1}`: 1, `{"a":{"b":1,"b":1}}`: 2, `[{"a":1,"a":1}]`: 2, `{"a":{"b":[{"x":1,"X":2}]}}`: 4, `{"a":{"b":1,"c":1}}`: 9, `{"a":{"a":{"b":1,"b":2}},"b":{"x":1,"X":2}}`: 2,
	} {
		for levels := range 6 {
			if got := exactjson.DistinctWithin([]byte(text), levels); got != (levels < want) {
				t.Errorf("%s within %d levels: %t", text, levels, got)
			}
		}
	}
	if exactjson.DistinctWithin([]byte(`{`), 1) {
		t.Error("a text that is not JSON is distinct")
	}
}

func TestTextsAreTheSameIfTheyMeanTheSame(t *testing.T) {
	for _, pair := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, ` { "b": 2.0, "\u0061": 1 }`, true}, {``, `{}`, true}, {`null`, `{}`, true}, {`{"a":1,"a":1}`, `{"a":1,"a":1}`, true}, {`x`, `x`, true},
		{`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, `{"A":1}`, false}, {`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":1,"a":1}`, `{ "a":1,"a":1}`, false}, {`x`, `y`, false}, {``, `[]`, false},
	} {
		if got := exactjson.Same([]byte(pair.a), []byte(pair.b)); got != pair.want {
			t.Errorf("%s and %s: %t", pair.a, pair.b, got)
		}
	}
}

// FuzzDistinct compares Distinct with distinctTokens, which reads the text with encoding/json.
func FuzzDistinct(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		want := len(text) == 0 || json.Valid(text) && distinctTokens(json.NewDecoder(bytes.NewReader(text)))
		if got := exactjson.Distinct(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	})
}

func distinctTokens(decoder *json.Decoder) bool {
	decoder.UseNumber()
	open, err := decoder.Token()
	if err != nil {
		return false
	}
	if open != json.Delim('{') && open != json.Delim('[') {
		return true
	}
	var names []string
	for decoder.More() {
		if open == json.Delim('{') {
			token, _ := decoder.Token()
			for _, name := range names {
				if strings.EqualFold(name, token.(string)) {
					return false
				}
			}
			names = append(names, token.(string))
		}
		if !distinctTokens(decoder) {
			return false
		}
	}
	_, err = decoder.Token()
	return err == nil
}
