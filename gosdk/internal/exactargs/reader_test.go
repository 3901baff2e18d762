package exactargs

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tripseal/tripseal/exactjson"
)

// TestDefaultsAreThoseOfTheLibrary compares addDefaults with the schema library. All numbers in
// this test fit exactly into a double, because the library rounds other numbers.
func TestDefaultsAreThoseOfTheLibrary(t *testing.T) {
	schema, err := schemaOf[any](json.RawMessage(`{"type":"object","required":["must"],"properties":{
		"must":{"default":1},"plain":{},"number":{"default":2.5},"null":{"default":null},
		"deep":{"properties":{"a":{"properties":{"b":{"default":[1]},"c":{}}},"d":{}}},
		"object":{"default":{"x":{}},"properties":{"x":{"properties":{"y":{"default":"z"}}}}},
		"required":{"required":["in"],"properties":{"in":{"default":1}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`{}`, `{"must":3}`, `{"number":null,"null":1}`, `{"deep":null}`, `{"deep":{}}`, `{"deep":{"a":5}}`, `{"deep":{"a":{"c":1}}}`, `{"deep":[]}`,
		`{"object":{}}`, `{"object":{"x":null}}`, `{"object":{"x":{"y":1}}}`, `{"object":"s","required":{}}`, `{"plain":{"x":{}}}`,
	} {
		got, err := readObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := addDefaults(schema, got); err != nil {
			t.Fatal(err)
		}
		var want any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		if err := resolved.ApplyDefaults(&want); err != nil {
			t.Fatal(err)
		}
		if !jsonschema.Equal(got, want) {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
	}
}

// TestEverySchemaIsVisited fails when a new version of the library has a
// keyword that eachSchema misses.
func TestEverySchemaIsVisited(t *testing.T) {
	text := `{"enum":[9007199254740993]}`
	var b strings.Builder
	b.WriteString(`{"type":"object"`)
	for _, one := range []string{"additionalItems", "contains", "unevaluatedItems", "additionalProperties", "propertyNames",
		"unevaluatedProperties", "not", "if", "then", "else", "contentSchema", "items"} {
		b.WriteString(`,"` + one + `":` + text)
	}
	for _, many := range []string{"prefixItems", "allOf", "anyOf", "oneOf"} {
		b.WriteString(`,"` + many + `":[true,` + text + `]`)
	}
	for _, named := range []string{"$defs", "properties", "patternProperties", "dependentSchemas", "dependencies"} {
		b.WriteString(`,"` + named + `":{"a":` + text + `,"b":false}`)
	}
	for _, schema := range []string{b.String() + "}", `{"type":"object","items":[` + text + `],"definitions":{"x":` + text + `}}`} {
		parsed, err := schemaOf[any](json.RawMessage(schema))
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(parsed)
		if err != nil || strings.Contains(string(again), "9007199254740992") || strings.Count(string(again), "9007199254740993") != strings.Count(schema, "9007199254740993") {
			t.Errorf("%s, %v", again, err)
		}
	}
	subschemas := 0
	for i := range reflect.TypeFor[jsonschema.Schema]().NumField() {
		if strings.Contains(reflect.TypeFor[jsonschema.Schema]().Field(i).Type.String(), "jsonschema.Schema") {
			subschemas++
		}
	}
	if subschemas != 23 {
		t.Errorf("a schema has %d fields with schemas: add the new keyword above", subschemas)
	}
}

// TestHostileArgumentsCostABoundedAmountOfMemory reads deeply nested arguments that do not fit the
// schema. The schema library wraps its error once more at each level, and quotes the value again
// each time.
func TestHostileArgumentsCostABoundedAmountOfMemory(t *testing.T) {
	const most, bound = 64 << 10, 32 << 20
	tree := readerOf[treeNode](t, `{"type":"object","properties":{"kids":{"additionalProperties":{"$ref":"#"}},"n":{"type":"integer"},"time":{"maxLength":9}}}`)
	fill := func(before, repeated, after string) []byte {
		const levels = 60
		before, after = strings.Repeat(`{"kids":{"a":`, levels)+before, after+strings.Repeat("}}", levels)
		return []byte(before + strings.Repeat(repeated, (most-len(before)-len(after))/len(repeated)) + after)
	}
	for _, text := range [][]byte{
		fill(`{"n":"`, "x", `"}`), fill(`{"n":"`, `\u0001`, `"}`), fill(`{"time":"`, "ä", `"}`), fill(`{"time":"`, `\u0001`, `"}`),
		fill(`{"n":[`, "[],", `1]}`), fill(`{"n":[`, "5e-324,", `1]}`), fill(`{"n":{"`, "x", `":1}}`), fill(`{"kids":{"`, "x", `":{"n":"x"}}}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err := tree.Read(text, most)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > bound {
			t.Errorf("%.20q...: %d bytes for %d, %v", text[60*13:], took, len(text), err)
		}
	}
}

// TestANameOfTwoFieldsIsRefused makes its type with reflect, because vet would report this type in
// a source file.
func TestANameOfTwoFieldsIsRefused(t *testing.T) {
	twice := reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"tenant"`}, {Name: "B", Type: reflect.TypeFor[string](), Tag: `json:"tenant"`},
	})
	schema, err := jsonschema.ForType(twice, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, inferred := range []bool{true, false} {
		if err := (&fitting{new(references), inferred, map[fit]bool{}}).check(schema, twice); err == nil || !strings.Contains(err.Error(), "more than one field") {
			t.Errorf("inferred %v: %v", inferred, err)
		}
	}
}

func readerOf[In any](t testing.TB, schema string, unbound ...string) *Reader[In] {
	t.Helper()
	reader, _, err := New[In](json.RawMessage(schema), "cursor", unbound...)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

type treeNode struct {
	Kids map[string]*treeNode `json:"kids"`
	N    int                  `json:"n"`
	Time time.Time            `json:"time"`
}

func TestAnErrorRepeatsLittleOfTheArguments(t *testing.T) {
	open := readerOf[treeNode](t, `{"type":"object"}`)
	closed := readerOf[treeNode](t, `{"type":"object","properties":{"kids":{"additionalProperties":{"$ref":"#"}},"n":{"type":"integer"},"time":{"maxLength":9}}}`)
	long := strings.Repeat("ä", 1<<17)
	nested := func(levels int, inner string) []byte {
		return []byte(strings.Repeat(`{"kids":{"a":`, levels) + inner + strings.Repeat("}}", levels))
	}
	for _, inner := range []string{
		`{"n":"` + long + `"}`, `{"time":"` + long + `"}`, `{"kids":{"` + long + `":{"n":"x"}}}`, `{"n":{"` + long + `":1}}`,
	} {
		for _, arguments := range []*Reader[treeNode]{open, closed} {
			for _, levels := range []int{0, 60} {
				_, _, _, err := arguments.Read(nested(levels, inner), 1<<20)
				if err == nil || errors.Is(err, exactjson.ErrMalformed) || len(err.Error()) > 1100 || !utf8.ValidString(err.Error()) || errors.Unwrap(err) != nil {
					t.Errorf("%.30s: %.100v", inner, err)
				}
			}
		}
	}
	allocated := func(levels int) uint64 {
		text := nested(levels, `{"kids":{"`+long+`":{"n":"x"}}}`)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, _, err := open.Read(text, 1<<20); err == nil {
			t.Error("a text is a number")
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	allocated(0)
	if flat, deep := allocated(0), allocated(60); deep > 2*flat {
		t.Errorf("%d bytes on one level, %d below 60 more", flat, deep)
	}
}

type fuzzFilter struct {
	Tenant string `json:"tenant,omitempty"`
	Size   int8   `json:"size,omitempty"`
}

// fuzzOwn has its own method to read JSON.
type fuzzOwn fuzzFilter

func (f *fuzzOwn) UnmarshalJSON(text []byte) error {
	type plain fuzzOwn
	return json.Unmarshal(text, (*plain)(f))
}

type FuzzEmbedded struct {
	Count uint64 `json:"count,omitempty"`
}

type fuzzIn struct {
	fuzzFilter
	*FuzzEmbedded
	ID     int64                 `json:"id,omitempty"`
	Limit  *int64                `json:"limit,omitempty"`
	Ratio  float64               `json:"ratio,omitempty"`
	Filter *fuzzFilter           `json:"filter,omitempty"`
	Own    *fuzzOwn              `json:"own,omitempty"`
	List   []fuzzFilter          `json:"list,omitempty"`
	Map    map[string]fuzzFilter `json:"map,omitempty"`
	Any    any                   `json:"any,omitempty"`
	Raw    json.RawMessage       `json:"raw,omitempty"`
	Or     []json.RawMessage     `json:"or,omitempty"`
	Pair   *[2]int8              `json:"pair,omitempty"`
}

const (
	fuzzFilterSchema = `{"type":"object","properties":{"tenant":{"enum":["mine"]},"size":{"type":"integer","maximum":10}}}`
	fuzzRules        = `"tenant":{"enum":["mine"]},"size":{"type":"integer","maximum":10},"id":{"enum":[1,9007199254740993,9223372036854775807]},
		"or":{"type":"array","items":{"$ref":"#/$defs/or"}},"filter":` + fuzzFilterSchema + `,"own":` + fuzzFilterSchema + `,"raw":` + fuzzFilterSchema + `,
		"list":{"type":"array","items":` + fuzzFilterSchema + `},"map":{"type":"object","additionalProperties":` + fuzzFilterSchema + `}`
	fuzzSchema = `{"type":"object","properties":{"limit":{"type":"integer","minimum":0,"default":9007199254740995},` + fuzzRules + `},
		"$defs":{"or":{"type":"object","properties":{"limit":{"type":"integer","minimum":0},` + fuzzRules + `}}}}`
)

// FuzzPagedArguments compares what reaches a handler with what the function oracle reads from the
// same text. The function oracle shares no code with the Reader.
func FuzzPagedArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"cursor":"x","id":9007199254740993}`, `{"filter":{"tenant":"mine","Tenant":"other"}}`,
		`{"own":{"Tenant":"other"},"raw":{"tenant":"mine"}}`, `{"list":[{"size":1e1}],"map":{"a":{"tenant":"mine"},"A":{}}}`,
		`{"any":[1.5,18446744073709551615,{"x":-0.0}],"ratio":1e300,"count":18446744073709551615}`, `{"limit":1.0,"K":1}`,
		`{"or":[{"ID":2},{"or":[{"tenant":"mine"}]}]}`, `{"any":[1e20,9007199254740992.5,1e-400]}`, `{"pair":[1,2,3]}`,
	} {
		f.Add([]byte(seed))
	}
	arguments := readerOf[fuzzIn](f, fuzzSchema)
	resized := readerOf[fuzzIn](f, fuzzSchema, "limit", "raw")
	f.Fuzz(func(t *testing.T, text []byte) {
		in, bound, cursor, err := arguments.Read(text, 1<<20)
		if err != nil {
			if !reflect.DeepEqual(in, fuzzIn{}) || bound != nil || cursor != "" {
				t.Fatalf("%q: %v, and yet %+v", text, err, in)
			}
			if _, _, _, err := resized.Read(text, 1<<20); err == nil {
				t.Fatalf("%q is refused only if all of it is bound", text)
			}
			return
		}
		given, ok := oracle(t, text).(map[string]any)
		if !ok && (len(text) == 0 || strings.TrimSpace(string(text)) == "null") {
			given, ok = map[string]any{}, true
		}
		if !ok {
			t.Fatalf("%q is an object", text)
		}
		if want, _ := given["cursor"].(string); cursor != want {
			t.Fatalf("%q: the cursor is %q", text, cursor)
		}
		delete(given, "cursor")
		if _, ok := given["limit"]; !ok {
			given["limit"], _ = new(big.Rat).SetString("9007199254740995")
		}
		if was := oracle(t, bound); !agree(given, was) || !agree(was, given) {
			t.Fatalf("%q is bound as %s", text, bound)
		}
		again, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		got := oracle(t, again).(map[string]any)
		if got["ratio"] != nil { // json.Marshal writes it with only as many digits as a double needs
			got["ratio"] = new(big.Rat).SetFloat64(in.Ratio)
		}
		if !agree(got, given) {
			t.Fatalf("%q became %s", text, again)
		}
		for name, value := range given {
			if _, landed := got[name]; !landed && isField(name) && !isEmpty(value) {
				t.Fatalf("%q: %s is missing in %s", text, name, again)
			}
		}
		checkRules(t, text, got)
		for _, raw := range in.Or { // a handler may decode these values with encoding/json, which ignores the case of names
			var inner struct {
				fuzzFilter
				ID json.Number `json:"id"`
			}
			if json.Unmarshal(raw, &inner) != nil {
				continue
			}
			if inner.Tenant != "" && inner.Tenant != "mine" || !strings.Contains(" 1 9007199254740993 9223372036854775807 ", " "+inner.ID.String()+" ") && inner.ID != "" {
				t.Fatalf("%q: %s has %+v", text, raw, inner)
			}
		}
		same, rest, _, err := resized.Read(text, 1<<20)
		if err != nil || !reflect.DeepEqual(same, in) {
			t.Fatalf("%q became %+v, not %+v, with unbound arguments: %v", text, same, in, err)
		}
		delete(given, "limit")
		delete(given, "raw")
		if was := oracle(t, rest); !agree(given, was) || !agree(was, given) {
			t.Fatalf("%q is bound as %s without limit and raw", text, rest)
		}
		// Reading the bound text as arguments gives the same bound text.
		if _, twice, _, err := arguments.Read(bound, 1<<20); err != nil || string(twice) != string(bound) {
			t.Fatalf("%s is bound as %s, %v", bound, twice, err)
		}
	})
}

// oracle decodes a JSON text, with every number as a *big.Rat. It fails the test if the text
// has a number that the Reader should have refused, or an object with two members of the same name.
// A number with very many digits or a large exponent becomes the nearest double, because the exact
// number would be vast.
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

// agree reports whether two values are equal. But an object in the second value may have members
// that the first value lacks.
func agree(part, whole any) bool {
	switch p := part.(type) {
	case *big.Rat:
		other, ok := whole.(*big.Rat)
		return ok && p.Cmp(other) == 0
	case []any:
		other, ok := whole.([]any)
		if !ok || len(p) != len(other) {
			return false
		}
		for i := range p {
			if !agree(p[i], other[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		other, ok := whole.(map[string]any)
		for name, member := range p {
			if inside, has := other[name]; !has || !agree(member, inside) {
				return false
			}
		}
		return ok
	}
	return reflect.DeepEqual(part, whole)
}

func isField(name string) bool {
	return strings.Contains(" tenant size count id limit ratio filter own list map any raw or pair ", " "+name+" ")
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case *big.Rat:
		return v.Sign() == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil || value == "" || value == false
}

// checkRules checks the rules of fuzzSchema without the schema library.
func checkRules(t *testing.T, text []byte, got map[string]any) {
	t.Helper()
	filter := func(value any) {
		members, _ := value.(map[string]any)
		if tenant, ok := members["tenant"]; ok && tenant != "mine" {
			t.Fatalf("%q: the tenant is %v", text, tenant)
		}
		if size, ok := members["size"].(*big.Rat); ok && size.Cmp(big.NewRat(10, 1)) > 0 {
			t.Fatalf("%q: the size is %v", text, size)
		}
	}
	for _, value := range []any{got, got["filter"], got["own"], got["raw"]} {
		filter(value)
	}
	list, _ := got["list"].([]any)
	for _, value := range list {
		filter(value)
	}
	members, _ := got["map"].(map[string]any)
	for _, value := range members {
		filter(value)
	}
	if id, ok := got["id"].(*big.Rat); ok && id.RatString() != "1" && id.RatString() != "9007199254740993" && id.RatString() != "9223372036854775807" {
		t.Fatalf("%q: the id is %v", text, id)
	}
	if limit := got["limit"].(*big.Rat); limit.Sign() < 0 || !limit.IsInt() {
		t.Fatalf("%q: the limit is %v", text, limit)
	}
}
