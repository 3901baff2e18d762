//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stdioProcess is a proxy in a process of its own, which has started a server.
type stdioProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	ended chan error
}

// startStdio starts a command whose standard error goes to the given file. At the end of the test it is killed, if it
// still runs.
func startStdio(t *testing.T, errs *os.File, command ...string) *stdioProcess {
	t.Helper()
	p := &stdioProcess{t: t, cmd: exec.Command(command[0], command[1:]...), ended: make(chan error, 1)}
	p.cmd.Stderr = errs
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		out.Close()
	})
	return p
}

func (p *stdioProcess) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// wait waits until the process has ended.
func (p *stdioProcess) wait() {
	p.t.Helper()
	go func() { p.ended <- p.cmd.Wait() }()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Error(err)
		}
	case <-time.After(time.Minute):
		p.t.Error("the proxy does not end")
	}
}

// tellsItsID is a server that tells its process id in a notification, and then waits for signals.
const tellsItsID = `echo '{"jsonrpc":"2.0","method":"pid/'$$'"}'; while :; do sleep 1; done`

// serverID reads the process id of the server tellsItsID.
func (p *stdioProcess) serverID() int {
	p.t.Helper()
	var pid int
	if _, err := fmt.Sscanf(p.line(), `{"jsonrpc":"2.0","method":"pid/%d"}`, &pid); err != nil {
		p.t.Fatal(err)
	}
	return pid
}

func TestTheEndOfTheTerminalEndsTheServerToo(t *testing.T) {
	t.Parallel()
	// If the tests run under nohup, the proxy would inherit that SIGHUP is ignored. A signal that is caught is not
	// inherited.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	for _, number := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT} {
		p := startStdio(t, nil, "tripseal", "proxy", "--ephemeral", "--audience", "test", "--", "sh", "-c", tellsItsID)
		server := p.serverID()
		p.cmd.Process.Signal(number)
		p.wait()
		eventually(t, "the server ends with the proxy", func() bool { return syscall.Kill(server, 0) != nil })
	}
}

func TestAProxyThatNohupStartedOutlivesTheTerminal(t *testing.T) {
	t.Parallel()
	p := startStdio(t, nil, "sh", "-c", `trap "" HUP; exec tripseal proxy --ephemeral --audience test -- sh -c "$0"`,
		`while read line; do echo '{"jsonrpc":"2.0","method":"got"}'; done`)
	for range 50 {
		io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/x"}`+"\n")
		if line := p.line(); !strings.Contains(line, "got") {
			t.Fatal(line)
		}
		p.cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(2 * time.Millisecond) // a signal takes a moment
	}
	p.in.Close()
	p.wait()
}

func TestAStandardErrorThatNobodyReadsStopsNothing(t *testing.T) {
	t.Parallel()
	unread, errs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	defer errs.Close()
	p := startStdio(t, errs, "tripseal", "proxy", "--ephemeral", "--audience", "test", "--", "cat")
	const lines = 5000 // each is refused, with a record in the log; together, much more than a pipe holds
	go func() {
		for range lines {
			io.WriteString(p.in, "{\n")
		}
		p.in.Close()
	}()
	answered := make(chan int)
	go func() {
		n := 0
		for {
			if _, err := p.out.ReadString('\n'); err != nil {
				answered <- n
				return
			}
			n++
		}
	}()
	select {
	case n := <-answered:
		if n != lines {
			t.Errorf("%s of %d lines were answered", strconv.Itoa(n), lines)
		}
	case <-time.After(time.Minute):
		t.Fatal("the proxy stands still")
	}
	p.wait()
}
