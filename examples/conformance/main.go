// Conformance is a server for the input-required-result scenarios of the official
// suite. One line protects it, and its handlers check no state by hand:
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
	startOver := flag.Bool("start-over", false, "answer a rejected token with a result that tells the model to start over")
	flag.Parse()
	log.SetFlags(0)

	rejectedText := ""
	if *startOver {
		rejectedText = gosdk.StartOver
	}
	server, err := newServer(mcpseal.Config{Keys: mcpseal.Ephemeral(), Audience: "conformance"}, rejectedText)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	web := &http.Server{Handler: newHandler(server), ReadHeaderTimeout: 10 * time.Second}
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

// newServer returns the suite's server, protected.
func newServer(config mcpseal.Config, rejectedText string) (*mcp.Server, error) {
	boundary, err := mcpseal.New(config)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "mcpseal-conformance", Version: "1.0.0"}, nil)
	gosdk.Protect(server, boundary, &gosdk.Options{
		// The scenario ignore-extra-params sends answers with a first call.
		Unsolicited:  []string{"test_input_required_result_elicitation"},
		RejectedText: rejectedText,
	})
	addScenarios(server)
	return server, nil
}

// newHandler serves the server at /mcp.
func newHandler(server *mcp.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
	return mux
}
