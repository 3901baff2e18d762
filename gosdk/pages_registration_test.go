package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/gosdk"
)

// refusal returns the message with which AddPagedTool refuses a schema for the type In, or "" if
// it accepts the schema.
func refusal[In any](t *testing.T, schema any) (said string) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
			if !strings.HasPrefix(said, "gosdk: the paged tool") {
				t.Errorf("%v", v)
			}
		}
	}()
	newTaker[In](t, schema, nil)
	return ""
}

func TestAnEmptyListThatNothingSatisfiesIsRefusedAtRegistration(t *testing.T) {
	in := func(property *jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": property}}
	}
	for name, schema := range map[string]any{
		"Enum":       in(&jsonschema.Schema{Enum: []any{}}),
		"AnyOf":      in(&jsonschema.Schema{AnyOf: []*jsonschema.Schema{}}),
		"OneOf":      in(&jsonschema.Schema{OneOf: []*jsonschema.Schema{}}),
		"Types":      in(&jsonschema.Schema{Types: []string{}}),
		"deep Enum":  in(&jsonschema.Schema{Items: &jsonschema.Schema{Not: &jsonschema.Schema{Not: &jsonschema.Schema{Enum: []any{}}}}}),
		"root Enum":  &jsonschema.Schema{Type: "object", Enum: []any{}},
		"value Enum": jsonschema.Schema{Type: "object", Enum: []any{}},
		"mixed Enum": map[string]any{"type": "object", "properties": map[string]*jsonschema.Schema{"a": {Enum: []any{}}}},
		"struct Enum": struct {
			Type       string                       `json:"type"`
			Properties map[string]jsonschema.Schema `json:"properties"`
		}{"object", map[string]jsonschema.Schema{"a": {Enum: []any{}}}},
		"text Enum":  properties(`"a":{"enum":[]}`),
		"text AnyOf": properties(`"a":{"allOf":[{"anyOf":[]}]}`),
	} {
		keyword := name[strings.LastIndex(name, " ")+1:]
		if said := refusal[map[string]any](t, schema); !strings.Contains(said, "empty "+keyword) {
			t.Errorf("%s: %q", name, said)
		}
	}
	for _, harmless := range []*jsonschema.Schema{
		{Required: []string{}}, {AllOf: []*jsonschema.Schema{}}, {Properties: map[string]*jsonschema.Schema{}}, {PrefixItems: []*jsonschema.Schema{}},
		{Examples: []any{}}, {Extra: map[string]any{}}, {Defs: map[string]*jsonschema.Schema{}}, {Not: &jsonschema.Schema{}},
	} {
		if said := refusal[map[string]any](t, in(harmless)); said != "" {
			t.Errorf("%+v: %s", harmless, said)
		}
	}
	for _, lost := range []string{`"enum":null`, `"not":null`, `"required":null`, `"minimum":null`, `"pattern":null`, `"items":{"enum":null}`} {
		if said := refusal[map[string]any](t, properties(`"a":{`+lost+`}`)); !strings.Contains(said, "null") {
			t.Errorf("%s: %q", lost, said)
		}
	}
	itself := in(nil)
	itself.Properties["a"] = itself
	if said := refusal[map[string]any](t, itself); !strings.Contains(said, "use $ref") {
		t.Errorf("a schema in itself: %q", said)
	}
}

func TestARuleOfAnotherDraftIsRefusedAtRegistration(t *testing.T) {
	const older = `"$schema":"http://json-schema.org/draft-07/schema#",`
	newer := []string{`"prefixItems":[false]`, `"dependentSchemas":{"a":false}`, `"dependentRequired":{"a":["b"]}`}
	for _, rule := range []string{`"items":[false]`, `"items":[true],"additionalItems":false`, `"dependencies":{"a":false}`, `"dependencies":{"a":["b"]}`} {
		if said := refusal[map[string]any](t, properties(`"a":{`+rule+`}`)); !strings.Contains(said, "draft") {
			t.Errorf("%s: %q", rule, said)
		}
		if said := refusal[map[string]any](t, json.RawMessage(`{`+older+`"type":"object","properties":{"a":{`+rule+`}}}`)); said != "" {
			t.Errorf("%s: %s", rule, said)
		}
	}
	for _, rule := range newer {
		if said := refusal[map[string]any](t, json.RawMessage(`{`+older+`"type":"object","properties":{"a":{`+rule+`}}}`)); !strings.Contains(said, "draft") {
			t.Errorf("%s: %q", rule, said)
		}
		if said := refusal[map[string]any](t, properties(`"a":{`+rule+`}`)); said != "" {
			t.Errorf("%s: %s", rule, said)
		}
	}
}

