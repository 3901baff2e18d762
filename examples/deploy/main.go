// Deploy is a small server to start from: two tools that ask before they act,
// protected with one line, over stdio or HTTP with bearer tokens.
//
//	go run ./examples/deploy                        stdio, for one client
//	go run ./examples/deploy -http 127.0.0.1:8080   HTTP, for alice and bob
//
// The bearer tokens are "alice-token" and "bob-token".
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/examples/deploy/release"
	"github.com/mcpseal/mcpseal/gosdk"
)

func main() {
	address := flag.String("http", "", "`address` to listen on; empty means stdio")
	flag.Parse()
	// Replicas share a ring instead: mcpseal.NewRing.
	boundary, err := mcpseal.New(mcpseal.Config{Keys: mcpseal.Ephemeral(), Audience: "release.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	server := release.NewServer()
	gosdk.Protect(server, boundary, nil)

	if *address == "" {
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(handler))
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

// verify stands for your token verifier. What matters is the UserID.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}
