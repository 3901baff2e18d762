// Leaky serves a test server for the probe, with the holes that its flags name.
//
//	go run ./probe/leaky -http 127.0.0.1:0 -hole shared-tools
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/mcpseal/mcpseal/probe/internal/leaky"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "leaky:", err)
		os.Exit(1)
	}
}

func run() error {
	var holes []string
	address := flag.String("http", "", "serve HTTP at this loopback `address`; without it the server speaks stdio")
	ttl := flag.Duration("ttl", 10*time.Minute, "how long states and cursors live")
	sse := flag.Bool("sse", false, "send results as server-sent events over HTTP")
	list := flag.Bool("list", false, "print the holes and exit")
	flag.Func("hole", "leave out one check: a `name` that -list prints; may be repeated", func(name string) error {
		holes = append(holes, name)
		return nil
	})
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if *list {
		for _, hole := range leaky.Holes() {
			fmt.Printf("%-20s %s\n", hole.Name, hole.Means)
		}
		return nil
	}
	server, err := leaky.New(holes...)
	if err != nil {
		return err
	}
	server.TTL, server.SSE = *ttl, *sse
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *address == "" {
		return server.Serve(ctx, os.Stdin, os.Stdout)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	defer listener.Close()
	if at, ok := listener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address: other machines must not reach a server with holes", *address)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { web.Close() })
	if err := web.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}
