// Deploy is a small example server; copy it to start your own. It has two tools that ask the
// user before they act, and one line of code protects them. It serves clients over stdio, or
// over HTTP with bearer tokens.
//
//	go run ./examples/deploy                        stdio, for one client
//	go run ./examples/deploy -http 127.0.0.1:8080   HTTP, for alice and bob
//	go run ./examples/deploy -http … -keys keys     one of several replicas
//	go run ./examples/deploy -sdk mcp-go            on mcp-go instead of the official SDK
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

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
)

func main() {
	address := flag.String("http", "", "`address` to listen on; empty means stdio")
	keysFile := flag.String("keys", "", "`file` of keys that all replicas share; empty means keys that die with this process")
	sdk := flag.String("sdk", "go-sdk", "`name` of the SDK: go-sdk, which is the official one, or mcp-go")
	ttl := flag.Duration("ttl", 0, "lifetime of a state; 0 means 10 minutes")
	unprotected := flag.Bool("unprotected", false, "leave tripseal out, to see which attacks get through; only with the official SDK")
	flag.Parse()
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com", TTL: *ttl}
	if *keysFile != "" {
		source, err := keys.OpenFile(*keysFile, nil)
		if err != nil {
			log.Fatal(err)
		}
		config.Keys = source
	}
	if *unprotected {
		*sdk = "unprotected"
	}
	handler, stdio, err := start(*sdk, config)
	if err != nil {
		log.Fatal(err)
	}
	if *address == "" {
		if err := stdio(); err != nil {
			log.Fatal(err)
		}
		return
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

// start builds the server with the named SDK. It returns two ways to serve it: an HTTP
// handler, and a function that serves over stdio.
func start(sdk string, config tripseal.Config) (handler http.Handler, stdio func() error, err error) {
	switch sdk {
	case "unprotected":
		server := release.NewServer()
		return newHandler(server), func() error { return server.Run(context.Background(), &mcp.StdioTransport{}) }, nil
	case "go-sdk":
		server, err := newServer(config)
		if err != nil {
			return nil, nil, err
		}
		return newHandler(server), func() error { return server.Run(context.Background(), &mcp.StdioTransport{}) }, nil
	case "mcp-go":
		server, err := newMCPGoServer(config)
		if err != nil {
			return nil, nil, err
		}
		return newMCPGoHandler(server), func() error { return serveMCPGoStdio(server) }, nil
	}
	return nil, nil, fmt.Errorf("-sdk %q is unknown: write go-sdk or mcp-go", sdk)
}

// newServer returns the protected server, built with the official SDK.
func newServer(config tripseal.Config) (*mcp.Server, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := release.NewServer()
	gosdk.Protect(server, boundary, nil)
	return server, nil
}

// newHandler returns an HTTP handler that serves the server at /mcp, to clients with a bearer
// token.
func newHandler(server *mcp.Server) http.Handler {
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(handler))
	return mux
}

func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := userOf(token)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}

// userOf returns the user of a bearer token. ok is false if the token is invalid. Replace
// userOf with your own token verifier.
func userOf(token string) (user string, ok bool) {
	user, ok = strings.CutSuffix(token, "-token")
	return user, ok && (user == "alice" || user == "bob")
}
