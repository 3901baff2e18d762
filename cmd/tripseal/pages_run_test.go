//go:build unix

package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal/gosdk"
)

// lineTest says how to test one command line of a page. If commandsByPage does not have a line,
// this line runs unchanged and must end with the exit code 0.
type lineTest struct {
	before string // a command that runs before the line
	as     string // a command that runs instead of the line, because the line names something that a test lacks
	input  string
	exit   int
	prints string // a regular expression that the output must match
	serves bool   // the line starts a server, which prints its address and runs until the test of the page ends
	by     string // "FILE: TEXT": the test does not run the line. CI runs FILE, and the test checks that FILE contains TEXT
}

const (
	listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"
	gotThrough, nothingGotThrough = "got through", "Nothing got through"
)

// commandsByPage has an entry for each page with commands. The entry lists the commands that the
// test cannot run unchanged, and the commands whose output the test checks.
var commandsByPage = map[string]map[string]lineTest{
	"README.md": {
		"go run ./cmd/tripseal demo": {prints: "alice"},
		"go test work":               {by: ".ci/run: \ngo test work\n"},
		"tripseal proxy --ephemeral --audience notes -- python server.py": {input: listTools, prints: `"tools":`},
	},
	"CONTRIBUTING.md": {"interop/run": {by: ".ci/run: \ninterop/run\n"}},
	"docs/peers.md":   {},
	"docs/kubernetes.md": {
		"deploy/image 0.1.0": {by: "test/image/run: $(deploy/image 0.1.0)"},
		"skopeo copy oci-archive:.cache/image/tripseal-0.1.0.tar docker://REGISTRY/tripseal:0.1.0": {by: `deploy/image: echo ".cache/image/tripseal-$tag.tar`},
		"tripseal proxy check proxy.yaml --keys keys --upstream http://127.0.0.1:9000/mcp":         {before: "page-tool settings > proxy.yaml"},
		"kubectl create secret tls release-tls --cert=tls.crt --key=tls.key":                       {before: "touch tls.crt tls.key"},
		"kubectl port-forward deployment/release 9090": {
			before: "kubectl port-forward deployment/release 9090 >&2", serves: true,
			as: "exec tripseal proxy --config proxy.yaml --keys keys --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:0 --admin 127.0.0.1:0",
		},
		"curl http://127.0.0.1:9090/readyz": {prints: "upstream: ok"},
		"kubectl logs -l app.kubernetes.io/name=release -c proxy --tail=-1 | grep 'keys: in use'": {prints: "seals"},
	},
	"docs/operations.md": {
		"grep -ohE '\"?reason\"?[=:]\"?[a-z_]+' LOG… | sort | uniq -c | sort -rn": {
			before: "printf 'reason=unknown_key\\nreason=unknown_key\\n{\"reason\":\"expired\"}\\n' > log", as: "grep -ohE '\"?reason\"?[=:]\"?[a-z_]+' log | sort | uniq -c | sort -rn", prints: "2 reason=unknown_key",
		},
		"curl -sI http://REPLICA:8080/mcp | grep -i ^date": {prints: "GMT"},
		"tripseal inspect --keys keys --target deploy --args @args.json --user alice --audience release.example.com < token": {
			before: `tripseal keys new keys && page-tool mint && echo '{"version":"2"}' > args.json`, exit: 1, prints: "reason +arguments: it was sealed for other arguments",
		},
		"go install github.com/tripseal/tripseal/cmd/tripseal@latest": {by: `tools/release/try.go: "go", "install", command+"@"+r.version`},
		"tripseal keys new keys":                                                     {before: "rm keys"},
		"tripseal keys extend /etc/release/keys --ttl 2h":                            {as: "tripseal keys extend keys --ttl 2h"},
		"tripseal keys new keys --recipient age1…":                                   {before: "rm keys", as: "tripseal keys new keys --recipient $(grep -o 'age1.*' identity)"},
		"tripseal keys new keys --wrap 'our-service=our-cli encrypt --key tripseal'": {before: "rm keys"},
	},
	"docs/probe.md": {
		`tripseal probe http://127.0.0.1:8080/mcp --tool deploy --args '{"env":"staging"}' --answer 'confirm={"ok":true}'`: {exit: 1, prints: gotThrough},
		"tripseal probe --stdio --tool deploy -- ./server":                                                                 {before: "printf '#!/bin/sh\\nexec page-tool server\\n' > server && chmod +x server", exit: 1, prints: gotThrough},
		"go run ./examples/deploy -http 127.0.0.1:8080 -unprotected":                                                       {serves: true},
		`go run ./cmd/tripseal probe http://127.0.0.1:8080/mcp --bearer alice-token --other-bearer bob-token --tool deploy --args '{"service":"web","version":"1"}' --tool rollback --args '{"service":"web","version":"1"}'`: {exit: 1, prints: gotThrough},
	},
	"docs/proxy.md": {
		"tripseal proxy --ephemeral --audience notes -- python server.py":                                                                                                               {input: listTools, prints: `"tools":`},
		"tripseal proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080 --ephemeral --audience try --identity anonymous":                                                   {serves: true},
		`tripseal probe http://127.0.0.1:9000/mcp --tool deploy --args '{"env":"staging"}'`:                                                                                             {exit: 1, prints: gotThrough},
		`tripseal probe http://127.0.0.1:8080/mcp --tool deploy --args '{"env":"staging"}'`:                                                                                             {prints: nothingGotThrough},
		"tripseal probe --stdio --tool deploy -- tripseal proxy --ephemeral --audience notes -- python server.py":                                                                       {prints: nothingGotThrough},
		"tripseal proxy --upstream http://127.0.0.1:9000/mcp --listen 127.0.0.1:8080 --keys keys --audience release.example.com --identity header --header X-User --trust 127.0.0.1/32": {serves: true},
		`tripseal probe http://127.0.0.1:8080/mcp --user-header X-User --bearer alice --other-bearer bob --tool deploy --args '{"env":"staging"}' --require other-user`:                 {prints: nothingGotThrough},
		"tripseal proxy check proxy.yaml":    {before: `printf 'upstream: %s\nlisten: 127.0.0.1:0\nkeys: keys\naudience: notes\nidentity: anonymous\n' "$PAGE_SERVER" > proxy.yaml`},
		"tripseal proxy --config proxy.yaml": {serves: true},
	},
	"docs/releasing.md": {
		"git switch -c release-0.1.0": {before: "git init -q . && touch a && git add a && git commit -qm first && mkdir -p .cache/release/v0.1.0/tree && touch .cache/release/v0.1.0/tree/b"},
		"git tag …":                   {as: "git tag v0.1.0"},
		"GOTOOLCHAIN=go1.26.8 CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go install -trimpath -ldflags='-w -X main.commit=COMMIT' github.com/tripseal/tripseal/cmd/tripseal@v0.1.0": {
			by: `tools/release/binaries.go: "go", "install", "-trimpath", "-ldflags=-w -X main.commit="`,
		},
	},
	"docs/telemetry.md": {"go get github.com/tripseal/tripseal/otelseal": {by: `tools/release/try.go: "go", "get", module`}},
	"docs/testing.md": {
		`tripseal probe http://127.0.0.1:8080/mcp --tool release --args '{"version":"1.2"}' --answer 'confirm={"ok":true}' --attack other-user --require other-user`: {
			before: "export TRIPSEAL_PROBE_BEARER=alice-token TRIPSEAL_PROBE_OTHER_BEARER=bob-token", exit: 1, prints: gotThrough,
		},
	},
	"docs/using.md": {
		"go mod edit -replace github.com/tripseal/tripseal=../tripseal -replace github.com/tripseal/tripseal/gosdk=../tripseal/gosdk": {before: "go mod init example.com/server"},
		"go get github.com/tripseal/tripseal/gosdk": {by: `tools/release/try.go: "go", "get", module`},
		"go get github.com/tripseal/tripseal/mcpgo": {by: `tools/release/try.go: "go", "get", module`},
	},
}

