package stdiocarrier

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// expectFailures reads one error for each of these ids, in any order.
func (r *rig) expectFailures(ids ...string) {
	r.t.Helper()
	var want, got []string
	for _, id := range ids {
		want = append(want, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32603,"message":"Internal error"}}`)
		got = append(got, r.next())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		r.t.Errorf("the client got %q", got)
	}
}

func TestTheExitCodeOfTheServerIsReturnedAndItsRequestsAreAnswered(t *testing.T) {
	for _, code := range []int{0, 3} {
		r := connect(t)
		r.send(call("1", "deploy", ""))
		r.send(call(`"two"`, "deploy", ""))
		r.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		r.say(ask("1", r.secret), `{"jsonrpc":"2.0","id":3,"result":{"nextCursor":"`+r.secret) // the answer to 3 is cut off
		r.order("exit", map[string]any{"count": code})
		r.tokenOf(r.next(), "1")
		r.expectFailures(`"two"`, "3")
		if got, err := r.wait(); got != code || err != nil {
			t.Errorf("%d, %v, and not %d", got, err, code)
		}
	}
}

func TestASignalThatEndsTheServerIsAnExitCode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.order("end-by-signal", nil)
	r.expectFailures("1")
	if code, err := r.wait(); code != 128+9 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestTheServersLastAnswersAreSentAfterTheEndOfTheInput(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.send(call("2", "deploy", ""))
	last := `{"jsonrpc":"2.0","method":"y"}`
	r.order("say-at-the-end", map[string]any{"lines": asBytes([]string{ask("1", r.secret), last})})
	r.in.Close()
	r.tokenOf(r.next(), "1")
	r.expect(last)
	r.expectFailures("2")
	if code, err := r.wait(); code != 0 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestTheLastLineNeedsNoLineEnd(t *testing.T) {
	r := connect(t)
	line := `{"jsonrpc":"2.0","id":1,"method":"test/report"}`
	if _, err := io.WriteString(r.in, line); err != nil {
		t.Fatal(err)
	}
	r.in.Close()
	r.expect(`{"jsonrpc":"2.0","id":1,"result":{"lines":[]}}`)
}

// brief has short times, for tests in which a server does not end by itself.
var brief = patience{end: 50 * time.Millisecond, grace: 50 * time.Millisecond}

func TestAServerThatDoesNotEndIsEnded(t *testing.T) {
	r := connectWith(t, patience{end: brief.end, grace: time.Second})
	r.order("hang", nil)
	r.expect(`{"jsonrpc":"2.0","method":"hangs"}`)
	r.in.Close()
	if code, err := r.wait(); code == 0 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestTheServerIsEndedWhenTheContextIsDone(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		r := connectWith(t, patience{end: time.Minute, grace: time.Second})
		r.send(call("1", "deploy", ""))
		if hangs {
			r.order("hang", nil)
			r.expect(`{"jsonrpc":"2.0","method":"hangs"}`)
		} else {
			r.received()
		}
		r.cancel()
		r.expectFailures("1")
		if code, err := r.wait(); code != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d, %v", code, err)
		}
	}
}

func TestAServerThatTakesNoInputAnyMoreFailsRequests(t *testing.T) {
	r := connectWith(t, patience{end: brief.end, grace: time.Second})
	r.order("end-input", nil)
	r.expect(`{"jsonrpc":"2.0","method":"ended-input"}`)
	for range 3 {
		r.send(call("1", "deploy", ""))
		r.expectFailures("1")
	}
}

func TestAServerThatEndsItsOutputIsEnded(t *testing.T) {
	r := connect(t)
	r.send(call("1", "deploy", ""))
	r.order("end-output", nil)
	r.expectFailures("1")
	if code, err := r.wait(); code != 0 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

// leaveBehind lets the server start a process, and returns the connection to that process.
func (r *rig) leaveBehind() net.Conn {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	defer listener.Close()
	r.order("leave-behind", map[string]any{"text": listener.Addr().String()})
	listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	connection, err := listener.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	connection.SetDeadline(time.Now().Add(time.Minute))
	if line, err := bufio.NewReader(connection).ReadString('\n'); line != "here\n" {
		r.t.Fatal(line, err)
	}
	return connection
}

func TestAProcessThatTheServerStartedIsEndedWithIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("only the server itself is ended on Windows")
	}
	r := connectWith(t, patience{end: time.Minute, grace: time.Second})
	connection := r.leaveBehind()
	defer connection.Close()
	r.cancel()
	r.wait()
	if _, err := connection.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the process still runs: %v", err)
	}
}

