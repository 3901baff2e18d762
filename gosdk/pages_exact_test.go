package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
	"github.com/tripseal/tripseal/gosdk"
)

const invalidParams = `{"code":-32602,"message":"Invalid params"}`

// taker is a client of a paged tool. It keeps the arguments that the tool's handler got last,
// and counts the calls of the handler.
type taker[In any] struct {
	session *mcp.ClientSession
	calls   int
	got     In
}

// newTaker registers a paged tool with two pages, and returns a taker for it.
func newTaker[In any](t *testing.T, schema any, options *gosdk.Options) *taker[In] {
	t.Helper()
	server, taken := newServer(), new(taker[In])
	protected := gosdk.Protect(server, boundary(t, &book{}, nil), options)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t", InputSchema: schema}, func(_ context.Context, _ *mcp.CallToolRequest, in In, after *key) ([]row, *key, error) {
		taken.got = in
		taken.calls++
		if after != nil {
			return nil, nil, nil
		}
		return nil, &key{1}, nil
	}, nil)
	taken.session = connect(t, server, nil, revision2026)
	return taken
}

// call calls the tool, and returns the cursor of the next page. It also returns an error if the
// result of the tool is an error.
func (k *taker[In]) call(t *testing.T, arguments string) (string, error) {
	t.Helper()
	params := &mcp.CallToolParams{Name: "t"}
	if arguments != "" {
		params.Arguments = json.RawMessage(arguments)
	}
	before := k.calls
	result, err := callTool(t, k.session, params)
	if err == nil && result.IsError {
		err = errors.New(text(result))
	}
	if err != nil {
		if k.calls != before {
			t.Errorf("%s: the handler ran, then: %v", arguments, err)
		}
		return "", err
	}
	var page rowsPage
	if err := json.Unmarshal([]byte(text(result)), &page); err != nil {
		t.Fatal(err)
	}
	return page.Next, nil
}

func (k *taker[In]) mustCall(t *testing.T, arguments string) string {
	t.Helper()
	next, err := k.call(t, arguments)
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	return next
}

// properties returns the schema of an object with the given properties. The schema allows other
// properties too.
func properties(text string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + text + `}}`)
}

type tenant struct {
	Tenant string `json:"tenant,omitempty"`
	Size   int    `json:"size,omitempty"`
	Kind   string `json:"kind,omitempty"`
}

// selfMade has its own UnmarshalJSON, written in the usual way.
type selfMade tenant

func (s *selfMade) UnmarshalJSON(text []byte) error {
	type plain selfMade
	return json.Unmarshal(text, (*plain)(s))
}

// foreign has its own UnmarshalJSON, which reads a name that is not the name of its field.
type foreign struct{ name string }

func (f *foreign) UnmarshalJSON(text []byte) error {
	var inner struct{ Tenant string }
	err := json.Unmarshal(text, &inner)
	f.name = inner.Tenant
	return err
}

type Embedded struct {
	Filter *tenant `json:"filter,omitempty"`
}

const filterSchema = `{"type":"object","properties":{"tenant":{"enum":["mine"]},"size":{"type":"integer","maximum":10},"kind":{"type":"string"}}}`

func TestANameInAnotherCaseNeverReachesAField(t *testing.T) {
	schema := properties(`"filter":` + filterSchema + `,"list":{"type":"array","items":` + filterSchema + `},"map":{"type":"object","additionalProperties":` + filterSchema + `}`)
	filters := []string{
		`{"tenant":"mine","Tenant":"other"}`, `{"Tenant":"other","tenant":"mine"}`, `{"TENANT":"other"}`, `{"\u0054enant":"other"}`,
		`{"\u017fize":99}`, `{"size":1,"ſize":99}`, `{"\u212aind":"x"}`, `{"Kind":"x"}`,
	}
	check := func(name, arguments string, call func(*testing.T, string) (string, error)) {
		t.Helper()
		if _, err := call(t, arguments); wire(err) != invalidParams {
			t.Errorf("%s: %s: %v", name, arguments, err)
		}
	}
	plain := newTaker[struct {
		Filter tenant            `json:"filter"`
		List   []*tenant         `json:"list"`
		Map    map[string]tenant `json:"map"`
		Array  [1]tenant         `json:"array"`
	}](t, schema, nil)
	embedded := newTaker[struct {
		*Embedded
		List []struct{ tenant } `json:"list"`
	}](t, schema, nil)
	own := newTaker[struct {
		Filter selfMade           `json:"filter"`
		List   []*selfMade        `json:"list"`
		Map    map[string]foreign `json:"map"`
	}](t, schema, nil)
	raw := newTaker[struct {
		Filter json.RawMessage            `json:"filter"`
		List   []json.RawMessage          `json:"list"`
		Map    map[string]json.RawMessage `json:"map"`
	}](t, schema, nil)
	whole := newTaker[json.RawMessage](t, schema, nil)
	for _, filter := range filters {
		for _, arguments := range []string{
			`{"filter":` + filter + `}`, `{"list":[{"tenant":"mine"},` + filter + `]}`, `{"map":{"a":` + filter + `}}`,
		} {
			check("plain", arguments, plain.call)
			check("own", arguments, own.call)
			check("raw", arguments, raw.call)
			check("whole", arguments, whole.call)
			if !strings.Contains(arguments, "map") {
				check("embedded", arguments, embedded.call)
			}
		}
		check("array", `{"array":[`+filter+`]}`, plain.call)
	}
	for _, arguments := range []string{`{"Filter":{"tenant":"mine"}}`, `{"filter":{},"FILTER":{}}`, `{"fılter":{},"Filter":{}}`} {
		check("plain", arguments, plain.call)
		check("whole", arguments, whole.call)
	}
	open := newTaker[struct {
		Filter *selfMade  `json:"filter"`
		List   []selfMade `json:"list"`
	}](t, object, nil)
	for _, filter := range []string{filters[0], filters[1], `{"size":1,"ſize":99}`} {
		check("twins without a schema", `{"filter":`+filter+`}`, open.call)
		check("twins without a schema", `{"list":[`+filter+`]}`, open.call)
	}
	twins := newTaker[struct {
		A, B foreign
	}](t, properties(`"A":`+filterSchema+`,"B":{"properties":{"Tenant":{}}}`), nil)
	for _, arguments := range []string{`{"A":{"Tenant":"other"}}`, `{"B":{"tenant":"other"}}`} {
		check("a name of another object", arguments, twins.call)
	}
	check("a name nobody knows, twice", `{"filter":{"deep":[{"x":1,"X":2}]}}`, raw.call)
	check("a name of an argument", `{"filter":{"deep":[{"Filter":1}]}}`, raw.call)

	// Names that no field has are ignored, even if they look like a field's name.
	plain.mustCall(t, `{"filter":{"tenant":"mine","tenants":"x","tenänt":"y","":1},"map":{"a":{"tenant":"mine"},"A":{}}}`)
	if plain.got.Filter != (tenant{Tenant: "mine"}) || len(plain.got.Map) != 2 || plain.got.Map["a"].Tenant != "mine" {
		t.Errorf("got %+v", plain.got)
	}
	embedded.mustCall(t, `{"filter":{"tenant":"mine","size":3},"list":[{"kind":"x"}]}`)
	if *embedded.got.Filter != (tenant{Tenant: "mine", Size: 3}) || embedded.got.List[0].Kind != "x" {
		t.Errorf("got %+v", embedded.got)
	}
	own.mustCall(t, `{"filter":{"tenant":"mine"},"list":[{"size":4}],"map":{"k":{"tenant":"mine"}}}`)
	if own.got.Filter.Tenant != "mine" || own.got.List[0].Size != 4 || own.got.Map["k"].name != "mine" {
		t.Errorf("got %+v", own.got)
	}
}

