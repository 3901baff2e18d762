package gosdk

import (
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
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

// TestDefaultsAreThoseOfTheLibrary compares where no number needs more than a
// double.
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
		if err := fill(schema, got); err != nil {
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

type fuzzFilter struct {
	Tenant string `json:"tenant,omitempty"`
	Size   int8   `json:"size,omitempty"`
}

// fuzzOwn decodes itself.
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
}

const (
	fuzzFilterSchema = `{"type":"object","properties":{"tenant":{"enum":["mine"]},"size":{"type":"integer","maximum":10}}}`
	fuzzSchema       = `{"type":"object","properties":{"tenant":{"enum":["mine"]},"size":{"type":"integer","maximum":10},
		"id":{"enum":[1,9007199254740993,9223372036854775807]},"limit":{"type":"integer","minimum":0,"default":9007199254740995},
		"filter":` + fuzzFilterSchema + `,"own":` + fuzzFilterSchema + `,"raw":` + fuzzFilterSchema + `,
		"list":{"type":"array","items":` + fuzzFilterSchema + `},"map":{"type":"object","additionalProperties":` + fuzzFilterSchema + `}}}`
)

// FuzzPagedArguments holds what reaches a handler against a reading of the text
// that shares no code with the one under test.
func FuzzPagedArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `{"cursor":"x","id":9007199254740993}`, `{"filter":{"tenant":"mine","Tenant":"other"}}`,
		`{"own":{"Tenant":"other"},"raw":{"tenant":"mine"}}`, `{"list":[{"size":1e1}],"map":{"a":{"tenant":"mine"},"A":{}}}`,
		`{"any":[1.5,18446744073709551615,{"x":-0.0}],"ratio":1e300,"count":18446744073709551615}`, `{"limit":1.0,"K":1}`,
	} {
		f.Add([]byte(seed))
	}
	schema, _, err := pagedInput[fuzzIn](&mcp.Tool{InputSchema: json.RawMessage(fuzzSchema)}, "cursor")
	if err != nil {
		f.Fatal(err)
	}
	arguments, err := newPagedArguments[fuzzIn](schema, "cursor")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, bound, cursor, err := arguments.read(text)
		if err != nil {
			if !reflect.DeepEqual(in, fuzzIn{}) || bound != nil || cursor != "" {
				t.Fatalf("%q: %v, and yet %+v", text, err, in)
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
		if got["ratio"] != nil { // is written in as few digits as a double needs
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
		// What was bound is what would be bound, unless it has digits that only a double has.
		if _, twice, _, err := arguments.read(bound); err == nil && string(twice) != string(bound) {
			t.Fatalf("%s is bound as %s", bound, twice)
		} else if err != nil && !errors.Is(err, errNumber) {
			t.Fatalf("%s: %v", bound, err)
		}
	})
}

// oracle reads a text with every number as a rational, or as its literal where
// that would be vast.
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
			if len(v) > 40 || f != 0 && (f < 1e-30 && f > -1e-30 || f > 1e30 || f < -1e30) || f == 0 && strings.ContainsAny(v.String(), "eE") {
				return new(big.Rat).SetFloat64(f)
			}
			r, _ := new(big.Rat).SetString(v.String())
			if !r.IsInt() {
				r.SetFloat64(f)
			} else if !r.Num().IsInt64() && !r.Num().IsUint64() {
				r.SetFloat64(f)
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

// agree reports whether all of got is in given.
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

func isField(name string) bool {
	return strings.Contains(" tenant size count id limit ratio filter own list map any raw ", " "+name+" ")
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

// checkRules is the schema, written by hand.
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
