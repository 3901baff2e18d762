package proxycmd

import (
	"context"
	"crypto/tls"
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
	"github.com/tripseal/tripseal/cmd/tripseal/internal/cli"
)

// proxyDrain holds the settings that say how the proxy ends.
type proxyDrain struct{ delay, requests time.Duration }

func (d *proxyDrain) flags(cmd *cobra.Command) {
	cli.DurationVar(cmd, &d.delay, "drain-delay", 0, "how long to go on, but not be ready, after SIGTERM; for what balances load to notice")
	cli.DurationVar(cmd, &d.requests, "drain", 20*time.Second, "how long requests may take to end after that")
}

func (d *proxyDrain) check() error {
	if d.delay < 0 || d.requests < 0 || d.delay > time.Hour || d.requests > time.Hour {
		return errors.New("--drain-delay and --drain must be between 0s and 1h")
	}
	return nil
}

// serve serves HTTP until the context ends. Before it returns, it waits for open requests, as long
// as p.drain allows.
func (p *proxying) serve(ctx context.Context, cmd *cobra.Command, parts *proxyParts, logger *slog.Logger) error {
	listener, err := listen(p.listen)
	if err != nil {
		return cli.Failed("--listen: %w", err)
	}
	p.warn(listener.Addr(), logger)
	log.SetOutput(io.Discard) // otherwise net/http would log what a server sends without a request, and that may be a state
	defer log.SetOutput(os.Stderr)
	// The garbage collector runs each time the heap has doubled. With a small heap, it would
	// run after every few messages, so make the heap larger. The ballast uses no memory, because
	// nothing reads or writes it.
	ballast := make([]byte, 32<<20)
	defer runtime.KeepAlive(ballast)
	requests, cancel := context.WithCancel(context.Background())
	defer cancel()
	go stayAwake(requests)
	server := newServer(parts.ready.closeConnections(recorded(parts.handler, parts.report)), p.connections, logger)
	server.BaseContext = func(net.Listener) context.Context { return requests }
	scheme := "http"
	if parts.tls != nil {
		scheme, listener = "https", tls.NewListener(listener, parts.tls)
	}
	ended := make(chan error, 2)
	if p.admin != "" {
		adminListener, err := listen(p.admin)
		if err != nil {
			listener.Close()
			return cli.Failed("--admin: %w", err)
		}
		admin := newServer(adminHandler(&parts.ready, parts.metrics), 256, logger)
		admin.WriteTimeout, admin.ReadHeaderTimeout = 30*time.Second, 5*time.Second
		admin.SetKeepAlivesEnabled(false) // with keep-alives, idle clients could hold all connections, and health checks would fail
		defer admin.Close()
		go func() { ended <- admin.Serve(adminListener) }()
		printAddress(cmd.OutOrStdout(), "http", adminListener.Addr(), "", " for operators: /healthz, /readyz, /metrics")
	}
	go func() { ended <- server.Serve(listener) }()
	printAddress(cmd.OutOrStdout(), scheme, listener.Addr(), parts.handler.Path(), "")
	select {
	case err := <-ended:
		return cli.Failed("the proxy cannot serve: %w", err)
	case <-ctx.Done():
	}
	parts.ready.draining.Store(true)
	logger.Info("proxy: the proxy ends", "drain_delay", p.drain.delay.String(), "drain", p.drain.requests.String())
	time.Sleep(p.drain.delay)
	if !shutDown(server, p.drain.requests) {
		logger.Warn("proxy: requests that had not ended in time were ended")
		cancel() // this ends the open requests with an error
		shutDown(server, time.Second)
		server.Close()
	}
	return nil
}

// stayAwake makes deadlines cheap, until the context ends. While a process waits for the
// network, Go's runtime sleeps until the next timer. A deadline that is earlier than this timer
// interrupts the sleep, and each request sets several deadlines. So stayAwake always has a timer
// that is earlier than all of them.
func stayAwake(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// printAddress prints one line for the user: the address at which the proxy serves, and the
// note.
func printAddress(out io.Writer, scheme string, at net.Addr, path, note string) {
	if at.Network() == "unix" {
		if path != "" {
			path = " at " + path
		}
		fmt.Fprintf(out, "serving unix:%s%s%s\n", at, path, note)
		return
	}
	fmt.Fprintf(out, "serving %s://%s%s%s\n", scheme, at, path, note)
}

func newServer(handler http.Handler, connections int, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		ConnState:         newConnections(connections).track,
	}
}

// shutDown stops listening, and waits for open requests, but no longer than the limit. It
// reports whether all of them have ended.
func shutDown(server *http.Server, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return server.Shutdown(ctx) == nil
}

// warn logs a warning for each setting that leaves something unprotected.
func (p *proxying) warn(at net.Addr, logger *slog.Logger) {
	if p.users.identity == "anonymous" {
		logger.Warn("proxy: --identity anonymous binds tokens to no user: whoever has a token can use it")
	}
	for _, network := range p.users.trusted {
		if network.Bits() == 0 {
			logger.Warn("proxy: --trust lets every peer say who the user is", "network", network.String())
		}
	}
	if upstream := p.carrier.Upstream; upstream.Scheme == "http" && !isLoopback(upstream.Hostname()) {
		logger.Warn("proxy: the server is on another machine, and --upstream is plain HTTP: whoever is in between reads and "+
			"changes states; let it begin with https://", "host", upstream.Hostname())
	}
	if address, err := netip.ParseAddrPort(at.String()); err == nil && !address.Addr().IsLoopback() && p.secure.cert == "" {
		logger.Warn("proxy: other machines can reach this address, and the proxy speaks plain HTTP: give --tls-cert and --tls-key, or put TLS in front of it", "address", at.String())
	}
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || strings.EqualFold(host, "localhost")
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
	if path == "" || path[0] == '@' {
		return nil, errors.New("the socket needs a file, because its permissions say who may connect: write unix:PATH")
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		// A killed process leaves its socket behind. Remove the socket if no process serves it.
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			conn.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			os.Remove(path)
		}
	}
	return net.Listen("unix", path)
}
