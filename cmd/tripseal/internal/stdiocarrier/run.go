// Package stdiocarrier is what only a proxy has around the door of package wire for standard input and output: a server
// that is a child process. The door decides what happens to each line.
package stdiocarrier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/tripseal/tripseal/wire"
)

// patience says how long Run waits at most.
type patience struct {
	end   time.Duration // how long the server may take to end by itself, after its input has ended and no call waits
	grace time.Duration // how long it may take to end after a signal, and its last output after it has ended
}

// Config says how [Run] runs a server.
type Config struct {
	// Engine decides what happens to each line. Required.
	Engine *wire.Engine
	// Command is the server's command, with its arguments. Required.
	Command []string
	// In has the client's messages, and Out gets the messages for the client. Required.
	In  io.Reader
	Out io.Writer
	// Errors gets what the server writes to its standard error. Nil drops it. If it is a file, the server writes to it
	// directly. Otherwise, it must be safe for concurrent use.
	Errors io.Writer
	// Logger gets a record if the client's input ends early. Required.
	Logger *slog.Logger
}

// Run starts a server, and seals what the server sends to the client.
//
// When the server has ended, Run returns its exit code. On Unix, if a signal ended the server, the code is 128 plus the
// number of the signal.
//
// When the client's input ends, Run ends the server's input too. When then no call waits for its answer, and the server
// does not exit within five seconds, Run ends the server. When ctx is done, Run ends the server at once and returns the
// cause of ctx. When Run returns, a read of the client's input may still be under way.
func Run(ctx context.Context, config Config) (exitCode int, err error) {
	return run(ctx, config, patience{end: 5 * time.Second, grace: 2 * time.Second})
}

func run(ctx context.Context, config Config, wait patience) (exitCode int, err error) {
	if len(config.Command) == 0 {
		return 0, errors.New("there is no command to start")
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	server, err := start(config, wait.grace)
	if err != nil {
		return 0, fmt.Errorf("the server does not start: %w", err)
	}
	defer server.stdout.Close()
	pipe := config.Engine.Pipe(server.stdin, config.Out, nil)

	// Each of these channels gets the error of a write to the client, or nil if none failed.
	input, output := make(chan error, 1), make(chan error, 1)
	go func() {
		client := &reader{stream: config.In}
		_, err := io.Copy(pipe.Client, client)
		if client.err != nil {
			config.Logger.Warn("proxy: the client's input ended early", "cause", client.err.Error())
			err = nil
		}
		pipe.Client.Close()
		input <- err
	}()
	go func() {
		_, err := io.Copy(pipe.Server, &reader{stream: server})
		pipe.Server.Close()
		pipe.Shut() // so that nothing is written to the client after Run has returned
		output <- err
	}()

	var writeErr error
	ended := false
	select {
	case <-server.exited:
	case writeErr = <-input:
		server.stdin.Close()
		if writeErr == nil {
			select {
			case <-pipe.Idle():
			case <-server.exited:
			case <-ctx.Done():
			}
		}
	case writeErr = <-output:
		ended = true
	case <-ctx.Done():
	}
	server.stdin.Close()
	select {
	case <-server.exited:
	case <-ctx.Done():
	case <-time.After(wait.end):
	}
	forced := server.end()

	// Wait for the server's last output, which may still be on its way to a slow client. If the server was forced to
	// end, or ctx is done, wait no longer than wait.grace.
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

// reader keeps apart why a stream ended from why what was read could not be written.
type reader struct {
	stream io.Reader
	err    error // the error that ended the stream; nil if it ended as it should
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.stream.Read(p)
	if err != nil && err != io.EOF {
		r.err, err = err, io.EOF
	}
	return n, err
}
