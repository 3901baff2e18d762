package strictjson

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

var asItIs = Style{
	Strings: StringStyle{Surrogates: true, Short: Usual.Short},
	Number:  func(dst, literal []byte) ([]byte, bool) { return append(dst, literal...), true },
	Levels:  MaxLevels,
}

// written returns a short text as the style asItIs writes it.
func written(t *testing.T, text string) string {
	t.Helper()
	r := new(reader)
	if r.begin([]byte(text)); r.problem != "" || !r.append(&asItIs, false) || r.problem != "" {
		t.Fatalf("%s: %v", text, r.refusal())
	}
	return string(r.buf)
}

func TestAPeersArgumentsAreWrittenInOneForm(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":2}`: `{"a":2,"b":1}`,
		`{"b":{"d":[],"c":{}},"a":[{"y":1,"x":2}]}`:    `{"a":[{"x":2,"y":1}],"b":{"c":{},"d":[]}}`,
		"{\"\uffff\":1,\"😀\":2,\"z\":4}":               "{\"z\":4,\"\uffff\":1,\"😀\":2}",
		" [ 1 , { } , [ ] ] ":                          `[1,{},[]]`,
		`"\u0041\/\b\u0007\u00e9\ud83d\ude00\ud800"`:   `"A/\b\u0007é😀\ud800"`,
		`["\ud83d\n","\ud83dx\ude00","\u007f<>&\"\\"]`: "[\"\\ud83d\\n\",\"\\ud83dx\\ude00\",\"\x7f<>&\\\"\\\\\"]",
	} {
		if got := written(t, text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

func TestWhatAPeerWouldSortIsRefusedWithAlikeNames(t *testing.T) {
	for _, text := range []string{`{"a":1,"A":2}`, `[{"b":{"1.0":1,"x":0,"01":2}}]`, `{"s":1,"ſ":2}`} {
		if _, err := asItIs.Sum([]byte(text)); err == nil {
			t.Errorf("%s has a digest", text)
		}
	}
}

// TestWhatIsRefusedDoesNotDependOnTheStyle checks that a style refuses what the native digest refuses, with the same
// error.
func TestWhatIsRefusedDoesNotDependOnTheStyle(t *testing.T) {
	for _, text := range []string{
		`{"a":1,"\u0061":2}`, `[{"b":{"a":1,"a":1}}]`, `{"\ud800":1}`, `{"b":0,"a":0,"b":0}`, `NaN`, `[Infinity]`, `1 2`, ` `, "\"\xff\"",
		`1e1234567890123456789`, strings.Repeat("[", 129) + strings.Repeat("]", 129), `"` + strings.Repeat("x", MaxText) + `"`,
	} {
		_, native := Sum([]byte(text))
		_, err := asItIs.Sum([]byte(text))
		if native == nil || err == nil || err.Error() != native.Error() {
			t.Errorf("%.40q: %v, the native digest says %v", text, err, native)
		}
	}
}

func TestStylesHaveLimitsOfTheirOwn(t *testing.T) {
	strict := Style{Strings: Usual, Levels: 2, Refusal: "why", Empty: []string{"null", "0"},
		Number: func(dst, literal []byte) ([]byte, bool) { return append(dst, literal...), len(literal) < 3 }}
	for text, want := range map[string]string{
		``: "{}", `null`: "{}", ` 0 `: "{}", `{}`: "{}", `[0]`: "[0]", `false`: "false", `[[12]]`: "[[12]]",
		`[[[]]]`: "", `123`: "", `"\ud800"`: "", `["` + strings.Repeat("x", 10_000) + `",0]`: `["` + strings.Repeat("x", 10_000) + `",0]`,
	} {
		sum, err := strict.Sum([]byte(text))
		var refused *Error
		if want == "" && !errors.As(err, &refused) || want != "" && (err != nil || sum != sha256.Sum256([]byte(want))) {
			t.Errorf("%.40s: %x, %v", text, sum, err)
		}
	}
}

func TestStringsThatHaveNoFormAreRefused(t *testing.T) {
	both := StringStyle{ASCII: true, Surrogates: true}
	for _, text := range []string{"\xff", "\xc3", "\xed\xa0", "\xed\xa0\xbd\xed\xb8\x80", "a\xed\xa0\xbd\xed\xb8\x80"} {
		if out, ok := AppendString(nil, text, &both); ok {
			t.Errorf("%q is written as %s", text, out)
		}
	}
	for _, text := range []string{"\xed\xa0\xbd", "\xed\xb8\x80\xed\xa0\xbd", "\xed\xa0\xbdx\xed\xb8\x80"} {
		out, ok := AppendString(nil, text, &both)
		if !ok {
			t.Errorf("%q is refused", text)
			continue
		}
		members := ReadMembers(`{"":` + string(out) + `}`)
		if v, ok := members.Next(); !ok || v.Text != text {
			t.Errorf("%q comes back as %q", text, v.Text)
		}
		if _, ok := AppendString(nil, text, &Usual); ok {
			t.Errorf("%q is written where lone surrogates are not", text)
		}
	}
}

func TestNothingOfATextIsKept(t *testing.T) {
	long := strings.Repeat("secret", 1000)
	for _, text := range []string{
		`{"secret-b":"secret","secret-a":"secret"}`, `{"secret-B":"secret","secret-b":"secret"}`,
		`{"secret-b":"` + long + `","secret-a":"` + long + `","secret-c":"secret"}`,
		`{"secret-b":"secret","secret-b":"secret"}`, `{"secret-b":"secret","secret-a":"secret"`, `"secret`, `{"b":{"d":0,"c":1e9},"a":0}`,
	} {
		r := new(reader)
		if r.begin([]byte(text)); r.problem == "" {
			r.append(&Style{Strings: Usual, Number: func(dst, _ []byte) ([]byte, bool) { return dst, false }}, false)
		}
		r.forget()
		if r.text != nil || r.hash != nil || len(strings.Trim(string(r.buf[:cap(r.buf)]), "\x00")) > 0 {
			t.Errorf("%.40s: a piece of the text is kept", text)
		}
		for _, m := range r.members {
			if m != (member{}) {
				t.Errorf("%.40s: a piece of a name is kept", text)
			}
		}
	}
}

// FuzzParse compares the style asItIs and ReadMembers with encoding/json.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+3,true,false,null,"\ud83d\ude00\ud800"]}`, `"é`, `[01]`, `{"a" :1,}`, "\"\x01\"", `[1.]`, `NaN`, ` {} `,
		`{"b":{"\ud800":1,"b":[{"d":1,"c":2}]},"a":"\u0061","\u0061":0}`, `{"a":1,"A":2}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return // an empty text counts as {}
		}
		checkMembers(t, text)
		sum, err := asItIs.Sum([]byte(text))
		_, native := Sum([]byte(text))
		valid := json.Valid([]byte(text)) && utf8.ValidString(text)
		if err == nil && (native != nil || !valid) {
			t.Fatalf("%q is read; the native digest: %v", text, native)
		}
		if err != nil {
			if native == nil && !strings.Contains(err.Error(), "two names that differ only in upper and lower case") {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		once := text
		if len(text) < chunk/6 {
			once = written(t, text)
			if !json.Valid([]byte(once)) || sum != sha256.Sum256([]byte(once)) {
				t.Fatalf("%q becomes %q", text, once)
			}
			if again := written(t, once); again != once {
				t.Fatalf("%q becomes %q, then %q", text, once, again)
			}
		}
		if twice, err := asItIs.Sum([]byte(once)); err != nil || twice != sum {
			t.Fatalf("%q has another digest than %q, %v", text, once, err)
		}
	})
}

// checkMembers checks that ReadMembers and encoding/json read the same members in an object.
func checkMembers(t *testing.T, text string) {
	var got []Member
	members := ReadMembers(text)
	for v, ok := members.Next(); ok; v, ok = members.Next() {
		got = append(got, v)
	}
	var want map[string]json.RawMessage
	isObject := json.Unmarshal([]byte(text), &want) == nil && want != nil && utf8.ValidString(text)
	if !members.Whole() {
		if isObject && depth(text) <= MaxLevels && !mayHaveLongNumber(text) {
			t.Fatalf("%q has no members", text)
		}
		return
	}
	if !json.Valid([]byte(text)) {
		t.Fatalf("%q has members", text)
	}
	last := map[string]Member{}
	for _, v := range got {
		last[strings.ToValidUTF8(v.Name, "\ufffd\ufffd\ufffd")] = v
	}
	for _, v := range got {
		if !isObject || !utf8.ValidString(v.Name) {
			continue // encoding/json reads this name as a different name, or refuses names that occur twice
		}
		v = last[v.Name]
		raw, known := want[v.Name]
		if !known || !strings.Contains(v.Name, "\ufffd") && string(raw) != v.Raw {
			t.Fatalf("%q: the member %q is %q, not %q", text, v.Name, v.Raw, raw)
		}
		var s string
		if v.IsString() && (json.Unmarshal(raw, &s) != nil || utf8.ValidString(v.Text) && !strings.Contains(v.Name, "\ufffd") && s != v.Text) {
			t.Fatalf("%q: the member %q stands for %q, not %q", text, v.Name, v.Text, s)
		}
	}
}

// mayHaveLongNumber returns true if a text may have a number that is refused for its length. It
// returns true for every text with the letter e or E, because the letter may begin an exponent.
func mayHaveLongNumber(text string) bool {
	return strings.ContainsAny(text, "eE") || len(text) > 800 && strings.Contains(text, ".")
}

// depth returns an upper limit for how deep a text nests.
func depth(text string) int { return strings.Count(text, "[") + strings.Count(text, "{") }