// A name is refused if it differs only in case from a name anywhere in the schema.
func TestANameOfTheSchemaCountsWhereverTheSchemaHasIt(t *testing.T) {
	for place, keywords := range map[string]string{
		"a reference to the root":       `"properties":{"tenant":{"enum":["mine"]},"or":{"type":"array","items":{"$ref":"#"}}}`,
		"a definition":                  `"$defs":{"n":{"properties":{"tenant":{"enum":["mine"]}}}},"properties":{"or":{"items":{"$ref":"#/$defs/n"}}}`,
		"required":                      `"properties":{"or":{"items":{"not":{"required":["tenant"]}}}}`,
		"dependentRequired, a key":      `"properties":{"or":{"items":{"dependentRequired":{"tenant":["proof"]}}}}`,
		"dependentRequired, a value":    `"properties":{"or":{"items":{"not":{"required":["x"],"dependentRequired":{"x":["tenant"]}}}}}`,
		"dependentSchemas":              `"properties":{"or":{"items":{"dependentSchemas":{"tenant":false}}}}`,
		"propertyNames, an enumeration": `"properties":{"or":{"items":{"not":{"propertyNames":{"enum":["tenant"]}}}}}`,
		"propertyNames, a constant":     `"properties":{"or":{"items":{"not":{"propertyNames":{"const":"tenant"}}}}}`,
		"dependencies, a schema":        `"$schema":"http://json-schema.org/draft-07/schema#","properties":{"or":{"items":{"dependencies":{"tenant":false}}}}`,
		"dependencies, a list":          `"$schema":"http://json-schema.org/draft-07/schema#","properties":{"or":{"items":{"dependencies":{"tenant":["proof"]}}}}`,
	} {
		taken := newTaker[struct {
			Tenant string            `json:"tenant"`
			Or     []json.RawMessage `json:"or"`
			Self   []foreign         `json:"self"`
		}](t, json.RawMessage(`{"type":"object",`+keywords+`}`), nil)
		for _, arguments := range []string{`{"or":[{"Tenant":"theirs"}]}`, `{"or":[{"deep":{"TENANT":"theirs"}}]}`, `{"self":[{"Tenant":"theirs"}]}`} {
			if _, err := taken.call(t, arguments); wire(err) != invalidParams {
				t.Errorf("%s: %s: got %s and %v, %v", place, arguments, taken.got.Or, taken.got.Self, err)
			}
		}
	}
}

// span has its own UnmarshalJSON, which reads other names than those of its fields.
type span struct{ From, To string }

func (s *span) UnmarshalJSON(text []byte) error {
	var inner struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	err := json.Unmarshal(text, &inner)
	*s = span(inner)
	return err
}

type optional[T any] struct {
	Value T
	Set   bool
}

func (o *optional[T]) UnmarshalJSON(text []byte) error {
	o.Set = true
	return json.Unmarshal(text, &o.Value)
}

// For a type with its own UnmarshalJSON, the names of its Go fields do not matter: a name that
// differs from them only in case is not refused.
func TestATypeThatDecodesItselfHasNoNamesButTheSchemas(t *testing.T) {
	type in struct {
		Span   span            `json:"span"`
		Limit  optional[int]   `json:"limit"`
		Filter json.RawMessage `json:"filter"`
	}
	for _, schema := range []any{object, properties(`"span":{"properties":{"from":{"type":"string"},"to":{"type":"string"}}},"limit":{"type":"integer"},"filter":{}`)} {
		taken := newTaker[in](t, schema, nil)
		taken.mustCall(t, `{"span":{"from":"a","to":"b"},"limit":3,"filter":{"field":"x","value":3,"set":[1]}}`)
		if got := taken.got; got.Span != (span{"a", "b"}) || got.Limit != (optional[int]{3, true}) || string(got.Filter) != `{"field":"x","set":[1],"value":3}` {
			t.Errorf("%s: got %+v", schema, got)
		}
	}
}

func TestFieldsThatDifferInCaseAreTwo(t *testing.T) {
	flags := newTaker[struct {
		After int `json:"A"`
		All   int `json:"a"`
	}](t, nil, nil)
	flags.mustCall(t, `{"A":1,"a":2}`)
	if flags.got.After != 1 || flags.got.All != 2 {
		t.Errorf("got %+v", flags.got)
	}
}

func TestTheHandlerGetsTheNumberThatWasChecked(t *testing.T) {
	id := newTaker[struct {
		ID int64 `json:"id"`
	}](t, properties(`"id":{"enum":[9007199254740992]}`), nil)
	for _, arguments := range []string{`{"id":9007199254740993}`, `{"id":9007199254740993.0}`, `{"id":9007199254740991}`} {
		if _, err := id.call(t, arguments); err == nil {
			t.Errorf("%s became %d", arguments, id.got.ID)
		}
	}
	id.mustCall(t, `{"id":9007199254740992}`)

	for name, schema := range map[string]any{
		"enum":  properties(`"id":{"enum":["x",[9007199254740993],9007199254740993]}`),
		"const": map[string]any{"type": "object", "properties": map[string]any{"id": map[string]any{"const": int64(9007199254740993)}}},
		"below": json.RawMessage(`{"type":"object","$defs":{"n":{"enum":[9007199254740993]}},"properties":{"id":{"allOf":[{"$ref":"#/$defs/n"}]}}}`),
		"go":    &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"id": {Enum: []any{int64(9007199254740993)}}}},
	} {
		id := newTaker[struct {
			ID int64 `json:"id"`
		}](t, schema, nil)
		if _, err := id.call(t, `{"id":9007199254740992}`); err == nil {
			t.Errorf("%s: a neighbour passes", name)
		}
		if _, err := id.call(t, `{"id":9007199254740993}`); err != nil || id.got.ID != 9007199254740993 {
			t.Errorf("%s: %d, %v", name, id.got.ID, err)
		}
	}
}

