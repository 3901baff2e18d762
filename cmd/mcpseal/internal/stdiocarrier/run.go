// Package stdiocarrier carries messages between a client on standard input and output and a
// server that is a child process. It moves lines; the package proxy decides what is in them.
package stdiocarrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/proxy"
)

// patience says how long Run waits.
type patience struct {
	answers time.Duration // for the server to end by itself, once its input or output has ended
	grace   time.Duration // for each harder way to end it, and for the last bytes of its output
}

// Run starts a server, and seals what it sends to the client. in and out are the client's
// side; log gets the server's standard error and what the operator should know. caller tells
// who the client is. Run returns the server's exit code when the server has ended; on Unix it
// is 128 and the signal's number if a signal ended the server.
//
// When in ends, the server's input ends too; a server that does not end within five seconds
// is ended. When ctx is done, the server is ended at once, and Run returns the error of ctx.
// A read of in may still be under way when Run returns.
func Run(ctx context.Context, p *proxy.Proxy, caller mcpseal.Principal, command []string, in io.Reader, out io.Writer, log io.Writer) (exitCode int, err error) {
	return run(ctx, p, caller, command, in, out, log, patience{answers: 5 * time.Second, grace: 2 * time.Second})
}

func run(ctx context.Context, p *proxy.Proxy, caller mcpseal.Principal, command []string, in io.Reader, out io.Writer, log io.Writer, wait patience) (exitCode int, err error) {
	if len(command) == 0 {
		return 0, errors.New("there is no command to start")
	}
	if log = shared(log); ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	server, err := start(command, log, wait.grace)
	if err != nil {
		return 0, fmt.Errorf("the server does not start: %w", err)
	}
	defer server.stdout.Close()
	s := &session{proxy: p, caller: caller, client: newLineWriter(out), server: newLineWriter(server.stdin), log: log}

	input, output := make(chan error, 1), make(chan error, 1)
	go func() { input <- s.fromClient(ctx, in) }()
	go func() {
		err := s.fromServer(ctx, server)
		s.client.close() // nothing is written any more once Run has returned
		output <- err
	}()

	var lost error // why the client takes no answers any more
	ended := false
	select {
	case <-server.exited:
	case lost = <-input:
	case lost = <-output:
		ended = true
	case <-ctx.Done():
	}
	server.stdin.Close()
	select {
	case <-server.exited:
	case <-ctx.Done():
	case <-time.After(wait.answers):
	}
	forced := server.end()

	// What the server wrote before its end is still on its way to a client that may be slow.
	var late <-chan time.Time
	if forced {
		late = time.After(wait.grace)
	}
	for done := ctx.Done(); !ended; {
		select {
		case err := <-output:
			if ended = true; lost == nil {
				lost = err
			}
		case <-done:
			done, late = nil, time.After(wait.grace)
		case <-late:
			ended = true
		}
	}
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case lost != nil:
		return 0, fmt.Errorf("the client takes no answers any more: %w", lost)
	}
	return exitCodeOf(server.cmd.ProcessState), nil
}

// shared returns a writer that the server's standard error and the carrier can both write to.
func shared(log io.Writer) io.Writer {
	switch log := log.(type) {
	case nil:
		return io.Discard
	case *os.File: // the server gets the file itself
		return log
	}
	return &oneByOne{stream: log}
}

// oneByOne is a writer that is safe for concurrent use.
type oneByOne struct {
	mu     sync.Mutex
	stream io.Writer
}

func (w *oneByOne) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream.Write(p)
}
