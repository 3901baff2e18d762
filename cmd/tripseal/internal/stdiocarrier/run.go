// Package stdiocarrier carries messages between a client on standard input and output and a
// server that is a child process. This package only moves lines. The package proxy decides
// what is in them.
package stdiocarrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/proxy"
)

// patience says how long Run waits at most.
type patience struct {
	answers time.Duration // how long the server may take to end by itself after its input or output has ended
	grace   time.Duration // how long the server may take to end after a signal, and how long its last output may take after the server has ended
}

// Run starts a server with the given command, and seals what the server sends to the client. It
// reads the client's messages from input, and writes the messages for the client to output. The
// parameter log receives messages for the operator, and what the server writes to its standard
// error. The parameter caller says who the client is.
//
// When the server has ended, Run returns its exit code. On Unix, if a signal ended the server,
// the code is 128 plus the number of the signal.
//
// When the client's input ends, Run ends the server's input too. If the server does not exit
// within five seconds, Run ends the server. When ctx is done, Run ends the server at once and
// returns the cause of ctx. When Run returns, a read of the client's input may still be under way.
func Run(ctx context.Context, p *proxy.Proxy, caller tripseal.Principal, command []string, input io.Reader, output io.Writer, log io.Writer) (exitCode int, err error) {
	return run(ctx, p, caller, command, input, output, log, patience{answers: 5 * time.Second, grace: 2 * time.Second})
}

func run(ctx context.Context, p *proxy.Proxy, caller tripseal.Principal, command []string, in io.Reader, out io.Writer, log io.Writer, wait patience) (exitCode int, err error) {
	if len(command) == 0 {
		return 0, errors.New("there is no command to start")
	}
	if log = shareLog(log); ctx.Err() != nil {
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
		s.client.close() // so that nothing is written to the client after Run has returned
		output <- err
	}()

	var writeErr error // the error of a write to the client; nil if none failed
	ended := false
	select {
	case <-server.exited:
	case writeErr = <-input:
	case writeErr = <-output:
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

	// Wait for the server's last output, which may still be on its way to a slow client. If the
	// server was forced to end, or ctx is done, wait no longer than wait.grace.
	var late <-chan time.Time
	if forced {
		late = time.After(wait.grace)
	}
	for done := ctx.Done(); !ended; {
		select {
		case err := <-output:
			if ended = true; writeErr == nil {
				writeErr = err
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
	case writeErr != nil:
		return 0, fmt.Errorf("the client takes no answers any more: %w", writeErr)
	}
	return exitCodeOf(server.cmd.ProcessState), nil
}

// shareLog returns a writer to the log. The server's standard error and the carrier can use the
// writer at the same time.
func shareLog(log io.Writer) io.Writer {
	switch log := log.(type) {
	case nil:
		return io.Discard
	case *os.File: // safe for concurrent use; package exec passes the file itself to the server, which writes to it directly
		return log
	}
	return &oneByOne{stream: log}
}

// oneByOne makes a writer safe for concurrent use.
type oneByOne struct {
	mu     sync.Mutex
	stream io.Writer
}

func (w *oneByOne) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stream.Write(p)
}