func TestIntegersStayExactInEveryType(t *testing.T) {
	type numbers struct {
		Signed   int64           `json:"signed"`
		Unsigned uint64          `json:"unsigned"`
		Any      any             `json:"any"`
		List     []any           `json:"list"`
		Raw      json.RawMessage `json:"raw"`
		Number   json.Number     `json:"number"`
		Pointer  **int64         `json:"pointer"`
	}
	taken := newTaker[numbers](t, object, nil)
	for _, n := range []string{"9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "0", "-1"} {
		taken.mustCall(t, fmt.Sprintf(`{"signed":%s,"any":%[1]s,"list":[%[1]s],"raw":{"a":[%[1]s]},"number":%[1]s,"pointer":%[1]s}`, n))
		want, _ := strconv.ParseInt(n, 10, 64)
		got := taken.got
		if got.Signed != want || got.Any != want || got.List[0] != want || string(got.Raw) != `{"a":[`+n+`]}` || got.Number.String() != n || **got.Pointer != want {
			t.Errorf("%s became %+v", n, got)
		}
	}
	taken.mustCall(t, `{"unsigned":18446744073709551615,"any":9223372036854775808,"raw":18446744073709551615}`)
	if got := taken.got; got.Unsigned != math.MaxUint64 || got.Any != uint64(1<<63) || string(got.Raw) != "18446744073709551615" {
		t.Errorf("got %+v", got)
	}
	taken.mustCall(t, `{"any":[1.5,2.0,1e2,-0.0,1e-300,{"a":null}]}`)
	if want := []any{1.5, int64(2), int64(100), int64(0), 1e-300, map[string]any{"a": nil}}; !reflect.DeepEqual(taken.got.Any, want) {
		t.Errorf("got %#v", taken.got.Any)
	}
	untyped := newTaker[map[string]any](t, object, nil)
	untyped.mustCall(t, `{"id":9007199254740993,"Id":1}`)
	if untyped.got["id"] != int64(9007199254740993) || untyped.got["Id"] != int64(1) {
		t.Errorf("got %v", untyped.got)
	}
}

func TestANumberThatDoesNotFitIsRefused(t *testing.T) {
	taken := newTaker[struct {
		Any      any     `json:"any"`
		Float    float64 `json:"float"`
		Single   float32 `json:"single"`
		Small    int8    `json:"small"`
		Signed   int64   `json:"signed"`
		Unsigned uint    `json:"unsigned"`
		Text     string  `json:"text"`
	}](t, object, nil)
	for _, arguments := range []string{
		`{"any":1e400}`, `{"any":-1e400}`, `{"float":1e309}`,
		`{"any":18446744073709551616}`, `{"any":-9223372036854775809}`, `{"float":18446744073709551616}`,
		`{"any":1e20}`, `{"float":1e20}`, `{"any":1e300}`, `{"any":18446744073709551617.0}`, `{"any":-9223372036854775809.0}`, `{"any":-9223372036854775809e0}`,
		`{"signed":-9223372036854775809.0}`, `{"any":100000000000000000000e0}`, `{"any":18446744073709551615.5}`, `{"any":1e9223372036854775807}`, `{"any":1e99999999999999999999}`,
		`{"float":1` + strings.Repeat("0", 400) + `}`, `{"other":[1e400]}`,
		`{"float":9007199254740993}`, `{"float":18446744073709551615}`, `{"float":9223372036854775807}`, `{"single":16777217}`, `{"single":1e39}`, `{"single":1e-50}`, `{"single":0.99999999999}`,
		`{"small":128}`, `{"small":-129}`, `{"signed":9223372036854775808}`, `{"signed":1.5}`, `{"signed":1e300}`, `{"unsigned":-1}`, `{"text":1}`, `{"signed":"1"}`,
	} {
		_, err := taken.call(t, arguments)
		if err == nil {
			t.Errorf("%s: got %+v", arguments, taken.got)
			continue
		}
		if msg := err.Error(); strings.Contains(msg, "1e") || strings.Contains(msg, "9007") || strings.Contains(msg, "128") || strings.Contains(msg, "1.5") {
			t.Errorf("%s: the error repeats it: %s", arguments, msg)
		}
	}
	taken.mustCall(t, `{"float":9007199254740994,"single":0.1,"small":-128}`)
	if taken.got.Float != 9007199254740994 || taken.got.Single != 0.1 || taken.got.Small != -128 {
		t.Errorf("got %+v", taken.got)
	}
	taken.mustCall(t, `{"float":1e19,"any":18446744073709551615.0}`)
	if taken.got.Float != 1e19 || taken.got.Any != uint64(math.MaxUint64) {
		t.Errorf("got %+v", taken.got)
	}
}

func TestANumberThatOnlyADoubleMakesWholeIsRefused(t *testing.T) {
	taken := newTaker[struct {
		N any     `json:"n"`
		F float64 `json:"f"`
		I int64   `json:"i"`
	}](t, properties(`"i":{"type":"integer"}`), nil)
	for _, written := range []string{
		"9007199254740992.5", "9007199254740993.1", "1.00000000000000000001", "0.99999999999999999999", "1e-400", "-1e-400", "9223372036854775807.3",
	} {
		for _, name := range []string{"n", "f", "i"} {
			if _, err := taken.call(t, `{"`+name+`":`+written+`}`); err == nil || !strings.HasPrefix(err.Error(), `validating "arguments": a number is out of range`) {
				t.Errorf("%s became %+v, %v", written, taken.got, err)
			}
		}
	}
	taken.mustCall(t, `{"n":4503599627370495.5,"f":5e-324}`)
	if taken.got.N != 4503599627370495.5 || taken.got.F != 5e-324 {
		t.Errorf("got %+v", taken.got)
	}
}

