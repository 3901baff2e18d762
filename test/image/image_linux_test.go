package image_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
)

func theImage(t *testing.T) *image {
	t.Helper()
	archive := os.Getenv(imageVariable)
	if archive == "" {
		t.Skip("there is no image; test/image/run builds it and runs this test")
	}
	i, err := readImage(archive)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestTheImageHasOnlyTheStaticBinary(t *testing.T) {
	i := theImage(t)
	if i.layers != 1 || len(i.entries) != 1 {
		t.Fatalf("%d layers with %d entries", i.layers, len(i.entries))
	}
	if e := i.entries[0]; e.Name != "tripseal" || e.Typeflag != tar.TypeReg || e.Mode&0o7777 != 0o755 || e.Uid != 0 || e.Gid != 0 {
		t.Errorf("the file is %+v", e)
	}
	binary, err := elf.NewFile(bytes.NewReader(i.files["tripseal"]))
	if err != nil {
		t.Fatal(err)
	}
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
	if len(c.Labels) != 5 {
		t.Errorf("labels: %v", c.Labels)
	}
}

// root is the root folder of a container. The user of the container owns nothing in the folder, so
// nothing can be written there.
type root string

// unpack returns a root folder with the files of the image and nothing else.
func (i *image) unpack(t *testing.T) root {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("the test needs root, to change the root folder")
	}
	dir := t.TempDir()
	for name, text := range i.files {
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o755))
	}
	return root(dir)
}

// write puts a file into the root folder. The user of the image can read it.
func (r root) write(t *testing.T, name string, text []byte) {
	t.Helper()
	name = filepath.Join(string(r), name)
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, text, 0o440))
	must(t, os.Chown(name, 0, user))
}

// command returns a command that runs the entrypoint, as a container would.
func (r root) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/tripseal", args...)
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     string(r),
		Credential: &syscall.Credential{Uid: user, Gid: user, Groups: []uint32{user}},
	}
	return cmd
}

func (r root) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("tripseal %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// process is a running proxy.
type process struct {
	cmd  *exec.Cmd
	log  lockedBuffer
	stop func() error // ends the proxy as Kubernetes does
}

// lockedBuffer is a buffer that one goroutine may write to while another reads it.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts a proxy, and stops it when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p.stop = sync.OnceValue(func() error {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			return fmt.Errorf("it did not end: %w", <-ended)
		}
	})
	t.Cleanup(func() { p.stop() })
	return p
}

// This method waits until a GET request to the address gets the status 200.
func (p *process) answers(t *testing.T, address string) {
	t.Helper()
	eventually(t, address+" answers", func() bool {
		res, err := http.Get(address)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	}, &p.log)
}

func eventually(t *testing.T, what string, holds func() bool, log fmt.Stringer) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("this did not happen within a minute: %s\n%s", what, log)
		}
	}
}

// leaky serves the tools of cmd/tripseal/release, and does not protect the state. Its address is the
// one that the manifests have for the server behind the proxy.
func leaky(t *testing.T) {
	t.Helper()
	server := release.NewServer()
	// In this test, the name release-server leads to loopback. By default, the SDK refuses a
	// request that comes through loopback with this name. In a cluster, the name leads to a
	// Service.
	options := &gosdk.HandlerOptions{HTTP: mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}}
	serve(t, "127.0.0.1:9000", gosdk.Handler(func(*http.Request) *mcp.Server { return server }, options), "", "")
}

// serve serves HTTP, with TLS if there is a certificate. The tests run in a network of their own,
// so every port is free.
func serve(t *testing.T, address string, handler http.Handler, cert, key string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	must(t, err)
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	t.Cleanup(func() { web.Close() })
	if cert == "" {
		go web.Serve(listener)
	} else {
		go web.ServeTLS(listener, cert, key)
	}
}

func init() { prepare = raiseLoopback }

// raiseLoopback brings up the loopback interface, which is down in a new network.
func raiseLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(socket)
	request := struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(request.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}

func TestTheImageRunsTheTwoRoundFlowFromAnEmptyFolder(t *testing.T) {
	r := theImage(t).unpack(t)
	leaky(t)
	p := start(t, r.command("proxy", "--upstream", "http://127.0.0.1:9000/mcp", "--listen", "127.0.0.1:8080", "--admin", "127.0.0.1:9090",
		"--ephemeral", "--audience", "try", "--identity", "anonymous"))
	p.answers(t, "http://127.0.0.1:9090/readyz")
	c := &client{address: "http://127.0.0.1:8080/mcp"}
	if _, err := c.flow(); err != nil {
		t.Fatalf("%v\n%s", err, &p.log)
	}
	if err := p.stop(); err != nil {
		t.Fatalf("%v\n%s", err, &p.log)
	}
}

func TestTheImageChecksSettingsAndKeysWithoutWriting(t *testing.T) {
	r := theImage(t).unpack(t)
	leaky(t)
	if out := r.run(t, "--help"); !strings.Contains(out, "proxy ") {
		t.Error(out)
	}
	if out := r.run(t, "keys", "new", "--print"); !strings.HasPrefix(out, "tripseal_key1_") {
		t.Error("keys new --print prints no key")
	}
	r.write(t, "keys", newKeys(t))
	for _, args := range [][]string{{"keys", "list", "/keys"}, {"keys", "check", "/keys"}} {
		if out := r.run(t, args...); !strings.Contains(out, "sealing") {
			t.Errorf("%q: %s", args, out)
		}
	}
	if out, err := r.command("keys", "rotate", "/keys").CombinedOutput(); err == nil {
		t.Errorf("the file was written: %s", out)
	}
	r.write(t, "proxy.yaml", []byte("upstream: http://127.0.0.1:9000/mcp\nlisten: :8080\nkeys: /keys\naudience: a\nidentity: anonymous\n"))
	if out := r.run(t, "proxy", "check", "/proxy.yaml"); strings.Count(out, "ok ") != 5 {
		t.Error(out)
	}
	entries, err := os.ReadDir(string(r))
	must(t, err)
	if len(entries) != 3 {
		t.Errorf("files were left: %v", entries)
	}
}
