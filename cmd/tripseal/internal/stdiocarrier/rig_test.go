package stdiocarrier

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
	"github.com/tripseal/tripseal/wire"
)

// roleVariable is the environment variable that turns the test binary into the server that the tests
// start, or into a process that this server leaves behind.
const roleVariable = "STDIOCARRIER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "server":
		os.Exit(obey(os.Stdin, os.Stdout, os.Stderr))
	case "left behind":
		os.Exit(stay())
	}
	os.Exit(m.Run())
}

// obey is a server that the client controls with notifications whose method starts with test/. The
// only request that it answers by itself is test/report. The answer has the lines that arrived
// since the last report, except those notifications.
func obey(in io.Reader, out, log io.Writer) int {
	received, last := [][]byte{}, [][]byte{}
	var pause time.Duration // between the end of the input and what is said then
	stream := bufio.NewReader(in)
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			time.Sleep(pause)
			for _, line := range last {
				fmt.Fprintf(out, "%s\n", line)
			}
			return 0
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Lines [][]byte // so that a line need not be UTF-8
				Text  string
				Count int
			}
		}
		json.Unmarshal([]byte(line), &m)
		switch m.Method {
		case "test/say":
			for _, line := range m.Params.Lines {
				fmt.Fprintf(out, "%s\n", line)
			}
		case "test/say-at-the-end":
			last = append(last, m.Params.Lines...)
			pause = time.Duration(m.Params.Count) * time.Millisecond
		case "test/say-long":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":1,"result":{"requestState":"%s%s"}}`+"\n", m.Params.Text, strings.Repeat("x", m.Params.Count))
		case "test/log":
			fmt.Fprintln(log, m.Params.Text, os.Getenv(m.Params.Text))
		case "test/exit":
			return m.Params.Count
		case "test/end-by-signal":
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		case "test/end-output":
			out.(*os.File).Close()
		case "test/end-input":
			in.(*os.File).Close()
			fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"ended-input"}`)
			time.Sleep(time.Minute) // the carrier ends this process earlier
		case "test/hang":
			signal.Ignore(syscall.SIGTERM)
			fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"hangs"}`)
			time.Sleep(time.Minute) // the carrier ends this process earlier
		case "test/leave-behind":
			other := exec.Command(os.Args[0], m.Params.Text)
			other.Env = append(os.Environ(), roleVariable+"=left behind")
			other.Stdout, other.Stderr = os.Stdout, os.Stderr
			other.Start()
		case "test/report":
			lines, _ := json.Marshal(received) // in base64, because a line may have a secret that the client must not see
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"lines":%s}}`+"\n", m.ID, lines)
			received = received[:0]
		default:
			received = append(received, []byte(strings.TrimSuffix(line, "\n")))
		}
	}
}

// stay is a process that ignores SIGTERM, and ends when the test closes its connection.
func stay() int {
	signal.Ignore(syscall.SIGTERM)
	connection, err := net.Dial("tcp", os.Args[1])
	if err != nil {
		return 1
	}
	connection.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintln(connection, "here")
	io.Copy(io.Discard, connection)
	return 0
}

// A rig is a client that talks to a server through the carrier.
type rig struct {
	t      *testing.T
	secret string // a text in the server's states; it must not reach the client
	in     *io.PipeWriter
	lines  chan string
	log    *safeBuffer
	cancel context.CancelFunc
	done   chan struct{}
	code   int
	err    error

	mu  sync.Mutex
	all bytes.Buffer // everything that the client got
}

type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// configFor returns a configuration with this test binary as the server.
func configFor(t testing.TB, in io.Reader, out io.Writer) Config {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	engine, err := wire.New(wire.Config{Boundary: sealtest.BoundaryWith(t, tripseal.Config{Logger: quiet}), Proxied: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return Config{Engine: engine, Command: []string{os.Args[0], "with an argument"}, In: in, Out: out, Logger: quiet}
}

// beServer lets the test start this test binary, os.Args[0], as the server.
func beServer(t *testing.T) {
	t.Setenv(roleVariable, "server")
	t.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0") // the race detector waits a second at each exit
}

// patient has times that are long enough for a busy machine. A test that waits until a time has
// passed uses a shorter time.
var patient = patience{end: 30 * time.Second, grace: 10 * time.Second}

func connect(t *testing.T) *rig { return connectWith(t, patient) }

func connectWith(t *testing.T, wait patience) *rig {
	t.Helper()
	beServer(t)
	in, toCarrier := io.Pipe()
	fromCarrier, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{t: t, secret: "secret-" + rand.Text(), in: toCarrier, lines: make(chan string, 1<<12), log: &safeBuffer{}, cancel: cancel, done: make(chan struct{})}
	config := configFor(t, in, out)
	config.Errors, config.Logger = r.log, slog.New(slog.NewTextHandler(r.log, nil))
	go func() {
		defer close(r.done)
		r.code, r.err = run(ctx, config, wait)
		out.Close()
	}()
	go func() {
		defer close(r.lines)
		stream := bufio.NewReader(fromCarrier)
		for {
			line, err := stream.ReadString('\n')
			r.mu.Lock()
			r.all.WriteString(line)
			r.mu.Unlock()
			if err != nil {
				return
			}
			r.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(func() {
		r.in.Close()
		r.wait()
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.Contains(r.all.String(), r.secret) {
			t.Error("the client saw the server's secret")
		}
	})
	return r
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// send sends a line to the carrier.
func (r *rig) send(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// order sends the server a notification with the method test/…, which tells the server what to do.
func (r *rig) order(method string, params map[string]any) {
	r.t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		r.t.Fatal(err)
	}
	r.send(`{"jsonrpc":"2.0","method":"test/` + method + `","params":` + string(text) + `}`)
}

// say lets the server write lines.
func (r *rig) say(lines ...string) {
	r.t.Helper()
	r.order("say", map[string]any{"lines": asBytes(lines)})
}

func asBytes(lines []string) (all [][]byte) {
	for _, line := range lines {
		all = append(all, []byte(line))
	}
	return all
}

// next waits for a line to the client, and returns it. It returns "" if no more lines will come.
func (r *rig) next() string {
	r.t.Helper()
	select {
	case line := <-r.lines:
		return line
	case <-time.After(time.Minute):
		r.t.Fatal("the client got no line")
		return ""
	}
}

func (r *rig) expect(want string) {
	r.t.Helper()
	if got := r.next(); got != want {
		r.t.Fatalf("the client got\n%q\nand not\n%q", got, want)
	}
}

// received returns the lines that the server got since the last call.
func (r *rig) received() (lines []string) {
	r.t.Helper()
	r.send(`{"jsonrpc":"2.0","id":"report","method":"test/report"}`)
	var m struct{ Result struct{ Lines [][]byte } }
	line := r.next()
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result.Lines == nil {
		r.t.Fatalf("the client got %q, and not the report", line)
	}
	for _, line := range m.Result.Lines {
		lines = append(lines, string(line))
	}
	return lines
}

// wait waits for the end of the carrier.
func (r *rig) wait() (code int, err error) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(2 * time.Minute):
		r.cancel()
		r.t.Fatal("the carrier does not end")
	}
	return r.code, r.err
}

// ask returns the server's answer to a request. The answer asks the user a question, and has the
// given state.
func ask(id, state string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"input_required","requestState":"` + state + `","inputRequests":{"sure":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}}}}`
}

// call returns a request that calls a tool. The text extraParams is "", or a comma and further
// params.
func call(id, tool, extraParams string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"env":"staging"}` + extraParams + `}}`
}

// tokenOf returns the token in an answer that the client got: the answer's state or cursor.
func (r *rig) tokenOf(line, id string) string {
	r.t.Helper()
	var m struct {
		ID     json.RawMessage
		Result struct{ RequestState, NextCursor string }
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil || string(m.ID) != id || m.Result.RequestState+m.Result.NextCursor == "" {
		r.t.Fatalf("%q is not an answer to %s with a token", line, id)
	}
	return m.Result.RequestState + m.Result.NextCursor
}