func TestBoundsThatADoubleKeepsAreExact(t *testing.T) {
	type in struct {
		N any `json:"n"`
	}
	numbers := []string{
		"-9223372036854775808", "-9007199254740993", "-9007199254740992", "-9007199254740991", "-9007199254740990", "0", "0.5",
		"9007199254740990", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807", "18446744073709551615",
	}
	for _, bound := range []string{"9007199254740991", "-9007199254740991", "0.5", "4503599627370495.5"} {
		limit, _ := new(big.Rat).SetString(bound)
		for keyword, allows := range map[string]func(compared int) bool{
			"minimum":          func(c int) bool { return c >= 0 },
			"maximum":          func(c int) bool { return c <= 0 },
			"exclusiveMinimum": func(c int) bool { return c > 0 },
			"exclusiveMaximum": func(c int) bool { return c < 0 },
		} {
			taken := newTaker[in](t, properties(`"n":{"`+keyword+`":`+bound+`}`), nil)
			for _, number := range numbers {
				n, _ := new(big.Rat).SetString(number)
				if _, err := taken.call(t, `{"n":`+number+`}`); (err == nil) != allows(n.Cmp(limit)) {
					t.Errorf("%s %s: %s: %v", keyword, bound, number, err)
				}
			}
		}
	}
}

func TestMultipleOfNeverSeesANumberThatADoubleRounds(t *testing.T) {
	taken := newTaker[struct {
		N     any   `json:"n"`
		Other []any `json:"other"`
	}](t, properties(`"n":{"multipleOf":10},"other":{}`), nil)
	for _, arguments := range []string{
		`{"n":9007199254740999}`, `{"n":9007199254741001}`, `{"n":9223372036854775807}`, `{"n":-9007199254740993}`, `{"n":18446744073709551615}`,
		`{"n":10,"other":[{"a":9007199254740993}]}`, `{"n":9007199254740991}`, `{"n":5}`, `{"n":0.5}`,
	} {
		if _, err := taken.call(t, arguments); err == nil {
			t.Errorf("%s: got %+v", arguments, taken.got)
		}
	}
	taken.mustCall(t, `{"n":9007199254740990,"other":[-9007199254740991,"9007199254740993"]}`)
	for m := 2; m < 40; m++ { // the limit of 2^53 relies on this: below it, the schema library is exact
		taken := newTaker[struct {
			N int64 `json:"n"`
		}](t, properties(fmt.Sprintf(`"n":{"multipleOf":%d}`, m)), nil)
		for n := int64(1<<53 - 10); n < 1<<53; n++ {
			if _, err := taken.call(t, fmt.Sprintf(`{"n":%d}`, n)); (err == nil) != (n%int64(m) == 0) {
				t.Errorf("%d is a multiple of %d: %v", n, m, err)
			}
		}
	}
}

func TestAWholeNumberIsAnIntegerHoweverItIsWritten(t *testing.T) {
	taken := newTaker[struct {
		N int64 `json:"n"`
	}](t, properties(`"n":{"type":"integer"}`), nil)
	for written, want := range map[string]int64{
		"1.0": 1, "1e2": 100, "1.50e1": 15, "100e-2": 1, "-0": 0, "-0.0": 0, "0e5": 0, "0.0e-5": 0, "9007199254740993.000": 9007199254740993,
		"9223372036854775807e0": math.MaxInt64, "-92233720368547758080e-1": math.MinInt64, "0.0001E+4": 1, "0.5e1": 5,
		"1000000000000000000000e-20": 10, "1e00000000000000002": 100,
	} {
		taken.mustCall(t, `{"n":`+written+`}`)
		if taken.got.N != want {
			t.Errorf("%s became %d", written, taken.got.N)
		}
	}
	if _, err := taken.call(t, `{"n":0.5}`); err == nil {
		t.Errorf("a half is %d", taken.got.N)
	}
}

func TestDefaultsReachTheHandlerExactly(t *testing.T) {
	taken := newTaker[map[string]any](t, properties(`
		"id":{"default":9007199254740993},
		"nested":{"type":"object","properties":{"limit":{"default":7},"given":{"default":1},"none":{}}},
		"object":{"type":"object","default":{"a":1},"properties":{"b":{"default":2.5}}},
		"nothing":{"default":null}`), nil)
	taken.mustCall(t, `{"nested":{"given":5}}`)
	want := map[string]any{
		"id": int64(9007199254740993), "nested": map[string]any{"limit": int64(7), "given": int64(5)},
		"object": map[string]any{"a": int64(1), "b": 2.5}, "nothing": nil,
	}
	if !reflect.DeepEqual(taken.got, want) {
		t.Errorf("got %v", taken.got)
	}
	for _, arguments := range []string{"", "null", "{}", ` { "cursor" : null } `, `{"cursor":""}`} {
		taken.mustCall(t, arguments)
		if nested := taken.got["nested"].(map[string]any); taken.got["id"] != int64(9007199254740993) || nested["given"] != int64(1) || taken.got["cursor"] != nil {
			t.Errorf("%q: got %v", arguments, taken.got)
		}
	}
	taken.mustCall(t, `{"nothing":1,"id":null}`)
	if taken.got["nothing"] != int64(1) || taken.got["id"] != nil {
		t.Errorf("got %v", taken.got)
	}
}

func TestADefaultIsCheckedAsACallWillBe(t *testing.T) {
	for _, good := range []string{
		`"n":{"enum":[9007199254740993],"default":9007199254740993}`,
		`"n":{"const":9007199254740993,"default":9007199254740993.0}`,
		`"n":{"minimum":9007199254740991,"default":9223372036854775807}`,
		`"n":{"$ref":"#/$defs/big","default":9007199254740993}`,
		`"a/b~c %":{"properties":{"n":{"$ref":"#/$defs/big","default":9007199254740993}}}`,
		`"n":{"type":"object","required":["x"],"properties":{"y":{"default":1}}}`,
		`"n":{"type":"object","minProperties":2,"default":{"x":1},"properties":{"y":{"default":2}}}`,
	} {
		schema := json.RawMessage(`{"type":"object","$defs":{"big":{"enum":[9007199254740993]}},"properties":{` + good + `}}`)
		for _, id := range []string{"", `"$id":"https://example.com/arguments",`} {
			taken := newTaker[map[string]any](t, json.RawMessage(`{`+id+string(schema[1:])), nil)
			if !strings.Contains(good, "required") {
				taken.mustCall(t, `{}`)
			}
		}
	}
	for _, bad := range []string{
		`"n":{"enum":[9007199254740992],"default":9007199254740993}`,
		`"n":{"const":9007199254740992,"default":9007199254740993}`,
		`"n":{"$ref":"#/$defs/big","default":9007199254740992}`,
		`"n":{"properties":{"n":{"allOf":[{"$ref":"#/$defs/big"}],"default":9007199254740992}}}`,
		`"n":{"maximum":9007199254740991,"default":9007199254740992}`,
		`"n":{"default":9007199254740993},"m":{"multipleOf":2}`,
		`"n":{"maxProperties":1,"default":{"x":1},"properties":{"y":{"default":2}}}`,
		`"n":{"type":"integer","default":1e-400}`,
	} {
		schema := json.RawMessage(`{"type":"object","$defs":{"big":{"enum":[9007199254740993]}},"properties":{` + bad + `}}`)
		if !refusedAtRegistration(t, schema) {
			t.Errorf("%s: registered", bad)
		}
	}
}

