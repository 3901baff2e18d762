package release

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"
)

// The schema is what goreleaser itself prints. So a mistake is found without compiling goreleaser, which takes
// minutes; make release compares the schema with the one of the goreleaser that it uses.
func TestGoreleaserTakesOurConfiguration(t *testing.T) {
	var schema jsonschema.Schema
	text, err := os.ReadFile("testdata/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		var config any
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			return err
		}
		return resolved.Validate(config)
	}
	config, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := check(string(config)); err != nil {
		t.Errorf(".goreleaser.yaml: %v", err)
	}
	for _, mistake := range [][2]string{
		{"builds:", "build:"}, {"ldflags:", "ldflag:"}, {"dir: cmd/tripseal", "dir: [cmd/tripseal]"},
	} {
		changed := strings.Replace(string(config), mistake[0], mistake[1], 1)
		if changed == string(config) || check(changed) == nil {
			t.Errorf("%q in place of %q is accepted", mistake[1], mistake[0])
		}
	}
}