// In draft-07, the schema library ignores every rule beside a $ref. So such a rule is refused.
func TestARuleBesideAReferenceOfDraft07IsRefusedAtRegistration(t *testing.T) {
	const older = `"$schema":"http://json-schema.org/draft-07/schema#",`
	const definitions = `,"definitions":{"n":{"type":"integer"},"o":{"type":"object"}}}`
	for _, rule := range []string{
		`"maximum":100`, `"enum":[1]`, `"const":1`, `"type":"integer"`, `"type":["integer"]`, `"not":{"const":2}`, `"allOf":[true]`, `"anyOf":[false]`, `"if":true`, `"minLength":5`,
		`"required":["a"]`, `"properties":{"a":false}`, `"additionalProperties":false`, `"items":{}`, `"items":[false]`, `"dependencies":{"a":["b"]}`, `"uniqueItems":true`,
		`"properties":{"a":{"default":1}}`, `"default":1,"minimum":2`,
	} {
		schema := `{` + older + `"type":"object","properties":{"a":{"items":{"$ref":"#/definitions/n",` + rule + `}}}` + definitions
		if said := refusal[map[string]any](t, json.RawMessage(schema)); !strings.Contains(said, "draft") {
			t.Errorf("%s: %q", rule, said)
		}
		newer := strings.Replace(schema, older, "", 1)
		if said := refusal[map[string]any](t, json.RawMessage(newer)); said != "" && !strings.Contains(rule, "[false]") && !strings.Contains(rule, "dependencies") && !strings.Contains(said, "the default at #") {
			t.Errorf("%s: %s", newer, said)
		}
	}
	for _, root := range []string{
		`{` + older + `"type":"object","$ref":"#/definitions/o","required":["tenant"],"additionalProperties":false` + definitions,
		`{` + older + `"type":"object","$ref":"#/definitions/o"` + definitions,
	} {
		if said := refusal[map[string]any](t, json.RawMessage(root)); !strings.Contains(said, "draft") {
			t.Errorf("%s: %q", root, said)
		}
	}
	k := newTaker[map[string]any](t, json.RawMessage(`{`+older+`"type":"object","allOf":[{"$ref":"#/definitions/o"}],"required":["a"],"properties":{
		"a":{"$ref":"#/definitions/n","title":"A","description":"a","$comment":"a","examples":[1],"readOnly":true,"format":"int64","x-order":1},
		"b":{"$ref":"#/definitions/n","default":7}}`+definitions), nil)
	k.mustCall(t, `{"a":1}`)
	if k.got["b"] != int64(7) {
		t.Errorf("got %v", k.got)
	}
	if _, err := k.call(t, `{"a":"x"}`); err == nil {
		t.Errorf("got %v", k.got)
	}
	if said := refusal[map[string]any](t, json.RawMessage(`{`+older+`"type":"object","properties":{"b":{"$ref":"#/definitions/n","default":"x"}}`+definitions)); !strings.Contains(said, "default") {
		t.Errorf("%q", said)
	}
}

func TestARuleWithoutTheOneThatItNeedsIsRefusedAtRegistration(t *testing.T) {
	const older = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for _, rule := range []string{
		`"then":{"required":["tenant"]}`, `"else":false`, `"minContains":2`, `"maxContains":2`, `"$recursiveRef":"#"`, `"items":{"type":"string"},"additionalItems":false`, `"additionalItems":false`,
	} {
		for _, draft := range []string{"", older} {
			if said := refusal[map[string]any](t, json.RawMessage(`{`+draft+`"type":"object","properties":{"a":{`+rule+`}}}`)); !strings.Contains(said, "does not apply") {
				t.Errorf("%s%s: %q", draft, rule, said)
			}
		}
	}
	for _, rule := range []string{`"if":{},"then":{"required":["tenant"]}`, `"if":true`, `"contains":true,"minContains":2,"maxContains":3`} {
		if said := refusal[map[string]any](t, properties(`"a":{`+rule+`}`)); said != "" {
			t.Errorf("%s: %s", rule, said)
		}
	}
}