// Wherever an enum or a const is in the schema, it compares numbers exactly. As doubles,
// 9007199254740993 and 9007199254740992 are the same.
func TestEnumAndConstAreExactWhereverTheyAre(t *testing.T) {
	const right, enum = "9007199254740993", `{"enum":[9007199254740993]}`
	const alone, twice, member = `%[1]s`, `[%[1]s,%[1]s]`, `{"k":%[1]s}`
	for rule, value := range map[string]string{
		enum: alone, `{"const":9007199254740993}`: alone, `{"$ref":"#/$defs/e"}`: alone, `{"anyOf":[` + enum + `]}`: alone, `{"allOf":[{"oneOf":[` + enum + `]}]}`: alone,
		`{"if":true,"then":` + enum + `}`: alone, `{"not":{"not":` + enum + `}}`: alone,
		`{"items":` + enum + `}`: twice, `{"prefixItems":[true,` + enum + `]}`: twice, `{"unevaluatedItems":` + enum + `}`: twice, `{"contains":` + enum + `,"minContains":2}`: twice,
		`{"patternProperties":{".":` + enum + `}}`: member, `{"additionalProperties":` + enum + `}`: member, `{"unevaluatedProperties":` + enum + `}`: member,
		`{"dependentSchemas":{"k":{"properties":{"k":` + enum + `}}}}`: member, `{"properties":{"k":` + enum + `,"0":true}}`: member,
		`{"enum":[[9007199254740993,9007199254740993],{"k":9007199254740993}]}`: twice,
	} {
		taken := newTaker[map[string]any](t, json.RawMessage(`{"type":"object","properties":{"x":`+rule+`},"$defs":{"e":`+enum+`}}`), nil)
		for _, number := range []string{right, "9007199254740992", "9007199254740994"} {
			if _, err := taken.call(t, fmt.Sprintf(`{"x":`+value+`}`, number)); (err == nil) != (number == right) {
				t.Errorf("%s: %s: %v", rule, number, err)
			}
		}
	}
}

// refusedAtRegistration reports whether AddPagedTool panics because of a schema. It fails the test
// if the message of the panic is not from AddPagedTool.
func refusedAtRegistration(t *testing.T, schema any) (refused bool) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			refused = true
			if !strings.HasPrefix(fmt.Sprint(v), "gosdk: the paged tool") {
				t.Errorf("%s: %v", schema, v)
			}
		}
	}()
	newTaker[map[string]any](t, schema, nil)
	return false
}

func TestACursorIsBoundToTheValueNotToItsSpelling(t *testing.T) {
	taken := newTaker[map[string]any](t, properties(`"limit":{"type":"integer","default":10},"id":{}`), nil)
	next := taken.mustCall(t, `{"id":{"a":9007199254740993,"b":[1.5]}}`)
	with := func(rest string) string { return `{"cursor":"` + next + `",` + rest + `}` }
	for _, same := range []string{
		`"id":{"a":9007199254740993,"b":[1.5]}`, `"id":{"b":[1.5],"a":9007199254740993}`, `"id":{"b":[15e-1],"\u0061":9007199254740993.0}`,
		`"limit":10,"id":{"a":9007199254740993,"b":[1.5]}`, `"limit":1e1,"id":{"a":9007199254740993,"b":[1.50]}`,
	} {
		if _, err := taken.call(t, with(same)); err != nil {
			t.Errorf("%s: %v", same, err)
		}
	}
	for _, other := range []string{
		`"id":{"a":9007199254740992,"b":[1.5]}`, `"id":{"a":9007199254740993,"b":[1.5]},"limit":11`, `"id":{"a":"9007199254740993","b":[1.5]}`,
		`"id":{"a":9007199254740993,"b":[1.5],"c":null}`, `"id":{"A":9007199254740993,"b":[1.5]}`, `"id":null`, `"limit":10`,
	} {
		if _, err := taken.call(t, with(other)); wire(err) != invalidCursor {
			t.Errorf("%s: %v", other, err)
		}
	}
}

func TestACursorDiesWithTheDefaultThatItWasIssuedUnder(t *testing.T) {
	cursors, err := cursor.New(cursor.Config{Keys: tripseal.Ephemeral(), Audience: "test"})
	if err != nil {
		t.Fatal(err)
	}
	options := &gosdk.Options{Cursors: cursors}
	before := newTaker[map[string]any](t, properties(`"tenant":{"default":"mine"}`), options)
	after := newTaker[map[string]any](t, properties(`"tenant":{"default":"other"}`), options)
	next := before.mustCall(t, `{}`)
	if _, err := after.call(t, `{"cursor":"`+next+`"}`); wire(err) != invalidCursor {
		t.Errorf("%v", err)
	}
	if _, err := after.call(t, `{"cursor":"`+next+`","tenant":"mine"}`); err != nil {
		t.Error(err)
	}
}

func TestAHandlerThatChangesItsArgumentsChangesNoBinding(t *testing.T) {
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t", InputSchema: object}, func(_ context.Context, req *mcp.CallToolRequest, in map[string]any, after *key) ([]row, *key, error) {
		in["a"].([]any)[0] = "changed"
		clear(in)
		copy(req.Params.Arguments, "[]")
		return nil, &key{1}, nil
	}, nil)
	k := &taker[int]{session: connect(t, server, nil, revision2026)}
	next := k.mustCall(t, `{"a":["x"]}`)
	k.mustCall(t, `{"a":["x"],"cursor":"`+next+`"}`)
}