// isCommand matches the lines that begin with the name of a program.
var isCommand = regexp.MustCompile(`^(?:\(umask 077; )?(?:[A-Z_]+=\S+ )*(?:tripseal|go|git|make|cp|grep|curl|kubectl|skopeo|age-keygen|(?:scripts|interop)/\w+) `)

// notCommands matches the lines from commandLines that are not commands. They belong to a file of keys
// or to a query for metrics.
var notCommands = regexp.MustCompile(`^(?:tripseal-keys 1|lifetime 2h|# comments|key [0-9a-f]{8} |revoked |end$|increase\(|or \()`)

func TestEveryCommandInThePagesRuns(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("it runs programs, and the tests without -short and without the race detector do that")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pageFiles(t) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		name, _ = filepath.Rel("../..", name)
		commands, hasCommands := commandsByPage[name]
		var lines []string
		for _, line := range commandLines(string(page)) {
			line, _, _ = strings.Cut(line, "  ") // an explanation may follow after two spaces
			switch {
			case isCommand.MatchString(line + " "):
				lines = append(lines, line)
			case hasCommands && !notCommands.MatchString(line):
				t.Errorf("%s: is this a command? %s", name, line)
			}
		}
		if !hasCommands && len(lines) > 0 {
			t.Errorf("%s has commands, and the test does not say how to run them: %q", name, lines)
		}
		if hasCommands {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for line := range commands {
					if !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\n"+line+"\n") {
						t.Errorf("the page no longer has %s", line)
					}
				}
				r := newReader(t, root)
				for _, line := range lines {
					r.do(t, line, commands[line])
				}
			})
		}
	}
}

