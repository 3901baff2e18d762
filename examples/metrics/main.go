// Metrics is a small server that serves its metrics to Prometheus. The metrics are about the
// boundary, the cursors, the keys and the store of used tokens.
//
//	go run ./examples/metrics -keys keys     MCP on port 8080, metrics on port 9464
//	curl http://127.0.0.1:9464/metrics
//
// Make the file of keys with "tripseal keys new keys". The bearer tokens of the server are
// "alice-token" and "bob-token".
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
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
	"github.com/tripseal/tripseal/replay"
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to serve MCP on")
	metricsAddress := flag.String("metrics", "127.0.0.1:9464", "`address` to serve metrics on; clients must not reach it")
	keysFile := flag.String("keys", "", "`file` of keys; empty means keys that die with this process")
	flag.Parse()
	observer, metrics, err := newTelemetry()
	if err != nil {
		log.Fatal(err)
	}
	config := tripseal.Config{Keys: tripseal.Ephemeral(), Audience: "release.example.com"}
	if *keysFile != "" {
		source, err := keys.OpenFile(*keysFile, &keys.Options{Observer: observer.ObserveKeys})
		if err != nil {
			log.Fatal(err)
		}
		config.Keys = source
	}
	server, err := newServer(config, observer)
	if err != nil {
		log.Fatal(err)
	}
	failed := make(chan error)
	for _, part := range []struct {
		address, path string
		handler       http.Handler
	}{{*address, "/mcp", newHandler(server)}, {*metricsAddress, "/metrics", metrics}} {
		listener, err := net.Listen("tcp", part.address)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("serving http://%s%s\n", listener.Addr(), part.path)
		mux := http.NewServeMux()
		mux.Handle(part.path, part.handler)
		web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- web.Serve(listener) }()
	}
	log.Fatal(<-failed)
}

// newTelemetry returns an observer, and an HTTP handler that serves its metrics to Prometheus.
// To send metrics elsewhere, choose another reader or exporter.
func newTelemetry() (*otelseal.Observer, http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, nil, err
	}
	observer, err := otelseal.New(otelseal.Config{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
	if err != nil {
		return nil, nil, err
	}
	return observer, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// newServer returns a protected server, whose tokens work only once.
func newServer(config tripseal.Config, observer *otelseal.Observer) (*mcp.Server, error) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		return nil, err
	}
	config.Replay, config.Observer = observer.Store(store), observer.Observe
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := release.NewServer() // its two tools, deploy and rollback, ask the user
	protected := gosdk.Protect(server, boundary, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_versions", Description: "List the versions of a service"}, listVersions, nil)
	return server, nil
}

// ListArgs are the arguments of the tool list_versions.
type ListArgs struct {
	Service string `json:"service" jsonschema:"of which service"`
}

// listVersions returns the versions of a service, ten on each of ten pages.
func listVersions(_ context.Context, _ *mcp.CallToolRequest, _ ListArgs, after *int) ([]string, *int, error) {
	const all, size = 100, 10
	start := 0
	if after != nil {
		start = *after
	}
	var page []string
	for n := start; n < start+size; n++ {
		page = append(page, fmt.Sprintf("1.%d.0", n))
	}
	if next := start + size; next < all {
		return page, &next, nil
	}
	return page, nil, nil
}

// newHandler returns an HTTP handler that serves clients with a bearer token.
func newHandler(server *mcp.Server) http.Handler {
	return auth.RequireBearerToken(verify, nil)(gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil))
}

// verify accepts two users. Replace it with your own token verifier.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}
