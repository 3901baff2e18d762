package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// peer is another implementation, which runs in its own process. It reads one JSON object
// per line, and answers each with one JSON object on a line.
type peer struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	timer  *time.Timer
}

// patience is how long a peer may run before it is killed.
const patience = 5 * time.Minute

func startPeer(args ...string) (*peer, error) {
	for _, arg := range args {
		if _, err := os.Stat(arg); err != nil {
			return nil, fmt.Errorf("the peer is not installed: %w", err)
		}
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	return &peer{cmd, stdin, bufio.NewReaderSize(stdout, 1<<20), timer}, nil
}

// stop ends the process of the peer. It returns an error if the process failed or took too
// long.
func (p *peer) stop() error {
	p.stdin.Close()
	err := p.cmd.Wait()
	if !p.timer.Stop() {
		return errors.New("the peer took too long")
	}
	return err
}

// answer is a peer's answer to one job.
type answer struct {
	Token    string          // the token that the peer made
	State    json.RawMessage // the state of the token that the peer opened
	Rejected string          // why the peer refused to make or open a token; "" if it did not refuse
	Error    string          // why the peer itself failed; "" if it did not fail
	Session  string
}

func (p *peer) ask(question any) (answer, error) {
	line, err := json.Marshal(question)
	if err != nil {
		return answer{}, err
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		return answer{}, err
	}
	line, err = p.stdout.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("the peer stopped: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return answer{}, fmt.Errorf("the peer answered %q", line)
	}
	if a.Error != "" {
		return answer{}, fmt.Errorf("the peer failed: %s", a.Error)
	}
	return a, nil
}
