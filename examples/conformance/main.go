// Conformance serves what the official suite's input-required-result scenarios
// ask for, behind one line of protection and without any checks by hand:
//
//	go run ./examples/conformance -http 127.0.0.1:8080
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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/gosdk"
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to listen on; port 0 chooses one")
	flag.Parse()
	log.SetFlags(0)

	handler, err := newHandler(mcpseal.Ephemeral())
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

// newHandler serves the suite's server at /mcp.
func newHandler(keys mcpseal.KeySource) (http.Handler, error) {
	boundary, err := mcpseal.New(mcpseal.Config{Keys: keys, Audience: "conformance"})
	if err != nil {
		return nil, err
	}
	server := newServer()
	gosdk.Protect(server, boundary, &gosdk.Options{
		// The scenario ignore-extra-params sends answers with a first call.
		Unsolicited: []string{"test_input_required_result_elicitation"},
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
	return mux, nil
}
