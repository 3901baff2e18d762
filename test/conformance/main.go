// Conformance is a server that the official conformance suite tests with its
// input-required-result scenarios. It runs on the official SDK with gosdk.Protect, on mcp-go
// with mcpgo.Handler, or on the official SDK behind a door of package wire. One line of code
// protects the server, and its handlers contain no code that checks a state. To run it:
//
//	go run ./test/conformance -http 127.0.0.1:8080
//	go run ./test/conformance -http 127.0.0.1:8080 -sdk mcp-go
//	go run ./test/conformance -http 127.0.0.1:8080 -sdk go-sdk-door
//
// With the flag -unprotected the server runs without that line of code, and the scenario
// input-required-result-tampered-state fails.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/adapter"
	"github.com/tripseal/tripseal/wire"
)

func main() {
	s := settings{config: tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "conformance"}}
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on; port 0 chooses one")
	flag.StringVar(&s.sdk, "sdk", "go-sdk", "`name` of the SDK: go-sdk, which is the official one, mcp-go, or go-sdk-door")
	flag.BoolVar(&s.startOver, "start-over", false, "answer a rejected token with a result that tells the model to start over")
	flag.BoolVar(&s.unprotected, "unprotected", false, "leave tripseal out, to see which scenarios notice")
	flag.DurationVar(&s.config.TTL, "ttl", 0, "lifetime of a state; 0 means 10 minutes")
	flag.Parse()
	log.SetFlags(0)

	handler, err := newHandler(s)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		<-ctx.Done()
		web.Close()
	}()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

// settings holds the values of the flags.
type settings struct {
	sdk         string
	config      tripseal.Config
	startOver   bool
	unprotected bool
	pageSize    int // of lists; 0 means what the SDK takes
}

// userHeader names the user of a request. A real server would verify the user.
const userHeader = "X-User"

// unsolicited has the names of the tools that accept answers to questions that they did not
// ask. The scenario ignore-extra-params requires this, because it sends answers with the first
// call.
var unsolicited = []string{prefix + "elicitation"}

// The values of -sdk. The last is the official SDK without gosdk.Protect, behind a door.
const (
	officialSDK  = "go-sdk"
	mcpgoSDK     = "mcp-go"
	officialDoor = "go-sdk-door"
)

// newHandler returns an HTTP handler that serves the server at /mcp.
func newHandler(s settings) (http.Handler, error) {
	engine, err := newEngine(s)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	switch s.sdk {
	case officialSDK, officialDoor:
		server, protected, err := newServer(s)
		if err != nil {
			return nil, err
		}
		mux.Handle("/mcp", sdkHandler(server, protected, engine))
	case mcpgoSDK:
		mux.Handle("/mcp", mcpgoHandler(newMCPGoServer(s), engine))
	default:
		return nil, fmt.Errorf("-sdk %q is unknown: write %s, %s or %s", s.sdk, officialSDK, mcpgoSDK, officialDoor)
	}
	return mux, nil
}

// newEngine returns the engine of the server's door, or nil if it has none.
func newEngine(s settings) (*wire.Engine, error) {
	if s.unprotected || s.sdk == officialSDK {
		return nil, nil
	}
	boundary, err := tripseal.New(s.config)
	if err != nil {
		return nil, err
	}
	config := wire.Config{Boundary: boundary, Unsolicited: unsolicited, Logger: s.config.Logger}
	if s.startOver {
		config.RejectedText = adapter.StartOver
	}
	return wire.New(config)
}

var doorOptions = wire.Options{
	AllowAnonymous: true,
	User:           func(r *http.Request) (string, error) { return r.Header.Get(userHeader), nil },
}
