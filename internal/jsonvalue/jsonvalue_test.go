package jsonvalue

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripseal/tripseal/internal/argdigest"
	"github.com/tripseal/tripseal/internal/jsonorder"
)

var plainStyle = Style{
	Strings: StringStyle{Surrogates: true, Short: Usual.Short},
	Number:  func(dst, literal []byte) ([]byte, bool) { return append(dst, literal...), true },
}

func plainly(a *Arguments) error {
	if !a.Append(&plainStyle) {
		return errors.New("refused")
	}
	return nil
}

func rewrite(t *testing.T, text string) string {
	t.Helper()
	out, err := RewriteArguments([]byte(text), jsonorder.AnyNames, plainly)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
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
		if got := rewrite(t, text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	long := "{" + strings.Repeat(`"a":1,`, 100) + `"a":2}`
	if got := rewrite(t, long); got != `{"a":2}` {
		t.Errorf("a hundred members of one name become %s", got)
	}
}

// TestWhatIsRefusedDoesNotDependOnTheDigest checks that SumArguments refuses what the native digest
// refuses, with the same error.
func TestWhatIsRefusedDoesNotDependOnTheDigest(t *testing.T) {
	for _, text := range []string{
		`{"a":1,"\u0061":2}`, `[{"b":{"a":1,"a":1}}]`, `{"\ud800":1}`, `{"b":0,"a":0,"b":0}`, `NaN`, `[Infinity]`, `-Infinity`, `1 2`, ` `, "\"\xff\"",
		`1e1234567890123456789`, strings.Repeat("[", 129) + strings.Repeat("]", 129), `"` + strings.Repeat("x", argdigest.MaxText) + `"`,
	} {
		_, native := argdigest.Sum([]byte(text))
		_, err := SumArguments([]byte(text), plainly)
		if native == nil || err == nil || err.Error() != native.Error() {
			t.Errorf("%.40q: %v, the native digest says %v", text, err, native)
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

func TestLevels(t *testing.T) {
	for levels, ok := range map[int]bool{1: true, jsonorder.MaxLevels: true, jsonorder.MaxLevels + 1: false, 100_000: false} {
		text := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		read := 0
		_, err := SumArguments([]byte(text), func(a *Arguments) error {
			err := plainly(a)
			read = a.Levels()
			return err
		})
		if (err == nil) != ok || ok && read != levels {
			t.Errorf("%d levels: %v", levels, err)
		}
		members := ReadMembers(`{"":` + strings.Repeat("[", levels-1) + "0" + strings.Repeat("]", levels-1) + `}`)
		if _, read := members.Next(); read != ok {
			t.Errorf("a member in an object of %d levels: %v", levels, read)
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

// FuzzParse compares ReadMembers and RewriteArguments with encoding/json.
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
		once, err := RewriteArguments([]byte(text), jsonorder.AnyNames, plainly)
		valid := json.Valid([]byte(text)) && utf8.ValidString(text)
		if err == nil && !valid {
			t.Fatalf("%q is read", text)
		}
		if err != nil {
			if valid && depth(text) <= jsonorder.MaxLevels && !mayHaveLongNumber(text) {
				t.Fatalf("%q is refused: %v", text, err)
			}
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q becomes %q", text, once)
		}
		if again := rewrite(t, string(once)); again != string(once) {
			t.Fatalf("%q becomes %q, then %q", text, once, again)
		}
		// A long text is read twice. The result must be the same.
		if long := `["` + strings.Repeat("x", 10_000) + `",`; depth(text) < jsonorder.MaxLevels {
			if got := rewrite(t, long+text+"]"); got != long+string(once)+"]" {
				t.Fatalf("%q becomes %q, then %q", text, once, got[len(long):])
			}
		}
		// SumArguments must refuse what the native digest refuses. In addition, it refuses objects
		// with alike names: see jsonorder.Object.Alike.
		_, native := argdigest.Sum([]byte(text))
		sum, err := SumArguments([]byte(text), plainly)
		if err != nil && strings.Contains(err.Error(), "two names that differ only in upper and lower case") {
			return
		}
		if (err == nil) != (native == nil) || err == nil && sum != sha256.Sum256(once) {
			t.Fatalf("%q: %x, %v; the native digest: %v", text, sum, err, native)
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
		if isObject && depth(text) <= jsonorder.MaxLevels && !mayHaveLongNumber(text) {
			t.Fatalf("%q has no members", text)
		}
		return
	}
	if !isObject {
		t.Fatalf("%q has members", text)
	}
	last := map[string]Member{}
	for _, v := range got {
		last[strings.ToValidUTF8(v.Name, "\ufffd\ufffd\ufffd")] = v
	}
	for _, v := range got {
		if !utf8.ValidString(v.Name) {
			continue // encoding/json reads this name as a different name
		}
		v = last[v.Name]
		raw, known := want[v.Name]
		if !known || !strings.Contains(v.Name, "\ufffd") && string(raw) != v.Raw {
			t.Fatalf("%q: the member %q is %q, not %q", text, v.Name, v.Raw, raw)
		}
		var s string
		if v.Kind == String && (json.Unmarshal(raw, &s) != nil || utf8.ValidString(v.Text) && !strings.Contains(v.Name, "\ufffd") && s != v.Text) {
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
