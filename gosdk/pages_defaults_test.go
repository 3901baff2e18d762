package gosdk_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// If a call has an argument that is an object, the defaults of its properties are applied,
// whether or not the object is required.
func TestDefaultsInAnObjectThatIsThereAreApplied(t *testing.T) {
	const size = `{"type":"object","properties":{"size":{"type":"integer","default":7}}}`
	for _, required := range []string{`[]`, `["o"]`, `["o","deep"]`} {
		taken := newTaker[map[string]any](t, json.RawMessage(`{"type":"object","required":`+required+`,"properties":{
			"o":`+size+`,"deep":{"type":"object","required":["o"],"properties":{"o":`+size+`}}}}`), nil)
		next := taken.mustCall(t, `{"o":{},"deep":{"o":{}}}`)
		filled := map[string]any{"size": int64(7)}
		if want := (map[string]any{"o": filled, "deep": map[string]any{"o": filled}}); !reflect.DeepEqual(taken.got, want) {
			t.Errorf("required %s: %v", required, taken.got)
		}
		// The cursor also works if the client writes the default values into its arguments.
		taken.mustCall(t, `{"o":{"size":7},"deep":{"o":{"size":7.0}},"cursor":"`+next+`"}`)
	}
	required := newTaker[map[string]any](t, json.RawMessage(`{"type":"object","required":["o","n"],"properties":{"o":`+size+`,"n":{"default":1}}}`), nil)
	for _, arguments := range []string{`{}`, `{"n":1}`, `{"o":{}}`} {
		if _, err := required.call(t, arguments); err == nil {
			t.Errorf("%s: a default stood in for a required argument: %v", arguments, required.got)
		}
	}
}

func TestADefaultThatWouldNotBeAppliedIsRefusedAtRegistration(t *testing.T) {
	const o, s = `{"type":"object","properties":{"size":{"default":7}}}`, `{"type":"integer","default":7}`
	with := func(property, defs string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"o":` + property + `},"$defs":{` + defs + `}}`)
	}
	for _, bad := range []json.RawMessage{
		json.RawMessage(`{"type":"object","default":{"a":1}}`),
		with(`{"$ref":"#/$defs/o"}`, `"o":`+o), with(`{"$ref":"#/$defs/s"}`, `"s":`+s), with(`{"properties":{"size":{"$ref":"#/$defs/s"}}}`, `"s":`+s),
		with(`{"$ref":"#/$defs/a"}`, `"a":{"$ref":"#/$defs/o"},"o":`+o), with(`{"$ref":"#here"}`, `"o":{"$anchor":"here","default":1}`),
		with(`{"allOf":[`+o+`]}`, ``), with(`{"allOf":[`+s+`]}`, ``), with(`{"allOf":[true,{"$ref":"#/$defs/o"}]}`, `"o":`+o),
		with(`{"anyOf":[`+o+`]}`, ``), with(`{"oneOf":[`+o+`]}`, ``), with(`{"if":true,"then":`+o+`}`, ``), with(`{"if":false,"else":`+o+`}`, ``),
		with(`{"dependentSchemas":{"a":`+o+`}}`, ``), with(`{"items":`+o+`}`, ``), with(`{"prefixItems":[true,`+s+`]}`, ``), with(`{"contains":`+o+`}`, ``),
		with(`{"additionalProperties":`+o+`}`, ``), with(`{"patternProperties":{"x":`+o+`}}`, ``), with(`{"unevaluatedProperties":`+o+`}`, ``), with(`{"unevaluatedItems":`+o+`}`, ``),
		with(`{"items":{"allOf":[{"properties":{"a":{"properties":{"size":{"default":7}}}}}]}}`, ``),
		// The default is applied in one place, but not in the other.
		json.RawMessage(`{"type":"object","properties":{"a":` + s + `,"b":{"$ref":"#/properties/a"}}}`),
		json.RawMessage(`{"type":"object","properties":{"limit":` + s + `,"or":{"type":"array","items":{"$ref":"#"}}}}`),
		json.RawMessage(`{"type":"object","allOf":[` + o + `]}`),
		json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"o":{"$ref":"#/definitions/o"}},"definitions":{"o":` + o + `}}`),
		json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"o":{"items":[` + o + `]}}}`),
		json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","dependencies":{"a":` + o + `}}`),
	} {
		if said := refusal[map[string]any](t, bad); !strings.Contains(said, "the default at #") || !strings.Contains(said, "leave the default out") {
			t.Errorf("%s: %q", bad, said)
		}
	}
	for _, good := range []json.RawMessage{
		with(`{}`, `"unused":`+o), with(o, ``), with(`{"properties":{"a":`+o+`}}`, ``),
		with(`{"$ref":"#/$defs/n","default":7}`, `"n":{"type":"integer"}`), with(`{"contentMediaType":"application/json","contentSchema":`+o+`}`, ``),
		// No default is needed where the value is never missing.
		with(`{"items":`+s+`}`, ``), with(`{"additionalProperties":`+s+`}`, ``), with(`{"$ref":"#/$defs/s","default":5}`, `"s":`+s), with(`{"allOf":[`+s+`],"default":5}`, ``),
		with(`{"items":{"required":["size"],"properties":{"size":`+s+`}}}`, ``), with(`{"allOf":[{"required":["size"],"properties":{"size":{"$ref":"#/$defs/s"}}}]}`, `"s":`+s),
	} {
		if said := refusal[map[string]any](t, good); said != "" {
			t.Errorf("%s: %s", good, said)
		}
	}
}