func TestMalformedArgumentsAreInvalidParams(t *testing.T) {
	taken := newTaker[map[string]any](t, properties(`"prefix":{"type":"string"}`), nil)
	for _, arguments := range []string{
		`[]`, `"x"`, `1`, `true`, `[{"prefix":"x"}]`,
		`{"a":{"b":1,"b":1}}`, `{"a":[{"b":1,"\u0062":2}]}`, `{"cursor":"","\u0063ursor":null}`,
		`{"a":{"\ud800":1}}`, `{"a":[{"x\udc00y":1}]}`, `{"a":{"\ud800":1,"\udc00":2}}`,
		`{"a":` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `}`,
		`{"PREFIX":"x"}`, `{"Cursor":"x"}`, `{"cur\u017for":null}`,
	} {
		if _, err := taken.call(t, arguments); wire(err) != invalidParams {
			t.Errorf("%.60s: %v", arguments, err)
		}
	}
	taken.mustCall(t, `{"a":`+strings.Repeat("[", 127)+strings.Repeat("]", 127)+`}`)
	taken.mustCall(t, `{"a":"\ud800"}`)
	if taken.got["a"] != "\ufffd" {
		t.Errorf("got %q", taken.got["a"])
	}
}

// If arguments violate the schema, the message is the same as that of a typed tool of the SDK.
func TestASchemaViolationReadsAsTheSDKs(t *testing.T) {
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "paged"}, listRows, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "typed"}, func(context.Context, *mcp.CallToolRequest, listArgs) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	session := connect(t, server, nil, revision2026)
	for _, arguments := range []string{`{}`, `{"prefix":1}`, `{"prefix":"r","limit":"x"}`, `{"prefix":"r","table":"x"}`, `{"prefix":null}`, `{"prefix":"r","limit":1.5}`} {
		var said []string
		for _, name := range []string{"paged", "typed"} {
			result, err := callTool(t, session, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
			if err != nil || !result.IsError {
				t.Fatalf("%s: %s: %v", name, arguments, err)
			}
			said = append(said, text(result))
		}
		if said[0] != said[1] {
			t.Errorf("%s: %q, not %q", arguments, said[0], said[1])
		}
	}
}

func TestACursorThatIsNoTextIsInvalidParams(t *testing.T) {
	taken := newTaker[listArgs](t, nil, nil)
	for _, value := range []string{`7`, `["x"]`, `{"x":"y"}`, `false`} {
		if _, err := taken.call(t, `{"prefix":"r","cursor":`+value+`}`); wire(err) != invalidParams {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestTheSchemaIsTheOneThatWasRegistered(t *testing.T) {
	id := map[string]any{"const": "mine"}
	schema := map[string]any{"type": "object", "properties": map[string]any{"id": id, "kind": map[string]any{"enum": []any{"mine"}}}, "required": []string{"kind"}}
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, nil), nil)
	k := new(taker[map[string]any])
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t", InputSchema: schema}, func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any, _ *key) ([]row, *key, error) {
		k.got = in
		return nil, nil, nil
	}, nil)
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListToolsResult); ok {
				if listed, ok := list.Tools[0].InputSchema.(*jsonschema.Schema); ok {
					delete(listed.Properties, "id")
					listed.Properties["kind"].Enum[0] = "other"
					listed.Required[0] = "id"
				}
			}
			return result, err
		}
	})
	delete(id, "const")
	k.session = connect(t, server, nil, revision2026)
	if _, err := k.session.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{`{"id":"other","kind":"mine"}`, `{"id":"mine","kind":"other"}`, `{"id":"mine"}`} {
		if _, err := k.call(t, arguments); err == nil {
			t.Errorf("got %v", k.got)
		}
	}
	k.mustCall(t, `{"id":"mine","kind":"mine"}`)
}

func TestAClosedSchemaTakesACursor(t *testing.T) {
	for name, schema := range map[string]string{
		"closed":         `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`,
		"reference":      `{"type":"object","$ref":"#/$defs/args","$defs":{"args":{"properties":{"a":{"type":"integer"}},"additionalProperties":false}}}`,
		"all of":         `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}},"additionalProperties":false}]}`,
		"unevaluated":    `{"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}}],"unevaluatedProperties":false}`,
		"one member":     `{"type":"object","maxProperties":1}`,
		"names":          `{"type":"object","propertyNames":{"const":"a"}}`,
		"typed members":  `{"type":"object","additionalProperties":{"type":"integer"}}`,
		"older revision": `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{}},"additionalProperties":false}`,
	} {
		taken := newTaker[map[string]any](t, json.RawMessage(schema), nil)
		next := taken.mustCall(t, `{"a":1}`)
		if _, err := taken.call(t, `{"a":1,"cursor":"`+next+`"}`); err != nil || len(taken.got) != 1 {
			t.Errorf("%s: %v, %v", name, taken.got, err)
		}
		if name == "names" || name == "closed" || name == "reference" {
			if _, err := taken.call(t, `{"b":1}`); err == nil {
				t.Errorf("%s: %v", name, taken.got)
			}
		}
	}
}

func TestASchemaThatCannotServeIsRefusedAtRegistration(t *testing.T) {
	for name, schema := range map[string]any{
		"required":          json.RawMessage(`{"type":"object","required":["cursor"]}`),
		"required in case":  json.RawMessage(`{"type":"object","required":["curſor"]}`),
		"property in case":  properties(`"CURSOR":{}`),
		"a lost reference":  json.RawMessage(`{"type":"object","$ref":"#/$defs/none"}`),
		"a wrong default":   properties(`"a":{"type":"string","default":1}`),
		"a default twice":   properties(`"a":{"default":{"x":1,"x":2}}`),
		"a vast default":    properties(`"a":{"default":18446744073709551616}`),
		"a vast enum":       properties(`"a":{"enum":[18446744073709551616]}`),
		"an unknown draft":  json.RawMessage(`{"$schema":"http://json-schema.org/draft-03/schema#","type":"object"}`),
		"not an object":     json.RawMessage(`{"type":"array"}`),
		"no schema at all":  json.RawMessage(`[]`),
		"a nil schema":      (*jsonschema.Schema)(nil),
		"a null property":   properties(`"a":null`),
		"no text":           json.RawMessage(`{`),
		"one keyword twice": json.RawMessage(`{"type":"object","properties":{"a":{"const":1}},"properties":{}}`),

		"a vast minimum":          properties(`"a":{"minimum":9007199254740993}`),
		"a vast maximum":          properties(`"a":{"maximum":-9007199254740992}`),
		"a vast exclusiveMinimum": properties(`"a":{"items":{"exclusiveMinimum":1e300}}`),
		"a vast exclusiveMaximum": json.RawMessage(`{"type":"object","$defs":{"x":{"exclusiveMaximum":9223372036854775807}}}`),
		"a vast bound in Go":      &jsonschema.Schema{Type: "object", Maximum: jsonschema.Ptr(9007199254740993.0)},
		"a bound that rounds":     properties(`"a":{"minimum":4503599627370497.3}`),
		"a vast multipleOf":       properties(`"a":{"multipleOf":9007199254740993}`),
		"a broken multipleOf":     properties(`"a":{"multipleOf":0.01}`),
	} {
		if !refusedAtRegistration(t, schema) {
			t.Errorf("%s: registered", name)
		}
	}
}

