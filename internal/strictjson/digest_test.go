package strictjson

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// pairs lists pairs of texts, and says for each pair whether both texts denote the same value.
var pairs = []struct {
	a, b  string
	equal bool
}{
	// Numbers: the exact decimal value counts, not its spelling.
	{`9007199254740992`, `9007199254740993`, false},
	{`1`, `1.0`, true},
	{`1`, `1e0`, true},
	{`1.0`, `1e0`, true},
	{`1`, `10e-1`, true},
	{`1`, `0.1e1`, true},
	{`1`, `1E+0`, true},
	{`1`, `1e-0`, true},
	{`1`, `1.000000000000000000000000000000000`, true},
	{`1`, `1.000000000000000000000000000000001`, false},
	{`-0`, `-0.0`, true},
	{`-0`, `0`, false},
	{`-0.0`, `0.0`, false},
	{`0`, `0.0`, true},
	{`0`, `0e5`, true},
	{`0`, `0.000e-999999999999999999`, true},
	{`-0e9`, `-0`, true},
	{`1e400`, `1e401`, false},
	{`1e400`, `10e399`, true},
	{`1e400`, `-1e400`, false},
	{`1e-400`, `0`, false},
	{`1e-400`, `1e-401`, false},
	{`1e999999999999999999`, `10e999999999999999998`, true},
	{`1e-999999999999999999`, `0.1e-999999999999999998`, true},
	{`1e999999999999999999`, `1e999999999999999998`, false},
	{`100`, `1e2`, true},
	{`100`, `10`, false},
	{`1200`, `12e2`, true},
	{`0.05`, `5e-2`, true},
	{`0.05`, `0.5`, false},
	{`0.50`, `0.5`, true},
	{`12.34`, `1234e-2`, true},
	{`12.34`, `123.4`, false},
	{`1.7976931348623157e308`, `1.7976931348623158e308`, false},
	{`0.1`, `0.1000000000000000055511151231257827`, false},
	{`123456789012345678901234567890`, `123456789012345678901234567891`, false},
	{`123456789012345678901234567890`, `1.2345678901234567890123456789e29`, true},
	{`1`, `"1"`, false},
	{`1`, `true`, false},
	{`1`, `[1]`, false},
	{`-1`, `1`, false},
	{`5`, `50`, false},
	{`101`, `11`, false},
	{`1.01`, `10.1`, false},

	// Strings: escapes do not count, code units do.
	{`"\u00e9"`, `"é"`, true},
	{`"\u00E9"`, `"\u00e9"`, true},
	{`"\u00e9"`, `"e\u0301"`, false}, // composed and decomposed
	{`"\ud800"`, `"\ud801"`, false},
	{`"\ud800"`, `"\ufffd"`, false},
	{`"\ud801"`, `"\ufffd"`, false},
	{`"\udc00"`, `"\ud800"`, false},
	{`"\ud83d\ude00"`, `"😀"`, true},
	{`"\ud83d\ude00"`, `"\ude00\ud83d"`, false},
	{`"\ud83d\ud83d\ude00"`, `"\ud83d😀"`, true},
	{`"\ud83d\ud83d\ude00"`, `"😀\ud83d"`, false},
	{`"\ud83d"`, `"\ud83d\ude00"`, false},
	{`"\ud83dx\ude00"`, `"\ud83d\ude00x"`, false},
	{`"\ud83d\n"`, `"\ud83d\u000a"`, true},
	{`"\uDBFF\uDFFF"`, `"` + "\U0010ffff" + `"`, true},
	{`"\/"`, `"/"`, true},
	{`"\u0041"`, `"A"`, true},
	{`"\u0000"`, `""`, false},
	{`"\b\f\n\r\t\"\\"`, `"\u0008\u000c\u000a\u000d\u0009\u0022\u005c"`, true},
	{`"a"`, `"b"`, false},
	{`"a"`, `"A"`, false},
	{`"a"`, `"a "`, false},
	{`""`, `[]`, false},
	{`""`, `{"":""}`, false},
	{`"null"`, `{}`, false},
	{`"<>&"`, `"\u003c\u003e\u0026"`, true},
	{"\"\x7f\"", `"\u007f"`, true},
	{`"\u2028"`, "\"\u2028\"", true},

	// Structure.
	{`["a","b"]`, `["ab"]`, false},
	{`["ab","c"]`, `["a","bc"]`, false},
	{`[[1],2]`, `[1,[2]]`, false},
	{`[[]]`, `[]`, false},
	{`[[],[]]`, `[[[]]]`, false},
	{`[1,2]`, `[2,1]`, false},
	{`[1,2]`, `[12]`, false},
	{`[]`, `{}`, false},
	{`[null]`, `[]`, false},
	{`[false]`, `[null]`, false},
	{`[0]`, `[false]`, false},
	{`[{}]`, `[null]`, false},
	{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
	{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
	{`{"a":1}`, `{"a":1,"b":null}`, false},
	{`{"a":{"b":1}}`, `{"a":1,"b":{}}`, false},
	{`{"ab":1}`, `{"a":"b1"}`, false},
	{`{"x":{"b":[{"d":1,"c":2}],"a":0},"w":1}`, `{"w":1,"x":{"a":0,"b":[{"c":2,"d":1}]}}`, true},
	{`{"x":{"b":[{"d":1,"c":2}],"a":0},"w":1}`, `{"w":1,"x":{"a":0,"b":[{"c":1,"d":2}]}}`, false},
	{`{"b":{"y":1,"x":{"2":2,"1":1}},"a":{"z":{"b":1,"a":2}}}`, `{"a":{"z":{"a":2,"b":1}},"b":{"x":{"1":1,"2":2},"y":1}}`, true},
	{`{"\u0061":1,"b":2}`, `{"b":2,"a":1}`, true},
	{`{"\ud7ff":1,"\uffff":2}`, `{"\uffff":2,"\ud7ff":1}`, true},
	{`{"aa":1,"a":2}`, `{"a":2,"aa":1}`, true},
	{`{"aa":1,"a":2}`, `{"a":1,"aa":2}`, false},
	{`{"":1,"a":2}`, `{"a":2,"":1}`, true},
	{`{"😀":1,"\uffff":2}`, `{"\uffff":2,"\ud83d\ude00":1}`, true},
	{" {\t\"a\" :\r\n1 , \"b\": [ 1 , 2 ] } ", `{"a":1,"b":[1,2]}`, true},

	// Names that differ only in upper and lower case: encoding/json reads them into one field,
	// and the last one wins.
	{`{"a":1,"A":2}`, `{"A":2,"a":1}`, false},
	{`{"A":1,"a":2}`, `{"a":2,"A":1}`, false},
	{`{"a":1,"A":2,"b":3}`, `{"a":1,"b":3,"A":2}`, false},
	{`{"a":1,"A":2,"b":{"d":1,"c":2}}`, `{"a":1,"\u0041":2.0, "b":{"c":2,"d":1}}`, true},
	{`{"x":[{"to":1,"To":2}]}`, `{"x":[{"To":2,"to":1}]}`, false},
	{`{"s":1,"ſ":2}`, `{"ſ":2,"s":1}`, false},
	{`{"s":1,"\u017f":2}`, `{"s":1,"ſ":2}`, true},
	{`{"k":1,"\u212a":2}`, `{"\u212a":2,"k":1}`, false},
	{`{"É":1,"é":2}`, `{"é":2,"É":1}`, false},
	{`{"userName":1,"userId":2}`, `{"userId":2,"userName":1}`, true},
	{`{"_a":1,"A":2}`, `{"A":2,"_a":1}`, true},

	// Names that are the same number: encoding/json reads them into one element of a map[int]string,
	// and with GOEXPERIMENT=jsonv2 of a map[float64]string.
	{`{"1":1,"01":2}`, `{"01":2,"1":1}`, false},
	{`{"-0":1,"0":2}`, `{"0":2,"-0":1}`, false},
	{`{"+7":1,"7":2}`, `{"7":2,"+7":1}`, false},
	{`{"\u0030":1,"0\u0030":2}`, `{"00":2,"0":1}`, false},
	{`{"-1":1,"1":2}`, `{"1":2,"-1":1}`, true},
	{`{"":1,"0":2,"-":3,"+":4}`, `{"+":4,"-":3,"0":2,"":1}`, true},
	{`{"10":1,"100":2,"1":3,"0":4}`, `{"0":4,"1":3,"10":1,"100":2}`, true},
	{`{"01a":1,"1a":2,"0x1":3}`, `{"0x1":3,"1a":2,"01a":1}`, true},
	{`{"1":1,"1.0":2}`, `{"1.0":2,"1":1}`, false},
	{`{"a":0,"1":1,"b":0,"1\u002e0":2}`, `{"1.0":2,"1":1,"a":0,"b":0}`, false},
	{`{"1":1,"1.":2}`, `{"1.":2,"1":1}`, false},
	{`{".5":1,"5e-1":2}`, `{"5e-1":2,".5":1}`, false},
	{`{"10":1,"1E+1":2}`, `{"1E+1":2,"10":1}`, false},
	{`{"10":1,"0.00001e6":2}`, `{"0.00001e6":2,"10":1}`, false},
	{`{"10":1,"1_0":2}`, `{"1_0":2,"10":1}`, false},
	{`{"1":1,"_1":2}`, `{"_1":2,"1":1}`, true},
	{`{"1":1,"1e":2,".":3,"1e+":4,"e1":5,".e1":6}`, `{".e1":6,"e1":5,"1e+":4,".":3,"1e":2,"1":1}`, true},
	{`{"1":1,"1.5":2,"+-1":3,"1-1":4,"1.1.1":5,"1e1e1":6,"1e1.0":7}`, `{"1e1.0":7,"1e1e1":6,"1.1.1":5,"1-1":4,"+-1":3,"1.5":2,"1":1}`, true},
	{`{"2024-01-01":1,"2024-01-02":2}`, `{"2024-01-02":2,"2024-01-01":1}`, true},
	{`{"1":1,"１":2,"1º":3}`, `{"1º":3,"１":2,"1":1}`, true},
	// Zero has many spellings, and infinity too.
	{`{"0":1,"null":2}`, `{"null":2,"0":1}`, false},
	{`{"1":1,"null":2,"+null":3}`, `{"+null":3,"null":2,"1":1}`, true},
	{`{"0":1,"-0.0":2}`, `{"-0.0":2,"0":1}`, false},
	{`{"0":1,"0e5":2}`, `{"0e5":2,"0":1}`, false},
	{`{"0":1,"1e-400":2}`, `{"1e-400":2,"0":1}`, false},
	{`{"0":1,"1e-99999999999999999999":2}`, `{"1e-99999999999999999999":2,"0":1}`, false},
	{`{"9.9e-39":1,"-1e-39":2}`, `{"-1e-39":2,"9.9e-39":1}`, false},
	{`{"1e-38":1,"1.1e-38":2,"0":3}`, `{"0":3,"1.1e-38":2,"1e-38":1}`, true},
	{`{"1e400":1,"1e401":2}`, `{"1e401":2,"1e400":1}`, false},
	{`{"1e38":1,"1e99999999999999999999":2}`, `{"1e99999999999999999999":2,"1e38":1}`, false},
	{`{"1e38":1,"-1e38":2,"9.9e37":3}`, `{"9.9e37":3,"-1e38":2,"1e38":1}`, true},
	// A float32 has room for 24 bits, and a float64 for 53. The numbers below are close to
	// 1 + 2^-24, which is halfway between two float32s.
	{`{"16777216":1,"16777217":2}`, `{"16777217":2,"16777216":1}`, false},
	{`{"16777216":1,"16777218":2}`, `{"16777218":2,"16777216":1}`, true},
	{`{"0.1":1,"0.10000000149011612":2}`, `{"0.10000000149011612":2,"0.1":1}`, false},
	{`{"1.0000000596046447753906249":1,"1.0000000596046447753906251":2}`, `{"1.0000000596046447753906251":2,"1.0000000596046447753906249":1}`, false},
	{`{"1.0000000596046447753906251":1,"1.00000011920928955078125":2}`, `{"1.00000011920928955078125":2,"1.0000000596046447753906251":1}`, false},
	{`{"1.0000000596046447753906249":1,"1.00000011920928955078125":2}`, `{"1.00000011920928955078125":2,"1.0000000596046447753906249":1}`, true},
	// Some names count as every number, but not as a name that is no number.
	{`{"2":1,"inf":2}`, `{"inf":2,"2":1}`, false},
	{`{"2":1,"-Infinity":2}`, `{"-Infinity":2,"2":1}`, false},
	{`{"nan":1,"inf":2}`, `{"inf":2,"nan":1}`, false},
	{`{"nan":1,"a":2,"infinit":3,"infinityy":4}`, `{"infinityy":4,"infinit":3,"a":2,"nan":1}`, true},
	{`{"2":1,"0x1p1":2}`, `{"0x1p1":2,"2":1}`, false},
	{`{"2":1,"-0X_1.8P+1_0":2}`, `{"-0X_1.8P+1_0":2,"2":1}`, false},
	{`{"2":1,"0x1":2,"0b1":3,"0p1":4,"1x1p1":5,"p1":6,"0x1p1g":7}`, `{"0x1p1g":7,"p1":6,"1x1p1":5,"0p1":4,"0b1":3,"0x1":2,"2":1}`, true},
	{`{"2":1,"0x1` + strings.Repeat("0", 100) + `p1":2}`, `{"0x1` + strings.Repeat("0", 100) + `p1":2,"2":1}`, false},
	{`{"2":1,"` + strings.Repeat("1", 33) + `":2}`, `{"` + strings.Repeat("1", 33) + `":2,"2":1}`, false},
	{`{"2":1,"` + strings.Repeat("1", 32) + `":2}`, `{"` + strings.Repeat("1", 32) + `":2,"2":1}`, true},
	{`{"2":1,"1` + strings.Repeat("_", 100) + `0":2}`, `{"1` + strings.Repeat("_", 100) + `0":2,"2":1}`, true},
	{`{"2":1,"` + strings.Repeat("1", 40) + `a":2}`, `{"` + strings.Repeat("1", 40) + `a":2,"2":1}`, true},

	// An empty text, null and {} denote the same value.
	{``, `{}`, true},
	{`null`, `{}`, true},
	{" null\n", ``, true},
	{`{"a":null}`, `{}`, false},
	{`{"a":null}`, `{"a":{}}`, false},
}

func TestTextsShareADigestExactlyWhenTheyDenoteOneValue(t *testing.T) {
	if len(pairs) < 80 {
		t.Fatalf("only %d pairs", len(pairs))
	}
	for _, p := range pairs {
		a, err := Sum([]byte(p.a))
		if err != nil {
			t.Errorf("%s: %v", p.a, err)
			continue
		}
		b, err := Sum([]byte(p.b))
		if err != nil {
			t.Errorf("%s: %v", p.b, err)
			continue
		}
		if (a == b) != p.equal {
			t.Errorf("%s and %s: equal is %v, want %v", p.a, p.b, a == b, p.equal)
		}
		if want, ok := referenceSum([]byte(p.a)); !ok || want != a {
			t.Errorf("%s: the reference differs", p.a)
		}
	}
}

func TestRefusedTexts(t *testing.T) {
	for _, text := range []string{
		`{"a":1,"a":1}`, `{"a":1,"b":2,"a":3}`, `{"a":1,"\u0061":2}`, `{"b":0,"a":1,"\u0061":2}`, `{"é":1,"\u00e9":2}`,
		`{"\ud801":1000000,"\ud800":1}`, `{"\ud800":1}`, `{"x\udc00":1}`, `{"\ude00\ud83d":1}`, `{"a":[{"\ud83d\n":1}]}`, "{\"\ufffd\":1,\"\\ud800\":2}",
		`[{"x":{"a":1,"a":2}}]`, `{"":1,"":2}`, `{"A":1,"a":2,"A":3}`, `{"a":1,"A":2,"z":[],"A":3}`, `{"ab":1,"AB":2,"\u0061b":3}`, `{"\ud83d\ude00":1,"😀":2}`,
		"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "{\"\xe9\":1}", "\"\xf4\x90\x80\x80\"", "\"a\xe2\x82\"",
		"\xef\xbb\xbf{}", "\xff", "{}\xff",
		` `, "\n", `{`, `}`, `[`, `]`, `{]`, `[}`, `"`, `"a`, `"\`, `"\u`, `"\u12`, `"\u123g"`, `"\x41"`, `"\'"`, `'a'`,
		`[1,]`, `[,1]`, `[1 2]`, `[1,,2]`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`,
		`{} {}`, `1 2`, `nul`, `nulll`, `True`, `NaN`, `Infinity`, `-`, `+1`, `01`, `-01`, `00`, `1.`, `.5`, `1.e5`, `1e`, `1e+`,
		`1e1.5`, `0x10`, `1_000`, `- 1`, `--1`, "\"\n\"", "\"\t\"", "\"\x00\"", "\v1", "\u00a01", `1,`, `/**/1`, `//`,
		`1e1234567890123456789`, `1e-1234567890123456789`, `0e1234567890123456789`, `1e0000000000000000001`,
		"1000" + strings.Repeat("0", 801) + "e-801", "-1000" + strings.Repeat("0", 801) + ".0E-801", "1." + strings.Repeat("0", 799), "0." + strings.Repeat("0", 99_999) + "1e100003", "0e" + strings.Repeat("0", 799),
		strings.Repeat("[", 129) + strings.Repeat("]", 129),
		strings.Repeat(`{"a":`, 129) + "1" + strings.Repeat("}", 129),
		strings.Repeat(`[{"a":`, 64) + "[[" + "]]" + strings.Repeat("}]", 64),
		strings.Repeat("[", 1_000_000),
		strings.Repeat(`{"":`, 1_000_000),
	} {
		sum, err := Sum([]byte(text))
		var refused *Error
		if !errors.As(err, &refused) || sum != [Size]byte{} {
			t.Errorf("%.40q has a digest, or another error: %v", text, err)
			continue
		}
		if refused.Offset < 0 || refused.Offset > len(text) {
			t.Errorf("%.40q: offset %d", text, refused.Offset)
		}
		if _, ok := referenceSum([]byte(text)); ok {
			t.Errorf("%.40q: the reference accepts", text)
		}
	}
}

// TestTextsWithOneDigestAreReadAsOne shuffles members whose names are alike. If two orders have the
// same digest, encoding/json must read the same values from them. Most handlers use encoding/json.
func TestTextsWithOneDigestAreReadAsOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	names := []string{"to", "To", "TO", "amount", "Amount", "tas\u212a", "Task", "task", "ta\u017fk", "x", "y1"}
	same, alike := 0, 0
	for range 5000 {
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		members := make([]string, 1+random.IntN(5))
		for i := range members {
			members[i] = fmt.Sprintf("%q:%d", names[i], i)
		}
		texts, values := [2]string{}, [2]struct{ To, Amount, Task, X, Y1 int }{}
		var sums [2][Size]byte
		for i := range texts {
			texts[i] = "{" + strings.Join(members, ",") + "}"
			if random.IntN(3) == 0 { // make the text so long that Sum reads it twice
				texts[i] = "{" + strings.Join(members, ",") + `,"zz":"` + strings.Repeat("z", 9000) + `"}`
			}
			random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			var err error
			if sums[i], err = Sum([]byte(texts[i])); err != nil {
				t.Fatal(err)
			}
			if want, _ := referenceSum([]byte(texts[i])); want != sums[i] {
				t.Fatalf("%.200s: the reference differs", texts[i])
			}
			if err := json.Unmarshal([]byte(texts[i]), &values[i]); err != nil {
				t.Fatal(err)
			}
		}
		if sums[0] == sums[1] && values[0] != values[1] {
			t.Fatalf("%.200s and %.200s have one digest and two values", texts[0], texts[1])
		}
		if sums[0] == sums[1] && texts[0] != texts[1] {
			same++
		}
		if values[0] != values[1] {
			alike++
		}
	}
	if same < 100 || alike < 100 {
		t.Errorf("only %d texts were the same, and %d were read as different values", same, alike)
	}
}

// TestManyAlikeNamesAreFound tries objects of many sizes, because large objects are sorted in
// another way than small ones. In all of them, names that differ only in case must be found.
func TestManyAlikeNamesAreFound(t *testing.T) {
	for _, n := range []int{2, 31, 32, 33, 1000, 20_000} {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"name%dX":%d`, i, i)
		}
		sum := func(more ...string) (sum [Size]byte) {
			text := []byte("{" + strings.Join(append(more, members...), ",") + "}")
			sum, err := Sum(text)
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := referenceSum(text); want != sum {
				t.Errorf("%d members: the reference differs", n)
			}
			return sum
		}
		if sum(`"a":1`, `"B":2`) != sum(`"B":2`, `"a":1`) {
			t.Errorf("%d members: the order of different names counts", n)
		}
		if sum(`"b":1`, `"B":2`) == sum(`"B":2`, `"b":1`) {
			t.Errorf("%d members: the order of names that are alike does not count", n)
		}
	}
}

// TestNumbersWithOneDigestAreReadAsOne checks that texts with the same digest are read as the same
// float64. Sum must refuse very long numbers: strconv drops some of their digits, so it could
// read equal values as different ones.
func TestNumbersWithOneDigestAreReadAsOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	digits := func(most int) string {
		text := make([]byte, 1+random.IntN(most))
		for i := range text {
			text[i] = '0' + byte(random.IntN(10)*random.IntN(2))
		}
		return string(text)
	}
	accepted := 0
	for range 20_000 {
		whole := strings.TrimLeft(digits(1000), "0")
		text := cmp.Or(whole, "0")
		if random.IntN(2) == 0 {
			text += "." + digits(400)
		}
		if random.IntN(3) > 0 {
			text += fmt.Sprintf("e%d", random.IntN(2400)-1600)
		}
		value, ok := (&referenceParser{rest: text}).number()
		if _, err := Sum([]byte(text)); (err == nil) != ok {
			t.Fatalf("%s: %v", text, err)
		}
		if !ok {
			continue
		}
		accepted++
		n := value.(referenceNumber)
		plain := fmt.Sprintf("%se%d", cmp.Or(n.digits, "0"), n.exponent)
		if strings.ContainsAny(text, ".e") && len(plain) < 700 {
			one, oneErr := strconv.ParseFloat(text, 64)
			other, otherErr := strconv.ParseFloat(plain, 64)
			if one != other || (oneErr == nil) != (otherErr == nil) {
				t.Fatalf("%s is read as %v, and %s as %v", text, one, plain, other)
			}
		}
	}
	if accepted < 5000 {
		t.Errorf("only %d numbers were accepted", accepted)
	}
}

func TestSizesAtTheLimit(t *testing.T) {
	for _, text := range []string{
		"1." + strings.Repeat("0", 798), "1e-" + strings.Repeat("0", 17) + "1", strings.Repeat("1", 5000),
		strings.Repeat("[", 128) + strings.Repeat("]", 128),
		strings.Repeat(`{"b":1,"a":`, 128) + "1" + strings.Repeat("}", 128),
		`"` + strings.Repeat("x", MaxText-2) + `"`,
	} {
		if _, err := Sum([]byte(text)); err != nil {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if _, err := Sum([]byte(`"` + strings.Repeat("x", MaxText-1) + `"`)); err == nil {
		t.Error("a text over the limit has a digest")
	}
}

// long returns a longer text that contains the given text. The longer text is read twice, because
// its stream is too long to be hashed in one chunk.
func long(text string) []byte {
	return []byte(`["` + strings.Repeat("x", 10_000) + `",` + text + `]`)
}

func TestLongTextsAreDigestedAsShortOnesAre(t *testing.T) {
	for _, p := range pairs {
		if p.a == "" {
			continue
		}
		got, err := Sum(long(p.a))
		if want, ok := referenceSum(long(p.a)); err != nil || !ok || got != want {
			t.Errorf("%s: %x, %v", p.a, got, err)
		}
	}
	// These streams end before, at or after the end of the first chunk that is hashed.
	for n := 8150; n < 8250; n++ {
		for _, text := range []string{
			"[" + strings.Repeat("null,", n) + "null]", `["` + strings.Repeat("x", n) + `"]`, `{"b":0,"a":"` + strings.Repeat("x", n) + `"}`,
			`{"` + strings.Repeat("x", n) + `":[],"a":{"c":0,"b":0}}`, `"` + strings.Repeat("x", n) + `\n"`,
		} {
			got, err := Sum([]byte(text))
			if want, ok := referenceSum([]byte(text)); err != nil || !ok || got != want {
				t.Errorf("%.20s and so on, %d times: %x, %v", text, n, got, err)
			}
		}
	}
}

func TestMembersAreInOrderWhateverTheirNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	letters := []string{
		"a", `\u0061`, "b", "é", `\u00e9`, "\u20ac", `\u20AC`, "\uffff", "😀", `\ud83d\ude00`, `\ud83d\uDE01`, `\u0000`, `\u0001`, `\n`, `\"`, `\\`, "\x7f", " ", "!",
	}
	refused := 0
	for range 400 {
		object := make([]string, 2+random.IntN(300))
		common := strings.Repeat(letters[random.IntN(len(letters))], random.IntN(20))
		for i := range object {
			var name strings.Builder
			name.WriteString(common)
			for range random.IntN(16) {
				name.WriteString(letters[random.IntN(len(letters))])
			}
			object[i] = `"` + name.String() + `":` + []string{"0", "[]", `{"":{}}`, `{"b":[0],"a":{}}`}[random.IntN(4)]
		}
		text := []byte("{" + strings.Join(object, ",") + "}")
		got, err := Sum(text)
		want, ok := referenceSum(text)
		if (err == nil) != ok || got != want {
			t.Fatalf("%s: %x, %v; the reference says %x, %v", text, got, err, want, ok)
		}
		if !ok {
			refused++ // two members have the same name
		}
	}
	if refused < 20 || refused > 380 {
		t.Errorf("%d of 400 were refused", refused)
	}
}

func TestTwoSpellingsOfOneNameAreRefused(t *testing.T) {
	for n := range 40 {
		for _, c := range [][2]string{{"a", `\u0061`}, {"é", `\u00e9`}, {"€", `\u20ac`}, {"😀", `\ud83d\ude00`}, {"\x7f", `\u007f`}} {
			for _, behind := range []string{"", "x", "xxxxxxx"} {
				name, other := strings.Repeat("k", n)+c[0]+behind, strings.Repeat("k", n)+c[1]+behind
				for _, text := range []string{`{"` + name + `":1,"` + other + `":2}`, `{"` + name + `":1,"":0,"` + other + `":2}`} {
					if _, err := Sum([]byte(text)); err == nil {
						t.Errorf("%s has a digest", text)
					}
				}
			}
		}
	}
}

func TestWritersAreReusedSafely(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	want := make(map[string][Size]byte)
	for _, p := range pairs {
		want[p.a], _ = referenceSum([]byte(p.a))
	}
	for range 5000 {
		p := pairs[random.IntN(len(pairs))]
		if random.IntN(4) == 0 {
			Sum([]byte(`{"b":1,"a":` + p.a)) // fails half-way
		}
		if got, err := Sum([]byte(p.a)); err != nil || got != want[p.a] {
			t.Fatalf("%s: %x, %v", p.a, got, err)
		}
	}
}

func FuzzSum(f *testing.F) {
	for _, p := range pairs {
		f.Add([]byte(p.a))
		f.Add([]byte(p.b))
	}
	f.Add([]byte(`{"b":{"d":1,"c":[{"f":1,"e":"\ud800"}]},"a":-0.0e-5}`))
	f.Add([]byte(`{"a":1,"\u0061":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Sum(text)
		want, ok := referenceSum(text)
		if (err == nil) != ok || got != want {
			t.Fatalf("%q: %x, %v; the reference says %x, %v", text, got, err, want, ok)
		}
		got, err = Sum(long(string(text)))
		want, ok = referenceSum(long(string(text)))
		if (err == nil) != ok || got != want {
			t.Fatalf("%q, in a long text: %x, %v; the reference says %x, %v", text, got, err, want, ok)
		}
	})
}
