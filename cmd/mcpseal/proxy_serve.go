package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpseal/mcpseal/cmd/mcpseal/internal/httpcarrier"
)

// drainTime is how long requests may take to end after a signal.
const drainTime = 5 * time.Second

// serve serves HTTP until the context is done.
func (p *proxying) serve(ctx context.Context, cmd *cobra.Command, logger *slog.Logger) error {
	handler, err := httpcarrier.New(p.carrier)
	if err != nil {
		return usage("%w", err)
	}
	listener, err := listen(p.listen)
	if err != nil {
		return failed("--listen: %w", err)
	}
	p.warn(listener.Addr(), logger)
	log.SetOutput(io.Discard) // package http writes to it what a server sends out of turn, which may be a state
	defer log.SetOutput(os.Stderr)
	// The collector runs when the heap has doubled: with a small one, after every few messages.
	// The system gives these bytes no memory, because nobody touches them.
	ballast := make([]byte, 32<<20)
	defer runtime.KeepAlive(ballast)
	requests, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if at := listener.Addr(); at.Network() == "unix" {
		fmt.Fprintf(cmd.OutOrStdout(), "serving unix:%s at %s\n", at, handler.Path())
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "serving http://%s%s\n", at, handler.Path())
	}
	select {
	case err := <-ended:
		return failed("the proxy cannot serve: %w", err)
	case <-ctx.Done():
	}
	if !shutDown(server, drainTime) {
		cancel() // requests that are still open end with an error
		shutDown(server, time.Second)
		server.Close()
	}
	return nil
}

// shutDown stops listening, and waits for requests. It reports whether all have ended.
func shutDown(server *http.Server, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return server.Shutdown(ctx) == nil
}

// warn tells the operator what a set-up does not protect.
func (p *proxying) warn(at net.Addr, logger *slog.Logger) {
	if p.identity == "anonymous" {
		logger.Warn("proxy: --identity anonymous binds tokens to no user: whoever has a token can use it")
	}
	for _, network := range p.trusted {
		if network.Bits() == 0 {
			logger.Warn("proxy: --trust lets every peer say who the user is", "network", network.String())
		}
	}
	if address, err := netip.ParseAddrPort(at.String()); err == nil && !address.Addr().IsLoopback() {
		logger.Warn("proxy: other machines can reach this address, and the proxy speaks plain HTTP: put TLS in front of it", "address", at.String())
	}
}

// listen listens at HOST:PORT or unix:PATH.
func listen(address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return nil, errors.New("not an address such as 127.0.0.1:8080 or unix:PATH")
		}
		return net.Listen("tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		// A process that was killed leaves its socket. A socket that somebody serves stays.
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	return net.Listen("unix", path)
}