func TestAKeyOfAMapHasOneSpelling(t *testing.T) {
	taken := newTaker[struct {
		Signed map[int8]string         `json:"signed"`
		Small  map[uint8]string        `json:"small"`
		Named  map[name]string         `json:"named"`
		Text   map[netAddress]struct{} `json:"text"`
		Addr   map[netip.Addr]string   `json:"addr"`
		Blind  map[readOnlyText]string `json:"blind"`
	}](t, properties(`"signed":{"properties":{"1":{"const":"mine"}}},"small":{"type":"object"},"addr":{"properties":{"::1":{"const":"deny"}}}`), nil)
	taken.mustCall(t, `{"signed":{"1":"mine","-5":"x"},"small":{"255":"y"},"named":{"n":"z"},"text":{"a":{}},"addr":{"::1":"deny","::2":"allow"}}`)
	got := taken.got
	if got.Signed[1] != "mine" || got.Signed[-5] != "x" || got.Small[255] != "y" || got.Named["n"] != "z" || len(got.Text) != 1 {
		t.Errorf("got %+v", got)
	}
	for _, arguments := range []string{
		`{"signed":{"01":"other"}}`, `{"signed":{"+1":"other"}}`, `{"signed":{"-0":"x"}}`, `{"signed":{"128":"x"}}`, `{"signed":{"":"x"}}`, `{"signed":{"1.0":"x"}}`,
		`{"small":{"256":"x"}}`, `{"small":{"-1":"x"}}`, `{"small":{"007":"x"}}`, `{"text":{"a":{},"A":{}}}`, `{"text":{"A":{}}}`, `{"text":{"refused":{}}}`,
		`{"addr":{"0::1":"allow"}}`, `{"addr":{"::2":"x","0::2":"y"}}`, `{"addr":{"x":"y"}}`, `{"blind":{"x":"y"}}`,
	} {
		if _, err := taken.call(t, arguments); err == nil {
			t.Errorf("%s: got %+v", arguments, taken.got)
		}
	}
}

type name string

// netAddress can be read from a text in upper or lower case, and keeps it in lower case.
type netAddress string

func (a *netAddress) UnmarshalText(text []byte) error {
	if string(text) == "refused" {
		return errors.New("not an address")
	}
	*a = netAddress(strings.ToLower(string(text)))
	return nil
}

// readOnlyText can be read from a text, but cannot be written as a text.
type readOnlyText struct{ text string }

func (r *readOnlyText) UnmarshalText(text []byte) error {
	r.text = string(text)
	return nil
}

type Base struct {
	ID     int    `json:"id"`
	Shadow string `json:"shadow"`
	Both   string
	Pick   string `json:"Choice"`
}

type Other struct{ Both, Choice string }

type Loop struct {
	*Loop
	Depth int `json:"depth"`
}

type hidden struct {
	Seen string `json:"seen"`
}

type odd struct {
	Dash string `json:"-,"`   //lint:ignore SA5008 its name is -
	Bad  string `json:"a\"b"` //lint:ignore SA5008 its name is Bad
}

type named struct {
	Inner string `json:"inner"`
}

func (n *named) UnmarshalJSON([]byte) error { return errors.New("nobody calls this") }

// rival has a method UnmarshalJSON. The type before it has one too. A struct that embeds both types
// has no method UnmarshalJSON.
type rival struct{ Inner string }

func (r *rival) UnmarshalJSON([]byte) error { return errors.New("nobody calls this") }

type zoo struct {
	Base
	odd
	*Other
	hidden
	*Loop    `json:"loop"`
	Shadow   int            `json:"shadow"`
	Untagged string         // its name in JSON is Untagged
	Skipped  string         `json:"-"`
	Time     time.Time      `json:"time"`
	TimeP    *time.Time     `json:"timep"`
	Bytes    []byte         `json:"bytes"`
	Array    [2]int         `json:"array"`
	Any      any            `json:"any"`
	Strings  map[string]any `json:"strings"`
	Address  netAddress     `json:"address"`
	Self     *selfMade      `json:"self"`
	Nested   [][]*zoo       `json:"nested"`
	Map      map[string]map[string][]Base
	Func     fmt.Stringer `json:"func"`
}

// Arguments become the same Go values as with encoding/json. That does not hold if a name
// differs from a field's name only in case, or if a number needs more than a double. This test
// has no such names and numbers.
func TestArgumentsLandAsEncodingJSONPutsThem(t *testing.T) {
	taken := newTaker[zoo](t, object, nil)
	fit := 0
	for _, arguments := range []string{
		`{}`, `{"id":1,"shadow":2,"Both":"x","Choice":"c","seen":"y","Untagged":"z","-":"d","Dash":"e","Bad":"b","a":"c","Skipped":"s","private":"p"}`,
		`{"loop":{"depth":2,"Loop":{"depth":3}},"depth":4,"Base":{"id":9},"hidden":{"seen":"q"}}`,
		`{"time":"2026-07-28T00:00:00Z","timep":"2026-07-28T00:00:00Z"}`, `{"time":"x"}`, `{"time":null,"timep":null}`, `{"time":{}}`, `{"time":1}`,
		`{"bytes":"aGk="}`, `{"bytes":[1,2]}`, `{"bytes":"?"}`, `{"bytes":null}`, `{"bytes":[256]}`, `{"bytes":{}}`,
		`{"array":[1,2]}`, `{"array":null}`, `{"array":{}}`, `{"array":"x"}`,
		`{"any":null}`, `{"any":["x",true,{"a":[]}]}`, `{"strings":{"a":null,"":"x"}}`, `{"strings":null}`, `{"strings":{}}`, `{"strings":[]}`,
		`{"address":"A"}`, `{"address":null}`, `{"address":1}`, `{"address":"refused"}`,
		`{"self":{"tenant":"x","size":1}}`, `{"self":null}`, `{"self":{}}`, `{"self":[]}`, `{"self":"x"}`,
		`{"nested":[[{"id":1,"nested":[[null,{}]]}],[],null]}`, `{"nested":[{}]}`, `{"nested":{}}`, `{"Map":{"a":{"b":[{"id":3}],"c":null}}}`,
		`{"Untagged":"x"}`, `{"id":2}`, `{"func":null}`, `{"func":"x"}`, `{"func":{}}`, `{"id":null,"shadow":null}`, `{"id":true}`, `{"id":"x"}`, `{"id":[]}`, `{"id":{}}`, `{"Untagged":1}`, `{"Untagged":false}`,
	} {
		var want zoo
		wrong := json.Unmarshal([]byte(arguments), &want)
		_, err := taken.call(t, arguments)
		if (err == nil) != (wrong == nil) {
			t.Errorf("%s: %v; encoding/json: %v", arguments, err, wrong)
		} else if err == nil && !reflect.DeepEqual(taken.got, want) {
			t.Errorf("%s: %+v; encoding/json: %+v", arguments, taken.got, want)
		} else if err == nil {
			fit++
		}
	}
	if fit < 25 {
		t.Errorf("only %d fit", fit)
	}
}

