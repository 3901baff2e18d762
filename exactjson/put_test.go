package exactjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var anyTypes = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](), reflect.TypeFor[float64](), reflect.TypeFor[float32](),
	reflect.TypeFor[string](), reflect.TypeFor[bool](), reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[time.Time](), reflect.TypeFor[[]byte](), reflect.TypeFor[[2]int](), reflect.TypeFor[*int](), reflect.TypeFor[**string](),
	reflect.TypeFor[map[int]string](), reflect.TypeFor[map[netip.Addr]int](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[fuzzOwn](),
	reflect.TypeFor[*fuzzOwn](), reflect.TypeFor[FuzzEmbedded](), reflect.TypeFor[time.Duration](),
}

// EmbeddedLeft and EmbeddedRight both embed EmbeddedMiddle. So a struct that embeds both has
// EmbeddedMiddle twice on one level, and EmbeddedTop twice on the level below.
type (
	EmbeddedTop struct {
		F3 string
		A  int `json:"a"`
		B  *bool
	}
	EmbeddedMiddle struct {
		EmbeddedTop
		C string `json:"c"`
	}
	EmbeddedLeft struct {
		EmbeddedMiddle
		B string `json:"b"`
	}
	EmbeddedRight struct {
		*EmbeddedMiddle
		B string `json:"b"`
	}
	EmbeddedNamed struct {
		EmbeddedRight `json:"é"`
		C             int
	}
)

var embeddedTypes = []reflect.Type{
	reflect.TypeFor[EmbeddedTop](), reflect.TypeFor[EmbeddedMiddle](), reflect.TypeFor[EmbeddedLeft](),
	reflect.TypeFor[EmbeddedRight](), reflect.TypeFor[EmbeddedNamed](), reflect.TypeFor[FuzzEmbedded](),
}

// oddTag is a struct tag that encoding/json ignores. If the encoding/json of this build uses the
// tag, oddTag is empty.
var oddTag = func() string {
	const odd = `json:"d\"x"`
	field := reflect.StructField{Name: "F0", Type: reflect.TypeFor[int](), Tag: odd}
	text, _ := json.Marshal(reflect.Zero(reflect.StructOf([]reflect.StructField{field})).Interface())
	if strings.Contains(string(text), `"d"`) {
		return "" // with GOEXPERIMENT=jsonv2, encoding/json finds a name in the tag
	}
	return odd
}()

func randomType(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 || r.IntN(3) == 0 {
		return anyTypes[r.IntN(len(anyTypes))]
	}
	switch r.IntN(5) {
	case 0:
		return reflect.SliceOf(randomType(r, depth-1))
	case 1:
		return reflect.MapOf(reflect.TypeFor[string](), randomType(r, depth-1))
	case 2:
		return reflect.PointerTo(randomType(r, depth-1))
	}
	tags := []string{"", `json:"a"`, `json:"b,omitempty"`, `json:"c"`, `json:"-"`, `json:"-,"`, `json:"A"`, oddTag, `json:"é"`, `json:"a b"`}
	var fields []reflect.StructField
	for _, i := range r.Perm(len(embeddedTypes))[:r.IntN(4)] {
		t := embeddedTypes[i]
		name := t.Name()
		if r.IntN(2) == 0 {
			t = reflect.PointerTo(t)
		}
		var tag reflect.StructTag
		if r.IntN(4) == 0 {
			tag = reflect.StructTag(tags[r.IntN(len(tags))])
		}
		fields = append(fields, reflect.StructField{Name: name, Type: t, Anonymous: true, Tag: tag})
	}
	for i := range 1 + r.IntN(4) {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: randomType(r, depth-1), Tag: reflect.StructTag(tags[r.IntN(len(tags))])})
	}
	return reflect.StructOf(fields)
}

