// Package moved_test attacks examples/files, which is like an existing server that was moved to
// tripseal: first as it was before, where every attack must make it act although its user did not say
// yes, and then protected, where none may.
package moved_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const revision = "2026-07-28"

// fleet is a running server with two replicas.
type fleet struct {
	dir  string // the files of all users
	urls [2]string
}

func start(t *testing.T, flags ...string) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir()}
	program := filepath.Join(t.TempDir(), "files")
	build := exec.Command("go", "build", "-o", program, "./examples/files")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program, append([]string{"-http", "127.0.0.1:0", "-replicas", "2", "-dir", f.dir}, flags...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for i := range f.urls {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), "serving ") {
			t.Fatalf("the server does not serve: %q, %v", lines.Text(), lines.Err())
		}
		f.urls[i] = strings.TrimPrefix(lines.Text(), "serving ")
	}
	return f
}

// reset writes the first files of both users.
func (f *fleet) reset(t *testing.T) {
	t.Helper()
	for _, user := range []string{"alice", "bob"} {
		if err := os.RemoveAll(filepath.Join(f.dir, user)); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"report.txt", "photo.jpg", "notes/today.txt"} {
			path := filepath.Join(f.dir, user, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// holds returns the names of all files.
func (f *fleet) holds(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(f.dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(files, "\n")
}

// call is one round of a call to a tool. The test sends it without an SDK, because the client of an
// SDK would not send what an attacker sends.
type call struct {
	replica          int
	user, tool, path string
	state            string // "" means that no state is sent
	answers          map[string]any
}

type reply struct {
	Result struct {
		Content       []struct{ Text string }
		RequestState  string
		InputRequests map[string]struct{ Params struct{ Message string } }
	}
	Error struct {
		Code    int
		Message string
	}
}

// asks returns the question of the reply, or "".
func (r *reply) asks() (message string) {
	for _, question := range r.Result.InputRequests {
		message = question.Params.Message
	}
	return message
}

func (r *reply) rejected() bool {
	return r.Error.Code == -32602 && r.Error.Message == "Invalid or expired requestState"
}

func (f *fleet) send(t *testing.T, c call) (r reply) {
	t.Helper()
	params := map[string]any{
		"name": c.tool, "arguments": map[string]any{"path": c.path},
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    revision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "test", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": json.RawMessage(`{"elicitation":{"form":{}}}`),
		},
	}
	if c.state != "" {
		params["requestState"] = c.state
	}
	if c.answers != nil {
		params["inputResponses"] = c.answers
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.urls[c.replica], bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Authorization": "Bearer token-of-" + c.user, "Mcp-Protocol-Version": revision,
		"Mcp-Method": "tools/call", "Mcp-Name": c.tool,
	} {
		request.Header.Set(name, value)
	}
	response, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, event, ok := bytes.Cut(text, []byte("data: ")); ok { // an event stream with one event
		text, _, _ = bytes.Cut(event, []byte("\n"))
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%d %s: %v", response.StatusCode, text, err)
	}
	return r
}

var yes = map[string]any{"confirm": json.RawMessage(`{"action":"accept","content":{"ok":true}}`)}

// forged is a state that says that bob said yes, as the server wrote it before it was moved.
const forged = `{"Folder":"bob","Agreed":["confirm"]}`

// attacks change alice's honest confirmation of a call of delete_file.
var attacks = []struct {
	name   string
	begin  func(*call) // changes the first round; nil means no change
	change func(*call)
	after  bool // true if the attack is made after the honest confirmation
	asks   bool // true if a protected server must ask again; false if it must reject the state
}{
	{name: "a second user confirms", change: func(c *call) { c.user = "bob" }},
	{name: "a tampered state", change: func(c *call) {
		if c.state[0] == '{' {
			c.state = strings.ReplaceAll(c.state, "alice", "bob")
			return
		}
		at, other := len(c.state)/2, "A"
		if c.state[at] == 'A' {
			other = "B"
		}
		c.state = c.state[:at] + other + c.state[at+1:]
	}},
	{name: "a state that the client wrote", change: func(c *call) { c.state, c.answers = forged, nil }},
	{name: "another tool's state",
		begin: func(c *call) { c.tool = "archive_file" }, change: func(c *call) { c.tool = "delete_file" }},
	{name: "other arguments", change: func(c *call) { c.path = "photo.jpg" }},
	{name: "an answer without a state", change: func(c *call) { c.state = "" }, asks: true},
	{name: "a repeated confirmation", change: func(*call) {}, after: true},
}

func TestEveryAttackIsRefused(t *testing.T) { each(t, start(t), true) }

func TestAttacksWorkWithoutTripseal(t *testing.T) { each(t, start(t, "-unprotected"), false) }

func each(t *testing.T, f *fleet, protected bool) {
	for _, a := range attacks {
		// Every flow begins on the first replica, and must end on either.
		for replica := range 2 {
			f.reset(t)
			honest := call{user: "alice", tool: "delete_file", path: "report.txt"}
			if a.begin != nil {
				a.begin(&honest)
			}
			asked := f.send(t, honest)
			if asked.asks() == "" || asked.Result.RequestState == "" {
				t.Fatalf("%s: the first round: %+v", a.name, asked)
			}
			honest.replica, honest.state, honest.answers = 1, asked.Result.RequestState, maps.Clone(yes)
			attacking := honest
			attacking.replica = replica
			a.change(&attacking)
			if a.after {
				f.mustAct(t, honest)
				f.reset(t)
			}
			before := f.holds(t)
			got := f.send(t, attacking)
			acted, what := f.holds(t) != before, fmt.Sprintf("%s, replica %d", a.name, replica+1)
			switch {
			case !protected && !acted:
				t.Errorf("%s does nothing even without tripseal: %+v", what, got)
			case protected && (acted || a.asks != (got.asks() != "") || a.asks == got.rejected()):
				t.Errorf("%s: acted: %t, answered %+v", what, acted, got)
			}
			if protected && !a.after { // a server that refuses everything would pass the check above too
				f.mustAct(t, honest)
			}
		}
	}
}

func (f *fleet) mustAct(t *testing.T, honest call) {
	t.Helper()
	before := f.holds(t)
	if got := f.send(t, honest); f.holds(t) == before {
		t.Fatalf("the honest confirmation did nothing: %+v", got)
	}
}

// TestAYesToTheFirstQuestionIsNoYesToTheSecond checks that nothing is deleted if the client answers
// the second question before it is asked, sends the first answer again, or uses a state twice.
func TestAYesToTheFirstQuestionIsNoYesToTheSecond(t *testing.T) {
	f := start(t)
	f.reset(t)
	before := f.holds(t)
	c := call{user: "alice", tool: "delete_file", path: "notes"}
	first := f.send(t, c)
	c.replica, c.state = 1, first.Result.RequestState
	c.answers = map[string]any{"confirm": yes["confirm"], "below": yes["confirm"]}
	second := f.send(t, c)
	if second.asks() != "Delete also today.txt?" || f.holds(t) != before {
		t.Fatalf("an answer before its question: %+v", second)
	}
	c.state, c.answers = second.Result.RequestState, yes
	if got := f.send(t, c); got.asks() != "Delete also today.txt?" || f.holds(t) != before {
		t.Errorf("the first answer again: %+v", got)
	}
	c.answers = map[string]any{"below": yes["confirm"]}
	if got := f.send(t, c); !got.rejected() || f.holds(t) != before {
		t.Errorf("a state that was used: %+v", got)
	}
}