func TestAnUnexportedEmbeddedPointerIsRefusedNotFilled(t *testing.T) {
	taken := newTaker[struct {
		*hidden
		*named `json:"named"`
		rival  `json:"rival"`
	}](t, object, nil)
	inner := newTaker[struct {
		named `json:"named"`
		rival `json:"rival"`
	}](t, object, nil)
	inner.mustCall(t, `{"named":{"inner":"x"},"rival":null}`)
	if inner.got.named.Inner != "x" {
		t.Errorf("got %+v", inner.got)
	}
	for _, arguments := range []string{`{"seen":"x"}`, `{"named":{"inner":"x"}}`} {
		if _, err := taken.call(t, arguments); err == nil || !strings.Contains(err.Error(), "not exported") {
			t.Errorf("got %+v, %v", taken.got, err)
		}
	}
	taken.mustCall(t, `{"named":null}`)
}

func TestArgumentsThatTheirDefaultsOrEscapesMakeTooLongNeverReachTheHandler(t *testing.T) {
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.MaxArguments = 100 }), nil)
	taken := new(taker[map[string]any])
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t", InputSchema: properties(`"d":{"default":"0123456789"}`)}, func(context.Context, *mcp.CallToolRequest, map[string]any, *key) ([]row, *key, error) {
		taken.calls++
		return nil, &key{1}, nil
	}, nil)
	taken.session = connect(t, server, nil, revision2026)
	for _, arguments := range []string{
		`{"a":"` + strings.Repeat("\u2028", 20) + `"}`, `{"a":"` + strings.Repeat("x", 80) + `"}`, `{"a":[` + strings.Repeat("1e19,", 10) + `1]}`,
	} {
		if _, err := taken.call(t, arguments); wire(err) != invalidParams {
			t.Errorf("%s: %v", arguments, err)
		}
	}
	taken.mustCall(t, `{"a":"`+strings.Repeat("x", 70)+`"}`)
}

func TestArgumentsBeyondTheLimitAreNotRead(t *testing.T) {
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.MaxArguments = 50 }), nil)
	ran := 0
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list"}, func(context.Context, *mcp.CallToolRequest, struct {
		Text string `json:"text"`
	}, *int) ([]int, *int, error) {
		ran++
		return nil, nil, nil
	}, nil)
	session := connect(t, server, nil, revision2026)
	for length, want := range map[int]int{39: 1, 40: 0} { // the rest of the arguments has 11 bytes
		ran = 0
		_, err := callTool(t, session, &mcp.CallToolParams{Name: "list", Arguments: map[string]any{"text": strings.Repeat("x", length)}})
		if ran != want || (err == nil) != (want == 1) {
			t.Errorf("%d bytes: ran %d times, %v", length, ran, err)
		}
	}
}

// bannedFilter has its own UnmarshalJSON. It uses encoding/json, which ignores the case of
// names.
type bannedFilter struct {
	Admin bool `json:"admin"`
}

func (f *bannedFilter) UnmarshalJSON(text []byte) error {
	type plain bannedFilter
	return json.Unmarshal(text, (*plain)(f))
}

// If a rule of the schema bans a name, the name is refused in upper and in lower case. Here, the
// type that reads the name has its own UnmarshalJSON.
func TestANameThatARuleBansIsBannedInAnyCase(t *testing.T) {
	type in struct {
		Filter bannedFilter `json:"filter"`
	}
	for _, rule := range []string{
		`"propertyNames":{"not":{"enum":["admin"]}}`,
		`"propertyNames":{"not":{"const":"admin"}}`,
		`"propertyNames":{"not":{"anyOf":[{"const":"admin"}]}}`,
		`"not":{"const":{"admin":true}}`,
		`"not":{"enum":[{"admin":true}]}`,
		`"if":{"const":{"admin":true}},"then":false`,
	} {
		k := newTaker[in](t, properties(`"filter":{"type":"object",`+rule+`}`), nil)
		for _, name := range []string{"admin", "Admin", "ADMIN"} {
			if _, err := k.call(t, `{"filter":{"`+name+`":true}}`); err == nil || k.got.Filter.Admin {
				t.Errorf("%s: %s reached the handler: %+v", rule, name, k.got)
			}
		}
		if _, err := k.call(t, `{"filter":{"other":true}}`); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestAKeywordInAnotherCaseIsRefusedAtRegistration(t *testing.T) {
	for _, rule := range []string{`"Enum":[1]`, `"CONST":1`, `"Minimum":1`, `"AnyOf":[{"enum":[1]}]`, `"properties":{"n":{"multipleof":2}}`} {
		func() {
			defer func() {
				if problem := fmt.Sprint(recover()); !strings.Contains(problem, "in another case") {
					t.Errorf("%s: %s", rule, problem)
				}
			}()
			newTaker[struct{}](t, json.RawMessage(`{"type":"object",`+rule+`}`), nil)
		}()
	}
}

func TestAnIssuerThatIsNilIsRefused(t *testing.T) {
	defer func() {
		if problem := fmt.Sprint(recover()); !strings.Contains(problem, "cursor.New") {
			t.Errorf("%s", problem)
		}
	}()
	gosdk.Protect(newServer(), boundary(t, &book{}, nil), &gosdk.Options{Cursors: (*cursor.Cursors)(nil)})
}
