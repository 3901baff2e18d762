// Deploy is a small server to start from. It has two tools that ask the user before they act, and
// one that returns pages. One line of code protects them.
//
//	go run ./examples/deploy -http 127.0.0.1:8080   on the official SDK
//	go run ./examples/deploy -sdk mcp-go            on mcp-go
//
// The bearer tokens are "alice-token" and "bob-token".
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on; port 0 means any")
	sdk := flag.String("sdk", "go-sdk", "`name` of the SDK: go-sdk, which is the official one, or mcp-go")
	ttl := flag.Duration("ttl", 0, "lifetime of a state; 0 means 10 minutes")
	unprotected := flag.Bool("unprotected", false, "leave tripseal out, to see which attacks get through")
	flag.Parse()
	// Ephemeral keys die with the process. Replicas share keys, as examples/production does.
	handler, err := start(*sdk, tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com", TTL: *ttl})
	if *unprotected {
		server := release.NewServer()
		handler = mcp.NewStreamableHTTPHandler(
			func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	}
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(handler))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

// start builds the server with the named SDK, and returns its HTTP handler.
func start(sdk string, config tripseal.Config) (http.Handler, error) {
	switch sdk {
	case "go-sdk":
		server, err := newServer(config)
		if err != nil {
			return nil, err
		}
		return server.Handler(nil), nil
	case "mcp-go":
		return newMCPGoHandler(config)
	}
	return nil, fmt.Errorf("-sdk %q is unknown: write go-sdk or mcp-go", sdk)
}
