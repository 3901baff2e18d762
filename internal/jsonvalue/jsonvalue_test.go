package jsonvalue

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpseal/mcpseal/internal/argdigest"
)

var plainStyle = Style{
	Strings: StringStyle{Surrogates: true, Short: Usual.Short},
	Number:  func(dst []byte, literal string) ([]byte, bool) { return append(dst, literal...), true },
}

func rewrite(t *testing.T, text string, style *Style) string {
	t.Helper()
	d, err := Parse(text, false)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, ok := d.Append(nil, style)
	if !ok {
		t.Fatalf("%s is refused", text)
	}
	return string(out)
}

func TestMembersAreSortedAndTheLastOfOneNameStays(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":2}`:                                `{"a":2,"b":1}`,
		`{"a":1,"b":0,"a":2}`:                          `{"a":2,"b":0}`,
		`{"a":{"x":1,"y":2},"a":{"y":3}}`:              `{"a":{"y":3}}`,
		"{\"\uffff\":1,\"😀\":2,\"\\ud800\":3,\"z\":4}": "{\"z\":4,\"\\ud800\":3,\"\uffff\":1,\"😀\":2}",
		" [ 1 , { } , [ ] ] ":                          `[1,{},[]]`,
		`"\u0041\/\b\u0007\u00e9\ud83d\ude00"`:         `"A/\b\u0007é😀"`,
	} {
		if got := rewrite(t, text, &plainStyle); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	long := "{" + strings.Repeat(`"a":1,`, 100) + `"a":2}`
	if got := rewrite(t, long, &plainStyle); got != `{"a":2}` {
		t.Errorf("a hundred members of one name become %s", got)
	}
}

func TestDuplicates(t *testing.T) {
	many := make([]string, 50)
	for i := range many {
		many[i] = `"` + strings.Repeat("k", i) + `":0`
	}
	unique := strings.Join(many, ",")
	for text, want := range map[string]bool{
		`{"a":1,"\u0061":2}`:        true,
		`[{"b":{"a":1,"a":1}}]`:     true,
		`{"a":{"a":1},"b":{"a":1}}`: false,
		`{` + unique + `}`:          false,
		`{` + unique + `,"kk":1}`:   true,
	} {
		d, err := Parse(text, false)
		if err != nil || d.Duplicates() != want {
			t.Errorf("%.40s: duplicates is not %v, %v", text, want, err)
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
		if d, err := Parse(string(out), false); err != nil || d.Text() != text {
			t.Errorf("%q comes back as %q", text, d.Text())
		}
		if _, ok := AppendString(nil, text, &Usual); ok {
			t.Errorf("%q is written where lone surrogates are not", text)
		}
	}
}

func TestLevels(t *testing.T) {
	for levels, ok := range map[int]bool{1: true, MaxLevels: true, MaxLevels + 1: false, 100_000: false} {
		d, err := Parse(strings.Repeat("[", levels)+strings.Repeat("]", levels), false)
		if (err == nil) != ok || ok && d.Levels() != levels {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
}

func TestAppendFloat(t *testing.T) {
	for want, f := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1.0": 1, "100.0": 100, "0.0001": 1e-4, "1e-05": 1e-5,
		"1000000000000000.0": 1e15, "1e+16": 1e16, "1.5e+300": 1.5e300, "5e-324": 5e-324, "0.30000000000000004": 0.1 + 0.2,
	} {
		if f == 0.1+0.2 {
			f = 0.30000000000000004
		}
		if got := string(AppendFloat(nil, f, -4, 15)); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}

// TestHostileArgumentsCostNoMoreThanTheyMay counts bytes, not seconds.
func TestHostileArgumentsCostNoMoreThanTheyMay(t *testing.T) {
	rewrite := func(d *Document, dst []byte) ([]byte, error) {
		dst, _ = d.Append(dst, &plainStyle)
		return dst, nil
	}
	const size = 1 << 20
	for name, text := range map[string]string{
		"numbers": "[" + strings.Repeat("1,", size/2) + "1]",
		"arrays":  "[" + strings.Repeat("[],", size/3) + "1]",
		"escapes": `["` + strings.Repeat(`\n`, size/2) + `"]`,
		"objects": "[" + strings.Repeat(`{"a":1},`, size/8) + "1]",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := SumArguments([]byte(text), rewrite); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if times := (after.TotalAlloc - before.TotalAlloc) / size; times > 30 {
			t.Errorf("%s: %d times the text was allocated", name, times)
		}
	}
	var before, after runtime.MemStats
	long := []byte(`"` + strings.Repeat("x", argdigest.MaxText) + `"`)
	runtime.ReadMemStats(&before)
	if _, err := SumArguments(long, rewrite); err == nil {
		t.Error("a text over the limit has a sum")
	}
	runtime.ReadMemStats(&after)
	if after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes were allocated for a text that is too long", after.TotalAlloc-before.TotalAlloc)
	}
}

// FuzzParse compares the parser with the standard library's.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0.5e+3,true,false,null,"\ud83d\ude00\ud800"]}`, `"é`, `[01]`, `{"a" :1,}`, "\"\x01\"", `[1.]`, `NaN`, ` {} `} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text, false)
		checkMembers(t, text, d)
		valid := json.Valid([]byte(text)) && utf8.ValidString(text)
		if err == nil && !valid {
			t.Fatalf("%q is parsed", text)
		}
		if err != nil {
			if valid && depth(text) <= MaxLevels && !strings.ContainsAny(text, "eE") {
				t.Fatalf("%q is refused", text)
			}
			return
		}
		once, ok := d.Append(nil, &plainStyle)
		if !ok || !json.Valid(once) {
			t.Fatalf("%q becomes %q, %v", text, once, ok)
		}
		if again := rewrite(t, string(once), &plainStyle); again != string(once) {
			t.Fatalf("%q becomes %q, then %q", text, once, again)
		}
		if d.Kind() == String && utf8.ValidString(d.Text()) {
			var want string
			if err := json.Unmarshal([]byte(text), &want); err != nil || d.Text() != want {
				t.Fatalf("%q is read as %q, not %q, %v", text, d.Text(), want, err)
			}
		}
	})
}

// checkMembers compares the members of an object with those of its document.
func checkMembers(t *testing.T, text string, d *Document) {
	var got []Member
	members := ReadMembers(text)
	for v, ok := members.Next(); ok; v, ok = members.Next() {
		got = append(got, v)
	}
	if d == nil || d.Kind() != Object {
		if members.Whole() {
			t.Fatalf("%q has members", text)
		}
		return
	}
	if !members.Whole() {
		t.Fatalf("%q has no members", text)
	}
	n := 0
	for i := d.nodes[0].first; i != 0; i = d.nodes[i].next {
		want := d.nodes[i]
		text := ""
		if want.kind == String || want.kind == Number {
			text = d.at(want.text)
		}
		if n >= len(got) || got[n].Kind != want.kind || got[n].Name != d.at(want.name) || got[n].Text != text || !json.Valid([]byte(got[n].Raw)) {
			t.Fatalf("%q: member %d differs", text, n)
		}
		n++
	}
	if n != len(got) {
		t.Fatalf("%q has %d members, not %d", text, len(got), n)
	}
}

// depth bounds how deep a text nests, from above.
func depth(text string) int { return strings.Count(text, "[") + strings.Count(text, "{") }