// reader plays somebody who reads a page and runs its commands in a new folder.
type reader struct {
	root, dir   string
	environment []string
	addresses   map[string]string // maps an address in the pages to the address that the test uses instead
}

func newReader(t *testing.T, root string) *reader {
	t.Helper()
	web := httptest.NewServer(gosdk.Handler(func(*http.Request) *mcp.Server { return newPageServer() }, nil))
	t.Cleanup(web.Close)
	address, dir, bin := strings.TrimPrefix(web.URL, "http://"), t.TempDir(), t.TempDir()
	for name, command := range map[string]string{
		"python": "page-tool server", "kubectl": `page-tool kubectl "$@"`, "curl": `page-tool curl "$@"`, "age-keygen": `page-tool age-keygen "$@"`, "our-cli": "tr a-z b-za",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\nexec "+command+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return &reader{
		root: root, dir: dir,
		addresses: map[string]string{"127.0.0.1:9000": address, "127.0.0.1:8080": address, "REPLICA:8080": address},
		environment: append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "PAGE_ROOT="+root, "PAGE_SERVER="+web.URL+"/mcp",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null"),
	}
}

// This method runs one line of a page, and checks its exit code and its output.
func (r *reader) do(t *testing.T, line string, how lineTest) {
	t.Helper()
	if file, text, ok := strings.Cut(how.by, ": "); ok {
		if script, err := os.ReadFile(filepath.Join(r.root, file)); err != nil || !strings.Contains(string(script), text) {
			t.Errorf("%s: %s does not have %q: %v", line, file, text, err)
		}
		return
	}
	if target, ok := strings.CutPrefix(line, "make "); ok { // only check that the target exists: most targets take minutes
		if makefile, err := os.ReadFile(filepath.Join(r.root, "Makefile")); err != nil || !strings.Contains(string(makefile), "\n"+target+": ") {
			t.Errorf("%s: there is no such target: %v", line, err)
		}
		return
	}
	if _, err := exec.LookPath("git"); err != nil && strings.HasPrefix(line, "git ") && os.Getenv("CI") == "" {
		t.Skip("git is not installed, and CI has it")
	}
	script := line
	if how.as != "" {
		script = how.as
	}
	for page, real := range r.addresses {
		if how.serves && page != "127.0.0.1:9000" {
			real = "127.0.0.1:0"
		}
		script = strings.ReplaceAll(script, page, real)
	}
	cmd := exec.Command("sh", "-c", how.before+"\n"+script)
	cmd.Dir, cmd.Env = r.dir, r.environment
	if strings.HasPrefix(line, "go run ./") {
		cmd.Dir = r.root
	}
	if how.serves {
		r.serve(t, line, cmd)
		return
	}
	var out []byte
	var err error
	if how.input == "" {
		out, err = cmd.CombinedOutput()
	} else {
		out, err = askLine(cmd, how.input)
	}
	code, ended := 0, new(exec.ExitError)
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if code != how.exit || !regexp.MustCompile(how.prints).Match(out) {
		t.Errorf("%s ended with %d, want %d and %q\n%s", line, code, how.exit, how.prints, out)
	}
}

// askLine starts a server that uses standard input and output. It writes a line to the server, and
// returns the line that the server answers.
func askLine(cmd *exec.Cmd, line string) (answer []byte, err error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	io.WriteString(in, line)
	answer, _ = bufio.NewReader(out).ReadBytes('\n')
	in.Close()
	return answer, cmd.Wait()
}

// serve starts a server with cmd. In later lines of the page, the addresses that this server prints
// replace 127.0.0.1:8080 and 127.0.0.1:9090.
func (r *reader) serve(t *testing.T, line string, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(r.dir, "served.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the whole group: also the processes that a shell or the go command has started
		cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address := regexp.MustCompile(`serving http://(127\.0\.0\.1:\d+)(\S*)`).FindStringSubmatch(lines.Text()); address == nil {
			continue
		} else if address[2] == "/mcp" {
			r.addresses["127.0.0.1:8080"] = address[1]
			return
		} else {
			r.addresses["127.0.0.1:9090"] = address[1]
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("%s does not serve\n%s", line, text)
}