func TestAnUnsupportedDraftIsNamedAtRegistration(t *testing.T) {
	for _, draft := range []string{"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2020-12/schema#", "https://json-schema.org/draft/2019-09/schema", "draft-07"} {
		if said := refusal[map[string]any](t, json.RawMessage(`{"$schema":"`+draft+`","type":"object"}`)); !strings.Contains(said, `$schema "`+draft+`" is not supported`) || strings.Contains(said, "a default") {
			t.Errorf("%s: %q", draft, said)
		}
	}
	for _, draft := range []string{"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema", ""} {
		if said := refusal[map[string]any](t, json.RawMessage(`{"$schema":"`+draft+`","type":"object"}`)); said != "" {
			t.Errorf("%s: %s", draft, said)
		}
	}
}

func TestASchemaThatRefersToItselfWithoutAStepIsRefusedAtRegistration(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","$ref":"#"}`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#/properties/a"}}}`,
		`{"type":"object","properties":{"a b~/":{"$ref":"#/properties/a%20b~0~1"}}}`,
		`{"type":"object","properties":{"a":{"$anchor":"x","$ref":"#x"}}}`,
		`{"$id":"https://example.com/a","type":"object","properties":{"a":{"$ref":"https://example.com/a#/properties/a"}}}`,
		`{"type":"object","allOf":[true,{"$ref":"#"}]}`, `{"type":"object","anyOf":[{"$ref":"#"}]}`, `{"type":"object","oneOf":[{"$ref":"#"}]}`,
		`{"type":"object","not":{"$ref":"#"}}`, `{"type":"object","if":{"$ref":"#"}}`, `{"type":"object","if":true,"then":{"$ref":"#"}}`,
		`{"type":"object","if":false,"else":{"$ref":"#"}}`, `{"type":"object","dependentSchemas":{"a":{"$ref":"#"}}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","dependencies":{"a":{"$ref":"#"}}}`,
		`{"type":"object","$defs":{"x":{"anyOf":[{"$ref":"#/$defs/y"}]},"y":{"not":{"$ref":"#/$defs/x"}}},"properties":{"a":{"items":{"$ref":"#/$defs/x"}}}}`,
		`{"type":"object","$dynamicAnchor":"x","$dynamicRef":"#x"}`, `{"type":"object","$dynamicRef":"#"}`,
		`{"$id":"https://example.com/a","type":"object","properties":{"a":{"$id":"b","$ref":"b"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a","default":1}}}`,
		`{"type":"object","properties":{"a":{"$anchor":"x","$ref":"#x"},"b":{"$anchor":"x"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/properties/a"},"b":{"$anchor":"/properties/a"}}}`,
	} {
		if said := refusal[map[string]any](t, json.RawMessage(schema)); said == "" {
			t.Errorf("%s: registered", schema)
		}
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"array","items":{"$ref":"#"}}},"additionalProperties":{"anyOf":[{"$ref":"#"},{"type":"integer"}]}}`,
		`{"type":"object","$defs":{"x":{"$anchor":"tree","properties":{"kids":{"items":{"$ref":"#tree"}}}}},"allOf":[{"$ref":"#/$defs/x"}],"properties":{"a":{"$ref":"#/$defs/x"}}}`,
		`{"$id":"https://example.com/a","type":"object","propertyNames":{"$ref":"https://example.com/a#/$defs/n"},"$defs":{"n":{"minLength":1}}}`,
		`{"type":"object","$defs":{"leaf":{"type":"integer"}},"anyOf":[{"properties":{"a":{"$ref":"#/$defs/leaf"}}},{"properties":{"a":{"$ref":"#/$defs/leaf"}}}]}`,
	} {
		if said := refusal[map[string]any](t, json.RawMessage(schema)); said != "" {
			t.Errorf("%s: %s", schema, said)
		}
	}
}

type ZFilter struct {
	Tenant string `json:"tenant"`
}

type ZUpper struct{ Tenant string }

type ZLower struct{ Tenant string }

type zHidden struct {
	Seen string `json:"seen"`
}

func TestAnInferredPropertyThatNoFieldGetsIsRefusedAtRegistration(t *testing.T) {
	type deep[T any] struct {
		List []map[string]*T `json:"list"`
	}
	type named struct {
		ZFilter `json:"filter"`
	}
	type skipped struct {
		ZFilter `json:"-"`
		Other   string `json:"other"`
	}
	type odd struct {
		Tenant string `json:"te\"nant"` //lint:ignore SA5008 encoding/json does not take this name
	}
	type both struct {
		ZUpper
		ZLower
	}
	type pointer struct{ *zHidden }
	type text struct {
		Address netip.Addr `json:"address"`
	}
	for name, said := range map[string]string{
		"embedded under a name": refusal[named](t, nil), "embedded and skipped": refusal[skipped](t, nil), "an odd name": refusal[odd](t, nil),
		"deep": refusal[deep[named]](t, nil), "two of one name": refusal[both](t, properties(`"Tenant":{}`)),
		"an embedded pointer that nobody can set": refusal[pointer](t, nil), "a type that reads a text": refusal[text](t, nil),
	} {
		if said == "" {
			t.Errorf("%s: registered", name)
		}
	}
	type fine struct {
		ZFilter
		At   time.Time     `json:"at"`
		Wait time.Duration `json:"wait"`
		Self selfMade      `json:"self"`
		Any  any           `json:"any"`
		Pair [2]int        `json:"pair"`
	}
	if said := refusal[deep[fine]](t, nil); said != "" {
		t.Error(said)
	}
	if said := refusal[both](t, properties(`"other":{}`)); said != "" {
		t.Error(said)
	}
}

// DefaultFilter has its own UnmarshalJSON. A struct that embeds DefaultFilter has this method
// too.
type DefaultFilter struct {
	Status string `json:"status,omitempty"`
}

func (f *DefaultFilter) UnmarshalJSON(text []byte) error {
	type plain DefaultFilter
	f.Status = "open"
	return json.Unmarshal(text, (*plain)(f))
}

type FilterOfAnother struct{ *DefaultFilter }

// level is a number in Go, but its UnmarshalJSON reads a text.
type level int

func (l *level) UnmarshalJSON(text []byte) error {
	var name string
	err := json.Unmarshal(text, &name)
	*l = level(len(name))
	return err
}

type labels []string

func (l *labels) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*[]string)(l)) }

type label string

func (l *label) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*string)(l)) }

func TestAnInferredSchemaThatAReaderMayContradictIsRefusedAtRegistration(t *testing.T) {
	type promoted struct {
		DefaultFilter
		Limit int `json:"limit,omitempty"`
	}
	type deeper struct {
		FilterOfAnother
		Limit int `json:"limit,omitempty"`
	}
	type embedded struct {
		json.Unmarshaler
		Limit int `json:"limit,omitempty"`
	}
	type number struct {
		Level level `json:"level"`
	}
	type numbers struct {
		List []map[string]*level `json:"list"`
		In   []promoted          `json:"in"`
	}
	for name, said := range map[string]string{
		"promoted": refusal[promoted](t, nil), "promoted, to a pointer": refusal[*promoted](t, nil), "promoted, deeper": refusal[deeper](t, nil), "an interface": refusal[embedded](t, nil),
		"a number": refusal[number](t, nil), "deep": refusal[numbers](t, nil),
	} {
		if !strings.Contains(said, "set InputSchema") {
			t.Errorf("%s: %q", name, said)
		}
	}
	for _, said := range []string{refusal[promoted](t, object), refusal[number](t, properties(`"level":{"type":"string"}`))} {
		if said != "" {
			t.Error(said)
		}
	}
	k := newTaker[struct {
		Filter DefaultFilter    `json:"filter"`
		Labels labels           `json:"labels"`
		Label  label            `json:"label"`
		Level  slog.Level       `json:"level"`
		At     *time.Time       `json:"at"`
		Raw    json.RawMessage  `json:"raw"`
		RawTo  *json.RawMessage `json:"rawTo"`
		Big    big.Int          `json:"big"`
		BigTo  *big.Int         `json:"bigTo"`
		Float  *big.Float       `json:"float"`
	}](t, nil, nil)
	k.mustCall(t, `{"filter":{},"labels":["a"],"label":"b","level":"WARN","at":"2026-07-28T00:00:00Z","raw":{"a":[1]},"rawTo":"x","big":7,"bigTo":8,"float":"1.5"}`)
	if got := &k.got; got.Filter.Status != "open" || got.Labels[0] != "a" || got.Label != "b" || got.Level != slog.LevelWarn || got.At.Year() != 2026 ||
		string(got.Raw) != `{"a":[1]}` || string(*got.RawTo) != `"x"` || got.Big.Int64() != 7 || got.BigTo.Int64() != 8 || got.Float.String() != "1.5" {
		t.Errorf("got %+v", got)
	}
}

func TestANameThatOnlyMissesAFieldByCaseIsRefusedAtRegistration(t *testing.T) {
	type untagged struct{ Tenant string }
	type tagged struct {
		Filter struct {
			Tenant string `json:"tenant"`
		} `json:"filter"`
		List []untagged `json:"list"`
	}
	for _, said := range []string{
		refusal[untagged](t, properties(`"tenant":{}`)),
		refusal[untagged](t, json.RawMessage(`{"type":"object","required":["tenant"]}`)),
		refusal[untagged](t, json.RawMessage(`{"type":"object","anyOf":[{"required":["tenant"]},true]}`)),
		refusal[tagged](t, properties(`"filter":{"required":["Tenant"]}`)),
		refusal[tagged](t, properties(`"filter":{"$ref":"#/$defs/f"}},"$defs":{"f":{"properties":{"TENANT":{}}}`)),
		refusal[tagged](t, properties(`"list":{"items":{"properties":{"tenant":{}}}}`)),
	} {
		if !strings.Contains(said, "only in upper and lower case") {
			t.Errorf("%q", said)
		}
	}
	for _, said := range []string{
		refusal[untagged](t, properties(`"Tenant":{},"other":{}`)),
		refusal[untagged](t, json.RawMessage(`{"type":"object","not":{"required":["tenant"]}}`)),
		refusal[map[string]untagged](t, properties(`"tenant":{},"TENANT":{}`)),
	} {
		if said != "" {
			t.Error(said)
		}
	}
}

func TestADefaultThatCannotLandIsRefusedAtRegistration(t *testing.T) {
	type in struct {
		F *tenant         `json:"f"`
		N int             `json:"n"`
		S string          `json:"s"`
		D time.Time       `json:"d"`
		M map[string]in8  `json:"m"`
		R json.RawMessage `json:"r"`
	}
	for _, bad := range []string{
		`"f":{"default":{"Tenant":"x"}}`, `"n":{"default":"ten"}`, `"n":{"default":1.5}`, `"f":{"properties":{"size":{"default":"ten"}}}`,
		`"s":{"properties":{"x":{"default":1}}}`, `"d":{"default":"soon"}`, `"m":{"default":{"x":{"n":1000}}}`, `"m":{"properties":{"x":{"properties":{"n":{"default":1000}}}}}`,
	} {
		for _, required := range []string{"", `,"required":["f","n","s","d","m"]`} {
			if said := refusal[in](t, json.RawMessage(`{"type":"object","properties":{`+bad+`}`+required+`}`)); !strings.Contains(said, "default") {
				t.Errorf("%s%s: %q", bad, required, said)
			}
		}
	}
	good := `"f":{"default":{"tenant":"x","unknown":1},"properties":{"size":{"default":3}}},"n":{"default":10.0},"d":{"default":"2026-07-28T00:00:00Z"},
		"m":{"default":{"x":{"n":100}}},"r":{"properties":{"x":{"default":{"y":1}}}},"other":{"default":"free"}`
	k := newTaker[in](t, properties(good), nil)
	k.mustCall(t, `{}`)
	if k.got.F.Tenant != "x" || k.got.F.Size != 3 || k.got.N != 10 || k.got.M["x"].N != 100 || string(k.got.R) != `{"x":{"y":1}}` {
		t.Errorf("got %+v", k.got)
	}
}

type in8 struct {
	N int8 `json:"n"`
}

func TestAFieldWithTheOptionStringIsRefusedAtRegistration(t *testing.T) {
	type quoted struct {
		N float64 `json:"n,string"`
	}
	type deep struct {
		M map[string][]*quoted `json:"m"`
	}
	type own struct {
		quoted
		Next *own `json:"next"`
	}
	for _, schema := range []any{object, nil} {
		for name, said := range map[string]string{"plain": refusal[quoted](t, schema), "deep": refusal[deep](t, schema)} {
			if !strings.Contains(said, "option string") {
				t.Errorf("%s: %q", name, said)
			}
		}
	}
	if said := refusal[own](t, object); !strings.Contains(said, "option string") {
		t.Errorf("%q", said)
	}
	// encoding/json ignores the option ",string" on fields of these types.
	type ignored struct {
		T time.Time `json:"t,string"` //lint:ignore SA5008 encoding/json ignores it
		L []string  `json:"l,string"` //lint:ignore SA5008 encoding/json ignores it
	}
	if said := refusal[ignored](t, object); said != "" {
		t.Error(said)
	}
}

func TestAnArrayHasItsLengthOrIsRefused(t *testing.T) {
	k := newTaker[struct {
		Pair  [2]int      `json:"pair"`
		Pairs [][2]string `json:"pairs"`
	}](t, object, nil)
	for _, arguments := range []string{`{"pair":[1,2,3]}`, `{"pair":[1]}`, `{"pair":[]}`, `{"pairs":[["a","b"],["a","b","c"]]}`} {
		if _, err := k.call(t, arguments); err == nil {
			t.Errorf("%s became %+v", arguments, k.got)
		}
	}
	k.mustCall(t, `{"pair":[1,2],"pairs":[["a","b"]]}`)
	if k.got.Pair != [2]int{1, 2} || k.got.Pairs[0] != [2]string{"a", "b"} {
		t.Errorf("got %+v", k.got)
	}
}

func TestBytesHaveOneSpelling(t *testing.T) {
	k := newTaker[struct {
		Key []byte `json:"key"`
	}](t, properties(`"key":{"type":"string","not":{"const":"QQ=="}}`), nil)
	for _, spelling := range []string{`QR==`, `Qf==`, `QQ=`, `QQ`, `Q\nQ==`, `QQ==\r\n`, `QQ=\n=`, `\nQQ==`, `QQ==`, `QUJD\n`} {
		if _, err := k.call(t, `{"key":"`+spelling+`"}`); err == nil {
			t.Errorf("%s became %q", spelling, k.got.Key)
		}
	}
	k.mustCall(t, `{"key":"QUI="}`)
	if string(k.got.Key) != "AB" {
		t.Errorf("got %q", k.got.Key)
	}
}

// hex is an array in Go, but is written as a text.
type hex [2]byte

func (h hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%x", h[:]), nil }

type ownJSON struct{ X int }

func (*ownJSON) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

func outputOf[Item any](t *testing.T, items ...Item) (schema *jsonschema.Schema, result any) {
	t.Helper()
	server := newServer()
	gosdk.AddPagedTool(gosdk.Protect(server, boundary(t, &book{}, nil), nil), &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, struct{}, *key) ([]Item, *key, error) {
		return items, nil, nil
	}, nil)
	session := connect(t, server, nil, revision2026)
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	output, _ := json.Marshal(listed.Tools[0].OutputSchema)
	if err := json.Unmarshal(output, &schema); err != nil {
		t.Fatal(err)
	}
	called, err := callTool(t, session, &mcp.CallToolParams{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return schema, called.StructuredContent
}

func TestResultsFitTheOutputSchemaThatIsListed(t *testing.T) {
	check := func(name string, described bool, schema *jsonschema.Schema, result any) {
		t.Helper()
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(result); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := schema.Properties["items"].Items != nil; got != described {
			t.Errorf("%s: described: %v", name, got)
		}
	}
	run := func(name string, described bool, output func() (*jsonschema.Schema, any)) {
		schema, result := output()
		check(name, described, schema, result)
	}
	type tagged struct {
		ZFilter `json:"filter"`
	}
	type plain struct {
		ID   int            `json:"id"`
		At   time.Time      `json:"at"`
		Tags map[string]int `json:"tags"`
		List []*row         `json:"list"`
		Any  any            `json:"any"`
	}
	run("plain", true, func() (*jsonschema.Schema, any) {
		return outputOf(t, plain{ID: 1}, plain{Tags: map[string]int{"a": 1}})
	})
	run("a text", false, func() (*jsonschema.Schema, any) { return outputOf(t, hex{1, 2}) })
	run("a text, deep", false, func() (*jsonschema.Schema, any) { return outputOf(t, map[string][]*struct{ ID hex }{"a": {{hex{1}}}}) })
	run("own JSON", false, func() (*jsonschema.Schema, any) { return outputOf(t, &ownJSON{1}) })
	run("own JSON, deep", false, func() (*jsonschema.Schema, any) { return outputOf(t, struct{ A *ownJSON }{&ownJSON{1}}) })
	run("raw", false, func() (*jsonschema.Schema, any) { return outputOf(t, json.RawMessage(`{"a":1}`)) })
	run("bytes", false, func() (*jsonschema.Schema, any) { return outputOf(t, struct{ B []byte }{[]byte("x")}) })
	run("a number", false, func() (*jsonschema.Schema, any) { return outputOf(t, struct{ N json.Number }{"1"}) })
	run("a big number", false, func() (*jsonschema.Schema, any) { return outputOf(t, struct{ N *big.Int }{big.NewInt(1)}) })
	run("quoted", false, func() (*jsonschema.Schema, any) {
		return outputOf(t, struct {
			N int `json:"n,string"`
		}{1})
	})
	run("embedded under a name", false, func() (*jsonschema.Schema, any) { return outputOf(t, tagged{ZFilter{"x"}}) })
}

func TestArgumentsOfAPagedToolAreLimitedByDefault(t *testing.T) {
	limit := func(policy int, options *gosdk.PageOptions, length int) error {
		server := newServer()
		protected := gosdk.Protect(server, boundary(t, &book{}, func(c *tripseal.Config) { c.MaxArguments = policy }), nil)
		k := new(taker[map[string]any])
		gosdk.AddPagedTool(protected, &mcp.Tool{Name: "t", InputSchema: object}, func(context.Context, *mcp.CallToolRequest, map[string]any, *key) ([]row, *key, error) {
			k.calls++
			return nil, nil, nil
		}, options)
		k.session = connect(t, server, nil, revision2026)
		_, err := k.call(t, `{"a":"`+strings.Repeat("x", length-len(`{"a":""}`))+`"}`)
		return err
	}
	const most = 64 << 10
	for _, c := range []struct {
		policy, option, length int
		refused                bool
	}{
		{0, 0, most, false}, {0, 0, most + 1, true}, {0, 100, 100, false}, {0, 100, 101, true}, {0, 1 << 20, 1 << 20, false}, {0, 1 << 20, 1<<20 + 1, true},
		{1000, 0, 1000, false}, {1000, 0, 1001, true},
	} {
		if err := limit(c.policy, &gosdk.PageOptions{MaxArguments: c.option}, c.length); (wire(err) == invalidParams) != c.refused || (err == nil) == c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, option := range []int{-1, 4<<20 + 1} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, "PageOptions.MaxArguments") {
					t.Errorf("%d: %s", option, said)
				}
			}()
			limit(0, &gosdk.PageOptions{MaxArguments: option}, 10)
		}()
	}
}

func TestInvalidParamsOfAPagedToolAreLogged(t *testing.T) {
	b := &book{}
	server := newServer()
	protected := gosdk.Protect(server, boundary(t, b, nil), &gosdk.Options{Logger: slog.New(slog.NewTextHandler(b, nil)), AllowAnonymous: true})
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_rows"}, listRows, nil)
	for arguments, cause := range map[string]string{
		`{"prefix":"hush","Prefix":"x"}`:                      "only in upper and lower case",
		`{"prefix":"hush","prefix":"x"}`:                      "one meaning",
		`{"prefix":"hush","cursor":7}`:                        "the cursor is not a text",
		`["hush"]`:                                            "not an object",
		`{"prefix":"` + strings.Repeat("hush", 20<<10) + `"}`: "PageOptions.MaxArguments",
	} {
		before := b.String()
		_, err := callTool(t, connect(t, server, nil, revision2026), &mcp.CallToolParams{Name: "list_rows", Arguments: json.RawMessage(arguments)})
		log := strings.TrimPrefix(b.String(), before)
		if wire(err) != invalidParams || strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, "tool=list_rows") || !strings.Contains(log, cause) || strings.Contains(log, "hush") {
			t.Errorf("%.40s: %v; the log: %s", arguments, err, log)
		}
	}
}

// The cursor does not count towards the limit of the arguments, so a client that got the first
// page can get the next one.
func TestTheCursorDoesNotCountAsAnArgument(t *testing.T) {
	for most, length := range map[int]int{200: 180, 0: 65_500} {
		session := connect(t, pagedServer(t, &book{}, nil, &gosdk.PageOptions{MaxArguments: most}), nil, revision2026)
		arguments := map[string]any{"prefix": strings.Repeat("x", length)}
		first, err := listPage(t, session, arguments)
		if err != nil {
			t.Fatal(err)
		}
		arguments["cursor"] = first.Next
		if second, err := listPage(t, session, arguments); err != nil || second.Items[0].ID != 10 {
			t.Errorf("with %d bytes of at most %d: %v", length, most, err)
		}
	}
}
