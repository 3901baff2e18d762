package stdiocarrier

import (
	"io"
	"os"
	"os/exec"
	"time"
)

// A child is the server's process.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *os.File
	exited chan struct{}
	grace  time.Duration
}

func start(config Config, grace time.Duration) (*child, error) {
	cmd := exec.Command(config.Command[0], config.Command[1:]...)
	cmd.Stderr = config.Errors
	cmd.WaitDelay = grace // so that Wait ends even if the server leaves behind a process that keeps standard error open
	inOwnGroup(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// This does not use cmd.StdoutPipe, because Wait would close the pipe before all of it has been read.
	stdout, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = write
	err = cmd.Start()
	write.Close()
	if err != nil {
		stdin.Close()
		stdout.Close()
		return nil, err
	}
	c := &child{cmd: cmd, stdin: stdin, stdout: stdout, exited: make(chan struct{}), grace: grace}
	go func() {
		cmd.Wait()
		close(c.exited)
		c.hurry()
	}()
	return c, nil
}

// Read reads the child's standard output. After the child's exit it returns what is left. If a process that the child
// left behind keeps the output open, Read waits no longer than c.grace.
func (c *child) Read(p []byte) (int, error) {
	select {
	case <-c.exited:
		c.hurry()
	default:
	}
	return c.stdout.Read(p)
}

// hurry limits how long the current read and the next one may take. On Windows it has no effect.
func (c *child) hurry() { c.stdout.SetReadDeadline(time.Now().Add(c.grace)) }

// end stops the child, and on Unix also the processes that the child started. It returns false, and does nothing, if
// the child has already exited.
func (c *child) end() (forced bool) {
	select {
	case <-c.exited:
		return false
	default:
	}
	terminate(c.cmd)
	select {
	case <-c.exited:
	case <-time.After(c.grace):
	}
	kill(c.cmd)
	<-c.exited
	return true
}
