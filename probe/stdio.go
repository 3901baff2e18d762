package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Stdio starts a command that is an MCP server, and returns that server. The probe talks to it
// over the command's standard input and output. log receives the command's standard error,
// unless log is nil. Close ends the process. Use Stdio for a server that its client starts.
func Stdio(log io.Writer, command ...string) (Server, error) {
	if len(command) == 0 {
		return nil, errors.New("there is no command to start")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = log
	cmd.WaitDelay = patience
	cmd.Env = withoutTokens(os.Environ()) // over stdio the server needs no tokens, and it cannot show what it does not have
	ownGroup(cmd)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	p := newPipe(strings.Join(command, " "), in, out)
	p.end = func() error {
		in.Close()            // a server ends when its input ends
		if !waitFor(p.done) { // the command still runs, or another process keeps the command's output open
			killGroup(cmd)
			waitFor(p.done)
		}
		waited := make(chan struct{})
		go func() {
			cmd.Wait() // closes the output, even if another process keeps it open
			close(waited)
		}()
		if !waitFor(waited) {
			killGroup(cmd)
			if !waitFor(waited) {
				return errors.New("the server's process does not end")
			}
		}
		return nil
	}
	return p, nil
}

// patience is how long each step of ending a command may take; shorter in tests.
var patience = 2 * time.Second

// waitFor waits until the channel is closed. It gives up after a time limit (see patience),
// and returns false.
func waitFor(done <-chan struct{}) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// withoutTokens returns an environment without the access tokens of users.
func withoutTokens(environment []string) []string {
	return slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.EqualFold(name, BearerVariable) || strings.EqualFold(name, OtherBearerVariable)
	})
}

// pipe is a server to which the probe talks over two streams.
type pipe struct {
	command string
	end     func() error
	done    chan struct{} // closed when the server's output has ended

	writing sync.Mutex
	in      io.Writer

	mu      sync.Mutex
	waiting map[int]chan []byte // maps the id of a request to the channel that gets its answer
}

func newPipe(command string, in io.Writer, out io.Reader) *pipe {
	p := &pipe{command: command, in: in, done: make(chan struct{}), waiting: map[int]chan []byte{}}
	go p.read(out)
	return p
}

func (p *pipe) kind() string { return "stdio" }
func (p *pipe) name() string { return p.command }
func (p *pipe) Close() error { return p.end() }

func (p *pipe) read(out io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 1<<16), maxAnswer)
	for lines.Scan() {
		var head struct {
			ID     *int
			Method string
			Error  *struct{}
		}
		if json.Unmarshal(lines.Bytes(), &head) != nil || head.Method != "" {
			continue // a notification, a request of the server, or a line that cannot be an answer to the probe
		}
		p.mu.Lock()
		for id, waiter := range p.waiting {
			// A server that could not read a request answers with an error without an id.
			if head.ID != nil && *head.ID == id || head.ID == nil && head.Error != nil && len(p.waiting) == 1 {
				delete(p.waiting, id)
				waiter <- append([]byte(nil), lines.Bytes()...)
			}
		}
		p.mu.Unlock()
	}
	io.Copy(io.Discard, out) // a line that is too long ends the scanner; the server must still be able to write
}

func (p *pipe) send(ctx context.Context, m message, id int, _ string) *reply {
	waiter := make(chan []byte, 1)
	p.mu.Lock()
	p.waiting[id] = waiter
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
	}()
	written := make(chan error, 1)
	go func() { // a server that does not read must not block the probe
		p.writing.Lock()
		defer p.writing.Unlock()
		_, err := io.WriteString(p.in, m.text(id)+"\n")
		written <- err
	}()
	for {
		select {
		case err := <-written:
			if err != nil {
				return &reply{lost: errors.New("the server takes no more input")}
			}
			written = nil
		case line := <-waiter:
			r := &reply{raw: line}
			r.read(line)
			return r
		case <-p.done:
			select {
			case line := <-waiter: // the answer came just before the server's output ended
				r := &reply{raw: line}
				r.read(line)
				return r
			default:
				return &reply{lost: errors.New("the server has ended")}
			}
		case <-ctx.Done():
			return &reply{lost: errors.New("there was no answer in time")}
		}
	}
}
