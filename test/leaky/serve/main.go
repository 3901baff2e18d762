// Command leaky runs a test server for the probe, with the holes that its flags name.
//
//	go run ./probe/leaky -http 127.0.0.1:0 -hole shared-tools
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/tripseal/tripseal/test/leaky"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "leaky:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var holes []string
	flags := flag.NewFlagSet("leaky", flag.ContinueOnError)
	address := flags.String("http", "", "serve HTTP at this loopback `address`; without it the server speaks stdio")
	ttl := flags.Duration("ttl", 10*time.Minute, "how long states and cursors live")
	sse := flags.Bool("sse", false, "send results as server-sent events over HTTP")
	list := flags.Bool("list", false, "print the holes and exit")
	flags.Func("hole", "leave out one check: a `name` that -list prints; may be repeated", func(name string) error {
		holes = append(holes, name)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *list {
		for _, hole := range leaky.Holes() {
			fmt.Fprintf(out, "%-20s %s\n", hole.Name, hole.Means)
		}
		return nil
	}
	server, err := leaky.New(holes...)
	if err != nil {
		return err
	}
	server.TTL, server.SSE = *ttl, *sse
	if *address == "" {
		return server.Serve(ctx, in, out)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	defer listener.Close()
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address: other machines must not reach a server with holes", *address)
	}
	fmt.Fprintf(out, "serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { web.Close() })
	if err := web.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