func TestAProcessThatTheServerLeftBehindDoesNotHoldTheCarrier(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a read of a pipe has no deadline on Windows")
	}
	r := connectWith(t, patience{end: time.Minute, grace: 200 * time.Millisecond})
	connection := r.leaveBehind()
	defer connection.Close() // ends the process that the server left behind
	r.send(call("1", "deploy", ""))
	r.order("exit", map[string]any{"count": 4})
	r.expectFailures("1")
	if code, err := r.wait(); code != 4 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

// A server may answer more slowly than the carrier waits for its end.
func TestACallThatRunsWhenTheInputEndsIsAnswered(t *testing.T) {
	r := connectWith(t, patience{end: 50 * time.Millisecond, grace: 50 * time.Millisecond})
	r.send(call("1", "deploy", ""))
	r.order("say-at-the-end", map[string]any{"lines": asBytes([]string{ask("1", r.secret)}), "count": 500})
	r.in.Close()
	r.tokenOf(r.next(), "1")
	r.wait()
}

func TestTheServerGetsTheEnvironmentAndItsErrorsAreLogged(t *testing.T) {
	t.Setenv("STDIOCARRIER_TEST_TEXT", "the environment")
	r := connect(t)
	r.order("log", map[string]any{"text": "STDIOCARRIER_TEST_TEXT"})
	r.received()
	r.in.Close()
	r.wait()
	if r.log.String() != "STDIOCARRIER_TEST_TEXT the environment\n" {
		t.Errorf("the log has %q", r.log)
	}
}

func TestAnInputThatBreaksIsLogged(t *testing.T) {
	r := connect(t)
	r.in.CloseWithError(errors.New("broken"))
	if code, err := r.wait(); code != 0 || err != nil || !strings.Contains(r.log.String(), "cause=broken") {
		t.Errorf("%d, %v, %s", code, err, r.log)
	}
}

func TestAClientThatTakesNoAnswersEndsTheServer(t *testing.T) {
	beServer(t)
	in, toCarrier := io.Pipe()
	defer toCarrier.Close()
	go io.WriteString(toCarrier, `{"jsonrpc":"2.0","id":1,"method":"test/report"}`+"\n")
	gone := writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })
	code, err := run(t.Context(), configFor(t, in, gone), patient)
	if code != 0 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%d, %v", code, err)
	}
}

// TestAClientThatDoesNotReadCannotKeepTheCarrierRunning checks that the carrier ends when its
// context ends, although a write to the client blocks.
func TestAClientThatDoesNotReadCannotKeepTheCarrierRunning(t *testing.T) {
	for name, then := range map[string]string{
		"the server runs":      "",
		"the server has ended": `{"jsonrpc":"2.0","method":"test/exit"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			beServer(t)
			ctx, cancel := context.WithCancel(t.Context())
			in, toCarrier := io.Pipe()
			defer toCarrier.Close()
			go io.WriteString(toCarrier, `{"jsonrpc":"2.0","id":1,"method":"test/report"}`+"\n"+then)
			release := make(chan struct{})
			defer close(release)
			stuck := writerFunc(func([]byte) (int, error) {
				time.AfterFunc(300*time.Millisecond, cancel) // by then, a server that got test/exit has usually ended
				<-release
				return 0, io.ErrClosedPipe
			})
			if _, err := run(ctx, configFor(t, in, stuck), brief); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

func TestACommandThatCannotBeStartedIsAnError(t *testing.T) {
	for _, command := range [][]string{nil, {"no-such-command-anywhere"}, {t.TempDir()}} {
		var out bytes.Buffer
		config := configFor(t, strings.NewReader(""), &out)
		config.Command = command
		if code, err := Run(t.Context(), config); err == nil || code != 0 || out.Len() > 0 {
			t.Errorf("%q: %d, %v", command, code, err)
		}
	}
}

func TestRunAnswersAScript(t *testing.T) {
	beServer(t)
	var out bytes.Buffer
	script := `{"jsonrpc":"2.0","method":"x"}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"test/report"}` + "\n"
	config := configFor(t, strings.NewReader(script), &out)
	config.Errors = os.Stderr
	code, err := Run(t.Context(), config)
	if code != 0 || err != nil || !strings.HasPrefix(out.String(), `{"jsonrpc":"2.0","id":1,"result":{"lines":["`) {
		t.Errorf("%d, %v, %q", code, err, out.String())
	}
}
