package exactjson

import (
	"errors"
	"strings"
	"testing"
)

func TestWhatIsCutLeavesTheTextThatItWouldHaveBeenWithoutIt(t *testing.T) {
	for text, want := range map[string][2]string{
		``: {``, ``}, `null`: {`null`, ``}, `[{"c":"x"}]`: {`[{"c":"x"}]`, ``}, ` "c" `: {` "c" `, ``}, `{}`: {`{}`, ``}, `{"a":{"c":"x"}}`: {`{"a":{"c":"x"}}`, ``},
		`{"c":"x"}`: {`{}`, `x`}, `{ "c" : "x" }`: {`{  }`, `x`}, `{"c":null}`: {`{}`, ``}, `{"c":""}`: {`{}`, ``}, `{"C":"x"}`: {`{"C":"x"}`, ``},
		`{"c":"x","a":1}`: {`{"a":1}`, `x`}, `{ "c" : "x" , "a":1}`: {`{  "a":1}`, `x`}, `{"a":1,"c":"x"}`: {`{"a":1}`, `x`}, `{"a":1 , "c" : "x" }`: {`{"a":1  }`, `x`},
		`{"a":1,"c":"x","b":[2]}`: {`{"a":1,"b":[2]}`, `x`}, `{"\u0063":"\u0078"}`: {`{}`, `x`}, `{"c":"\ud800"}`: {`{}`, "\ufffd"}, `{"a":"c","c":"a"}`: {`{"a":"c"}`, `a`},
	} {
		rest, member, err := Cut([]byte(text), "c")
		if err != nil || string(rest) != want[0] || member != want[1] {
			t.Errorf("%q: %q, %q, %v", text, rest, member, err)
		}
	}
	for _, text := range []string{
		`{`, `{"c":"x",}`, `{"c":"x"}x`, `{,"c":"x"}`, `{"c":"x" "a":1}`, ` `, `{"c":1}`, `{"c":["x"]}`, `{"c":{}}`, `{"c":true}`, "{\"c\":\"\xff\"}",
		`{"c":"x","c":"x"}`, `{"c":null,"c":null}`, `{"c":"x","a":1,"\u0063":"x"}`, strings.Repeat(`[`, 20_000),
	} {
		if rest, member, err := Cut([]byte(text), "c"); !errors.Is(err, ErrMalformed) || rest != nil || member != "" {
			t.Errorf("%.40q: %q, %q, %v", text, rest, member, err)
		}
	}
	if _, _, err := Cut([]byte(`{"\ud800":"x"}`), "\ufffd"); !errors.Is(err, ErrMalformed) {
		t.Errorf("a half pair is a name: %v", err)
	}
}
