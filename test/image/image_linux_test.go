// Package image_test tests the container image of the proxy. It needs root; test/image/run builds
// the image and runs these tests.
package image_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.yaml.in/yaml/v3"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
)

// user is the number of the image's user and of its group.
const user = 65532

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// image is the only image of an OCI archive.
type image struct {
	Architecture, OS string
	Config           struct {
		User, WorkingDir      string
		Entrypoint, Cmd       []string
		ExposedPorts, Volumes map[string]any
		Labels                map[string]string
	}
	layers  int
	entries []*tar.Header
	files   map[string][]byte
}

func theImage(t *testing.T) *image {
	t.Helper()
	name := os.Getenv("TRIPSEAL_IMAGE")
	if name == "" {
		t.Skip("there is no image; test/image/run builds it and runs this test")
	}
	archive, err := os.Open(name)
	must(t, err)
	defer archive.Close()
	_, blobs := untar(t, archive)
	type descriptor struct{ Digest string }
	blob := func(d descriptor) []byte { return blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)] }
	var index struct{ Manifests []descriptor }
	must(t, json.Unmarshal(blobs["index.json"], &index))
	if len(index.Manifests) != 1 {
		t.Fatalf("the archive has %d images", len(index.Manifests))
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	must(t, json.Unmarshal(blob(index.Manifests[0]), &manifest))
	i := &image{layers: len(manifest.Layers)}
	must(t, json.Unmarshal(blob(manifest.Config), i))
	layer, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0])))
	must(t, err)
	i.entries, i.files = untar(t, layer)
	return i
}

func untar(t *testing.T, from io.Reader) (entries []*tar.Header, files map[string][]byte) {
	t.Helper()
	files = make(map[string][]byte)
	for reader := tar.NewReader(from); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries, files
		}
		must(t, err)
		entries = append(entries, header)
		if header.Typeflag == tar.TypeReg {
			files[header.Name], err = io.ReadAll(reader)
			must(t, err)
		}
	}
}

func TestTheImageHasOnlyTheStaticBinary(t *testing.T) {
	i := theImage(t)
	if i.layers != 1 || len(i.entries) != 1 {
		t.Fatalf("%d layers with %d entries", i.layers, len(i.entries))
	}
	e := i.entries[0]
	if e.Name != "tripseal" || e.Typeflag != tar.TypeReg || e.Mode&0o7777 != 0o755 || e.Uid != 0 || e.Gid != 0 {
		t.Errorf("the file is %+v", e)
	}
	binary, err := elf.NewFile(bytes.NewReader(i.files["tripseal"]))
	must(t, err)
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary is not static: %v", p.Type)
		}
	}
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[i.Architecture]
	if i.OS != "linux" || binary.Machine != machine {
		t.Errorf("the image is for %s/%s, its binary for %v", i.OS, i.Architecture, binary.Machine)
	}
}

func TestTheImageRunsTheBinaryAsAUserWithoutRights(t *testing.T) {
	c := theImage(t).Config
	if want := fmt.Sprintf("%d:%d", user, user); c.User != want {
		t.Errorf("the user is %q, not %s", c.User, want)
	}
	if !slices.Equal(c.Entrypoint, []string{"/tripseal"}) || !slices.Equal(c.Cmd, []string{"--help"}) {
		t.Errorf("it runs %q %q", c.Entrypoint, c.Cmd)
	}
	if len(c.ExposedPorts) != 0 || len(c.Volumes) != 0 || c.WorkingDir != "" && c.WorkingDir != "/" {
		t.Errorf("unexpected: %+v", c)
	}
	for _, name := range []string{"title", "source", "licenses", "version", "revision"} {
		if c.Labels["org.opencontainers.image."+name] == "" {
			t.Errorf("the label %s is missing", name)
		}
	}
}

// root is the root folder of a container. Its user owns nothing there, and can write nothing.
type root string

func (r root) write(t *testing.T, name string, text []byte, mode os.FileMode) {
	t.Helper()
	name = filepath.Join(string(r), name)
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, text, mode))
	must(t, os.Chown(name, 0, user))
	must(t, os.Chmod(name, mode))
}

// command returns a command that runs the entrypoint as a container would.
func (r root) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/tripseal", args...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     string(r),
		Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{user}},
	}
	return cmd
}

