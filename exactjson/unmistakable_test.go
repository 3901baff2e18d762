package exactjson_test

import (
	"strings"
	"testing"

	"github.com/tripseal/tripseal/exactjson"
)

func TestTextThatTwoParsersReadDifferentlyIsMistakable(t *testing.T) {
	var known exactjson.Names
	known.Add("action", "content")
	for text, want := range map[string]bool{
		`{"action":"accept","content":{"ok":true}}`: true,
		`{"action":"accept","other":{"Action":1}}`:  true, // the known names are those of the outermost object
		`{}`:                                     true,
		`{"action":"accept","action":"decline"}`: false,
		`{"action":"accept","content":{"ok":1,"ok":2}}`: false,
		`{"Action":"accept"}`:                           false,
		`{"a\u0063tion":"accept","action":"decline"}`:   false,
		`{"conten\u0054":1}`:                            false,
		"{\"action\":\"\xff\"}":                         false,
		`{"action":"accept"} {}`:                        false,
		`{"action":"accept"`:                            false,
		`["action"]`:                                    false,
		`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: false,
	} {
		if got := exactjson.Unmistakable([]byte(text), known); got != want {
			t.Errorf("%.60s: %v, want %v", text, got, want)
		}
	}
}
