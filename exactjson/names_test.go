package exactjson

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestNamesFoldAsEncodingJSONFoldsThem(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		name := string(r)
		for _, other := range []string{strings.ToUpper(name), strings.ToLower(name), string(unicode.SimpleFold(r)), "k", "s", "K"} {
			if (fold(name) == fold(other)) != strings.EqualFold(name, other) {
				t.Fatalf("%q and %q", name, other)
			}
		}
	}
	var kelvin struct {
		K string `json:"k"`
	}
	if err := json.Unmarshal([]byte(`{"K":"x"}`), &kelvin); err != nil || kelvin.K != "x" || fold("K") != fold("k") {
		t.Errorf("encoding/json no longer folds: %+v, %v", kelvin, err)
	}
}
