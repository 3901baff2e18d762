package proxycmd

import (
	"os"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestTheSettingsInThePagesAndManifestsAreRead reads the settings of the proxy as the proxy does:
// each field must exist, and its value must fit.
func TestTheSettingsInThePagesAndManifestsAreRead(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	settings := map[string]string{"tripseal-proxy.yaml": read("deploy/systemd/tripseal-proxy.yaml")}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read("docs/proxy.md"), -1) {
		settings["docs/proxy.md: "+block[1]] = block[1]
	}
	for _, name := range []string{"proxy-sidecar.yaml", "proxy-deployment.yaml"} {
		var document struct{ Data map[string]string }
		if err := yaml.Unmarshal([]byte(read("deploy/kubernetes/"+name)), &document); err != nil {
			t.Fatal(err)
		}
		settings[name] = document.Data["proxy.yaml"]
	}
	if len(settings) < 4 {
		t.Errorf("only %d files of settings were found", len(settings))
	}
	for name, text := range settings {
		for _, wrong := range setFields(New().Flags(), []byte(text)) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}