// sidecar returns the settings and the arguments of the proxy in deploy/kubernetes/proxy-sidecar.yaml.
func sidecar(t *testing.T) (settings string, args []string) {
	t.Helper()
	file, err := os.Open("../../deploy/kubernetes/proxy-sidecar.yaml")
	must(t, err)
	defer file.Close()
	for decoder := yaml.NewDecoder(file); ; {
		var document struct {
			Data map[string]string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Args []string }
					}
				}
			}
		}
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return settings, args
		} else if err != nil {
			t.Fatal(err)
		}
		settings += document.Data["proxy.yaml"]
		if containers := document.Spec.Template.Spec.Containers; len(containers) > 0 {
			args = containers[0].Args
		}
	}
}

type asAlice struct{}

func (asAlice) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-User", "alice")
	return http.DefaultTransport.RoundTrip(r)
}

// TestTheImageServesAFlowWithTheSettingsOfTheSidecar runs the image in a root folder with nothing
// but its file, the settings of the manifest and the keys.
func TestTheImageServesAFlowWithTheSettingsOfTheSidecar(t *testing.T) {
	i := theImage(t)
	if os.Getuid() != 0 {
		t.Fatal("the test needs root, to change the root folder")
	}
	server := release.NewServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true}) // without protection
	upstream := httptest.NewServer(handler)
	defer upstream.Close()

	r := root(t.TempDir())
	must(t, os.Chmod(string(r), 0o755))
	for parent := filepath.Dir(string(r)); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		must(t, os.Chmod(parent, 0o755)) // the user of the image must reach its root folder
	}
	r.write(t, "tripseal", i.files["tripseal"], 0o755)
	secret, err := r.command("keys", "new", "--print").Output()
	must(t, err)
	key, err := tripseal.ParseKey(strings.TrimSpace(string(secret)))
	must(t, err)
	const dates = "made=2026-01-01T00:00:00Z seals-from=2026-01-01T00:00:00Z opens-until=never"
	keys := fmt.Sprintf("tripseal-keys 1\nkey %s %s secret=%s\nend\n", key.ID(), dates, key.Reveal())
	r.write(t, "etc/tripseal/keys/keys", []byte(keys), 0o440)
	settings, args := sidecar(t)
	r.write(t, "etc/tripseal/config/proxy.yaml", []byte(settings), 0o444)
	if out, err := r.command("keys", "rotate", "/etc/tripseal/keys/keys").CombinedOutput(); err == nil {
		t.Errorf("the image wrote to its own folder: %s", out)
	}

	// The test takes the place of the gateway, and its requests come from loopback.
	proxy := r.command(append(args, "--upstream", upstream.URL+"/mcp", "--listen", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--trust", "127.0.0.1/32", "--drain-delay", "0s")...)
	var log bytes.Buffer // may be read after the proxy has ended
	proxy.Stderr = &log
	out, err := proxy.StdoutPipe()
	must(t, err)
	must(t, proxy.Start())
	defer func() {
		proxy.Process.Signal(syscall.SIGTERM)
		io.Copy(io.Discard, out)
		if err := proxy.Wait(); err != nil || t.Failed() {
			t.Errorf("the proxy ended with %v\n%s", err, &log)
		}
	}()
	var served [2]string // the addresses for operators and for clients
	lines := bufio.NewReader(out)
	for i := range served {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Error(err)
			return
		}
		address, _ := strings.CutPrefix(line, "serving ")
		served[i], _, _ = strings.Cut(strings.TrimSpace(address), " ")
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		res, err := http.Get(served[0] + path)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, res.Status)
		}
	}

	client := mcp.NewClient(&mcp.Implementation{Name: "image", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: served[1], HTTPClient: &http.Client{Transport: asAlice{}}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	must(t, err)
	defer session.Close()
	call := &mcp.CallToolParams{Name: "deploy", Arguments: map[string]any{"service": "web", "version": "1"}}
	for round, answer := range []map[string]any{{"ok": true}, {"name": "eu"}} {
		result, err := session.CallTool(t.Context(), call)
		must(t, err)
		if !strings.HasPrefix(result.RequestState, "ms1.") || len(result.InputRequests) != 1 {
			t.Fatalf("round %d: %+v", round, result)
		}
		call.RequestState, call.InputResponses = result.RequestState, mcp.InputResponseMap{}
		for question := range result.InputRequests {
			call.InputResponses[question] = &mcp.ElicitResult{Action: "accept", Content: answer}
		}
	}
	result, err := session.CallTool(t.Context(), call)
	must(t, err)
	text, err := json.Marshal(result.Content)
	if must(t, err); !strings.Contains(string(text), "deployed web 1 in eu") {
		t.Errorf("the tool did not act: %s", text)
	}
	call.RequestState = call.RequestState[:len(call.RequestState)-1]
	if _, err := session.CallTool(t.Context(), call); err == nil {
		t.Error("a token that was cut is accepted")
	}
}
