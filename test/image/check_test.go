package image_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/cmd/tripseal/release"
)

// operate runs the command tripseal in a folder, as an operator does, and returns what it prints.
func operate(t *testing.T, dir string, args ...string) string {
	t.Helper()
	name, err := tripseal()
	must(t, err)
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tripseal %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// newKeys returns the text of a new file of keys.
func newKeys(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	operate(t, dir, "keys", "new", "keys")
	text, err := os.ReadFile(filepath.Join(dir, "keys"))
	must(t, err)
	return text
}

func TestTheCommandAcceptsTheSettingsOfTheManifests(t *testing.T) {
	server := release.NewServer()
	upstream := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer upstream.Close()
	var login *issuer
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { login.ServeHTTP(w, r) }))
	defer web.Close()
	login = newIssuer(t, web.URL)
	dir := t.TempDir()
	cert, key := newAuthority(t).issue(t, "release.example.com")
	for name, text := range map[string]string{"keys": string(newKeys(t)), "tls.crt": cert, "tls.key": key} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	command, err := tripseal()
	must(t, err)
	folders := regexp.MustCompile(`/etc/tripseal/(keys|tls)/`)
	addresses := regexp.MustCompile(`http://(127\.0\.0\.1|release-server):9000/`)
	for _, name := range manifests {
		c, err := parse(readManifest(t, name))
		must(t, err)
		text := c.configMaps[0].Data["proxy.yaml"]
		text = folders.ReplaceAllLiteralString(text, filepath.ToSlash(dir)+"/")
		text = addresses.ReplaceAllLiteralString(text, upstream.URL+"/")
		text = strings.Replace(text, "https://login.example.com", login.name, 1)
		file := filepath.Join(dir, "proxy.yaml")
		for change, want := range map[string]bool{"": true, "audience: again\n": false, "drain-time: 5s\n": false} {
			must(t, os.WriteFile(file, []byte(text+change), 0o600))
			out, err := exec.Command(command, "proxy", "check", file).CombinedOutput()
			if good := err == nil && strings.Contains(string(out), "ok   upstream") && !strings.Contains(string(out), "bad"); good != want {
				t.Errorf("%s with %q: %v\n%s", name, change, err, out)
			}
		}
	}
}

// TestThePageNamesWhatTheManifestsHave also runs the commands in docs/kubernetes.md that work on
// the file of keys.
func TestThePageNamesWhatTheManifestsHave(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubernetes.md"))
	must(t, err)
	text := string(page)
	dir, id, ran := t.TempDir(), "", 0
	for _, line := range regexp.MustCompile(`(?m)^    tripseal (keys .*)$`).FindAllStringSubmatch(text, -1) {
		out := operate(t, dir, strings.Fields(strings.Replace(line[1], " ID ", " "+id+" ", 1))...)
		if match := regexp.MustCompile(`with key ([0-9a-f]{8})`).FindStringSubmatch(out); match != nil && id == "" {
			id = match[1]
		}
		ran++
	}
	if ran != 3 {
		t.Errorf("%d commands ran, not 3", ran)
	}
	for _, name := range manifests {
		c, err := parse(readManifest(t, name))
		must(t, err)
		made := make(map[string]bool)
		for _, m := range c.configMaps {
			made[m.Metadata.Name] = true
		}
		for _, v := range c.deployments[0].Spec.Template.Spec.Volumes {
			source := v.ConfigMap.Name + v.Secret.SecretName
			if !made[source] && !regexp.MustCompile(`kubectl create (secret generic|secret tls|configmap) `+source+` `).MatchString(text) {
				t.Errorf("the page does not tell how to make %s", source)
			}
		}
		for _, part := range []string{name, c.deployments[0].Spec.Template.Spec.Containers[0].Args[2], c.configMaps[0].Metadata.Name} {
			if !strings.Contains(text, part) {
				t.Errorf("the page does not mention %s", part)
			}
		}
	}
	for _, command := range regexp.MustCompile(`deployment/([a-z-]+)`).FindAllStringSubmatch(text, -1) {
		if command[1] != "release" && command[1] != "release-proxy" {
			t.Errorf("there is no deployment %s", command[1])
		}
	}
}
