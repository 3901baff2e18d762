// Deploy is a small server to start from: two tools that ask before they act,
// protected with one line, over stdio or HTTP with bearer tokens.
//
//	go run ./examples/deploy                        stdio, for one client
//	go run ./examples/deploy -http 127.0.0.1:8080   HTTP, for alice and bob
//	go run ./examples/deploy -http … -keys keys     one of several replicas
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
	"github.com/mcpseal/mcpseal/cmd/mcpseal/release"
	"github.com/mcpseal/mcpseal/gosdk"
	"github.com/mcpseal/mcpseal/keys"
)

func main() {
	address := flag.String("http", "", "`address` to listen on; empty means stdio")
	keysFile := flag.String("keys", "", "`file` of keys that all replicas share; empty means keys that die with this process")
	flag.Parse()
	config := mcpseal.Config{Keys: mcpseal.Ephemeral(), Audience: "release.example.com"}
	if *keysFile != "" {
		source, err := keys.OpenFile(*keysFile, nil)
		if err != nil {
			log.Fatal(err)
		}
		config.Keys = source
	}
	server, err := newServer(config)
	if err != nil {
		log.Fatal(err)
	}
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
	web := &http.Server{Handler: newHandler(server), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(web.Serve(listener))
}

// newServer returns the protected server.
func newServer(config mcpseal.Config) (*mcp.Server, error) {
	boundary, err := mcpseal.New(config)
	if err != nil {
		return nil, err
	}
	server := release.NewServer()
	gosdk.Protect(server, boundary, nil)
	return server, nil
}

// newHandler serves the server at /mcp, to clients with a bearer token.
func newHandler(server *mcp.Server) http.Handler {
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", auth.RequireBearerToken(verify, nil)(handler))
	return mux
}

// verify is a placeholder for your token verifier. It must set the UserID.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}