func randomJSON(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		texts := []string{"null", "true", "1", "0", "-5", "300", "1.5", `"x"`, `"1"`, `" 1"`, `"1 "`, `"QQ=="`, `"2006-01-02T15:04:05Z"`, `"::1"`, `"null"`, `"true"`, `"\"q\""`, `"\ud800"`, `""`, `"-3"`, `"NaN"`, `"{}"`}
		return texts[r.IntN(len(texts))]
	}
	var parts []string
	if r.IntN(2) == 0 {
		for range r.IntN(4) {
			parts = append(parts, randomJSON(r, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	names := []string{"a", "b", "c", "A", "F0", "F1", "F2", "F3", "B", "C", "-", "é", "a b", "tenant", "size", "count", "1", "02", "::1", "0::2"}
	for _, i := range r.Perm(len(names))[:r.IntN(6)] {
		parts = append(parts, `"`+names[i]+`":`+randomJSON(r, depth-1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// TestWhatLandsIsWhatEncodingJSONPutsThere puts random values into random types, and compares
// the results with those of encoding/json. Put may refuse a value that encoding/json accepts,
// but only because of a name or the length of an array.
func TestWhatLandsIsWhatEncodingJSONPutsThere(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	landed := 0
	for range 3000 {
		typ := randomType(r, 4)
		for range 5 {
			text := randomJSON(r, 5)
			value, err := Read([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got, want := reflect.New(typ), reflect.New(typ)
			wrong := json.Unmarshal([]byte(text), want.Interface())
			if err := Put(value, got.Interface(), Names{}); err != nil {
				if wrong == nil && !errors.Is(err, ErrMalformed) && !strings.Contains(err.Error(), "the name is not one") && !strings.Contains(err.Error(), "an array does not fit the Go type [2]int") {
					t.Errorf("%s into %v: %v", text, typ, err)
				}
				continue
			}
			landed++
			ours, _ := json.Marshal(got.Interface())
			theirs, _ := json.Marshal(want.Interface())
			if a, b := oracle(t, ours), oracle(t, theirs); wrong != nil || !agree(a, b) || !agree(b, a) {
				t.Errorf("%s into %v: %s; encoding/json: %s, %v", text, typ, ours, theirs, wrong)
			}
		}
	}
	if landed < 2000 {
		t.Errorf("only %d fit", landed)
	}
}

type fuzzFilter struct {
	Tenant string `json:"tenant,omitempty"`
	Size   int8   `json:"size,omitempty"`
}

// fuzzOwn has its own method UnmarshalJSON.
type fuzzOwn fuzzFilter

func (f *fuzzOwn) UnmarshalJSON(text []byte) error {
	type plain fuzzOwn
	return json.Unmarshal(text, (*plain)(f))
}

type FuzzEmbedded struct {
	Count uint64 `json:"count,omitempty"`
}

// oracle reads a text with encoding/json, and returns each number as a rational. If the
// exact rational would be huge, oracle uses the nearest double and checks less. Read must refuse
// repeated names and some numbers. If oracle finds one of them in the text, it fails the test.
func oracle(t *testing.T, text []byte) any {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var read func() any
	read = func() any {
		token, err := decoder.Token()
		if err != nil {
			return nil
		}
		switch v := token.(type) {
		case json.Number:
			f, err := v.Float64()
			if err != nil {
				t.Fatalf("%q has a number that no double is near", text)
			}
			_, power, _ := strings.Cut(strings.ToLower(v.String()), "e")
			if exponent, _ := strconv.Atoi(power); len(v) > 10_000 || exponent < -500 || exponent > 500 {
				return new(big.Rat).SetFloat64(f)
			}
			r, _ := new(big.Rat).SetString(v.String())
			if r.IsInt() && !r.Num().IsInt64() && !r.Num().IsUint64() {
				t.Fatalf("%q has a whole number of more than 64 bits", text)
			}
			if !r.IsInt() && r.SetFloat64(f).IsInt() {
				t.Fatalf("%q has a number that only a double makes whole", text)
			}
			return r
		case json.Delim:
			if v == '[' {
				items := []any{}
				for decoder.More() {
					items = append(items, read())
				}
				decoder.Token()
				return items
			}
			members := map[string]any{}
			for decoder.More() {
				name, _ := decoder.Token()
				if _, twice := members[name.(string)]; twice {
					t.Fatalf("%q has a name twice", text)
				}
				members[name.(string)] = read()
			}
			decoder.Token()
			return members
		}
		return token
	}
	return read()
}

// agree reports whether two values are equal. Objects in the second value may have further members.
func agree(got, given any) bool {
	switch g := got.(type) {
	case *big.Rat:
		other, ok := given.(*big.Rat)
		return ok && g.Cmp(other) == 0
	case []any:
		other, ok := given.([]any)
		if !ok || len(g) != len(other) {
			return false
		}
		for i := range g {
			if !agree(g[i], other[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		other, ok := given.(map[string]any)
		for name, member := range g {
			if inside, has := other[name]; !has || !agree(member, inside) {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(got, given)
}

// TestAFractionThatAFloat32MakesWholeIsRefused puts fractions into a float32, which would round
// them to whole numbers. A schema may forbid the whole number, for example with
// exclusiveMinimum 0.
func TestAFractionThatAFloat32MakesWholeIsRefused(t *testing.T) {
	type rate float32
	for _, text := range []string{"1e-50", "-1e-50", "0.99999999999", "1.00000000001", "-0.99999999999", "16777216.5", "16777217.25", "4503599627370495.5"} {
		value, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []any{new(float32), new(rate), new(*float32), new([1]float32)} {
			given := value
			if reflect.TypeOf(target).Elem().Kind() == reflect.Array {
				given = []any{value}
			}
			if err := Put(given, target, Names{}); err == nil || !reflect.ValueOf(target).Elem().IsZero() {
				t.Errorf("%s into a %T: %v, %v", text, target, reflect.ValueOf(target).Elem(), err)
			}
		}
		var exact float64
		if err := Put(value, &exact, Names{}); err != nil || exact != value {
			t.Errorf("%s into a float64: %v, %v", text, exact, err)
		}
	}
	for text, want := range map[string]float32{"0.1": 0.1, "-2.5": -2.5, "1e-45": 1e-45, "0.9999999": 0.9999999, "8388607.5": 8388607.5, "1": 1, "0": 0, "16777216": 16777216} {
		value, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var got float32
		if err := Put(value, &got, Names{}); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestNothingIsPutBesideAnError(t *testing.T) {
	in := fuzzIn{ID: 7}
	value, err := Read([]byte(`{"id":1,"size":300}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Put(value, &in, Names{}); err == nil || !reflect.DeepEqual(in, fuzzIn{}) {
		t.Errorf("%v, and %+v", err, in)
	}
	in = fuzzIn{ID: 7, Any: "before"}
	if value, err = Read([]byte(`{"size":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := Put(value, &in, Names{}); err != nil || in.ID != 0 || in.Any != nil || in.Size != 1 {
		t.Errorf("what was there before is still there: %+v, %v", in, err)
	}
	for _, target := range []any{nil, in, (*fuzzIn)(nil), 1} {
		if err := Put(value, target, Names{}); err == nil || !strings.Contains(err.Error(), "pass a pointer") {
			t.Errorf("%T: %v", target, err)
		}
	}
}

func TestAnErrorRepeatsLittleOfTheValue(t *testing.T) {
	long := strings.Repeat("ä", 1<<17)
	for _, text := range []string{`"` + long + `"`, `{"` + long + `":"x"}`, `{"` + long + `":{"` + long + `":[]}}`} {
		value, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range []any{new(time.Time), new(map[string]time.Time), new(map[string]map[string]int), new(int)} {
			err := Put(value, target, Names{})
			if err == nil || len(err.Error()) > 1100 || !utf8.ValidString(err.Error()) || errors.Unwrap(err) != nil {
				t.Errorf("%.20s into %T: %.100v", text, target, err)
			}
		}
	}
}

func TestAValueThatIsNotOfJSONHasNoText(t *testing.T) {
	for _, value := range []any{math.NaN(), []any{func() {}}, map[string]any{"a": make(chan int)}} {
		if text, err := Text(value); err == nil || text != nil {
			t.Errorf("%v: %s", value, text)
		}
	}
}

func TestTheFieldsOfATypeAreACopy(t *testing.T) {
	clear(Fields(reflect.TypeFor[fuzzIn]()))
	if fields := Fields(reflect.TypeFor[fuzzIn]()); fields["id"].Type != reflect.TypeFor[int64]() {
		t.Errorf("%v", fields)
	}
	if Fields(reflect.TypeFor[int]()) != nil || Fields(nil) != nil {
		t.Error("what is no struct has fields")
	}
}

func TestATypeThatReadsItselfGetsNoNameInAnotherCase(t *testing.T) {
	var known Names
	known.Add("tenant", "id", "ID")
	for text, refused := range map[string]bool{
		`{"tenant":"a"}`: false, `{"Tenant":"a"}`: true, `[{"x":{"Tenant":"a"}}]`: true, `{"x":1,"X":2}`: true, `[{"x":1},{"X":2}]`: false,
		`{"id":1}`: true, `{"ſ":1,"s":2}`: true, `"Tenant"`: false,
	} {
		value, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var raw json.RawMessage
		if err := Put(value, &raw, known); errors.Is(err, ErrMalformed) != refused || (err != nil) != refused || refused && raw != nil {
			t.Errorf("%s: %s, %v", text, raw, err)
		}
	}
}
