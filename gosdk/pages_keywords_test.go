package gosdk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// An unknown keyword is refused, because it may be a misspelt rule, which would not be applied.
func TestAKeywordThatNobodyKnowsIsRefusedAtRegistration(t *testing.T) {
	const older = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for _, rule := range []string{
		`"minLenght":5`, `"nullable":false`, `"divisibleBy":3`, `"disallow":"string"`, `"extends":{"type":"integer"}`, `"allof":[false]`, `"one_of":[false]`,
		`"$def":{}`, `"$recursiveAnchor":true`, `"x":1`, `"":1`, `"xminimum":1`, `"minLenght":null`, `"items":{"minLenght":5}`, `"not":{"anyOf":[{"minLenght":5}]}`,
		`"$defs":{"s":{"minLenght":5}}`, `"contentSchema":{"minLenght":5}`, `"patternProperties":{"^a":{"minLenght":5}}`,
	} {
		for _, schema := range []string{
			`{"type":"object","properties":{"a":{` + rule + `}}}`, `{` + older + `"type":"object","properties":{"a":{` + rule + `}}}`, `{"type":"object",` + rule + `}`,
		} {
			if said := refusal[map[string]any](t, json.RawMessage(schema)); !strings.Contains(said, "the keyword") {
				t.Errorf("%s: %q", schema, said)
			}
		}
	}
	inGo := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"a": {Extra: map[string]any{"minLenght": 5}}}}
	if said := refusal[map[string]any](t, inGo); !strings.Contains(said, `"minLenght"`) || !strings.Contains(said, "x-") {
		t.Errorf("%q", said)
	}
}

// Keywords that only describe a value, such as format, are allowed, but are not checked: the
// handler must check such values.
func TestWhatOnlyDescribesRegisters(t *testing.T) {
	k := newTaker[map[string]any](t, properties(`
		"id":{"type":"string","format":"uuid","x-order":1,"x-minLenght":50},
		"data":{"type":"string","contentEncoding":"base64","contentMediaType":"application/json","contentSchema":{"type":"object"}},
		"old":{"title":"Old","description":"d","$comment":"c","deprecated":true,"readOnly":true,"writeOnly":true,"examples":[1],"default":"x"},
		"nullable":{"type":"string"},"minLenght":{"enum":[{"minLenght":5}],"const":{"minLenght":5}}`), nil)
	k.mustCall(t, `{"id":"no uuid","data":"!","nullable":"a","minLenght":{"minLenght":5}}`)
}
