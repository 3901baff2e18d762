// Production is a server with everything around it: keys in a file that all replicas share, used
// tokens in Redis, users with access tokens, metrics for Prometheus, and an orderly end.
//
//	tripseal keys new keys
//	go run ./examples/production -keys keys -redis 127.0.0.1:6379
//	curl http://127.0.0.1:9464/metrics
//
// The access tokens are "alice-token" and "bob-token".
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/replay/redisreplay"
)

func main() {
	address := flag.String("http", "127.0.0.1:8080", "`address` to serve MCP on")
	metricsAddress := flag.String("metrics", "127.0.0.1:9464", "`address` to serve metrics on; clients must not reach it")
	keysFile := flag.String("keys", "", "`file` of keys that all replicas share (required)")
	redisAddress := flag.String("redis", "", "`address` of the Redis that all replicas share; empty for one replica")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address, *metricsAddress, *keysFile, *redisAddress); err != nil {
		log.Fatal(err)
	}
}

// serve serves MCP and metrics until the context ends.
func serve(ctx context.Context, address, metricsAddress, keysFile, redisAddress string) error {
	observer, metrics, err := newTelemetry()
	if err != nil {
		return err
	}
	source, err := keys.OpenFile(keysFile, &keys.Options{Observer: observer.ObserveKeys})
	if err != nil {
		return err
	}
	defer source.Close()
	store, err := newStore(ctx, redisAddress)
	if err != nil {
		return err
	}
	server, err := newServer(tripseal.Config{
		Keys: source, Audience: "release.example.com", Replay: observer.Store(store), Observer: observer.Observe,
	})
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	for _, part := range []struct {
		address, path string
		handler       http.Handler
	}{{address, "/mcp", newHandler(server)}, {metricsAddress, "/metrics", metrics}} {
		listener, err := net.Listen("tcp", part.address)
		if err != nil {
			return err
		}
		fmt.Printf("serving http://%s%s\n", listener.Addr(), part.path)
		mux := http.NewServeMux()
		mux.Handle(part.path, part.handler)
		web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- web.Serve(listener) }()
		defer end(web)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// end lets running calls finish, but does not wait for them forever.
func end(web *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	web.Shutdown(ctx)
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

// newStore returns the store of used tokens, so that each token works only once.
func newStore(ctx context.Context, redisAddress string) (tripseal.ReplayStore, error) {
	if redisAddress == "" {
		return replay.NewSingleProcess(replay.Config{})
	}
	client := redis.NewClient(&redis.Options{
		Addr:                  redisAddress,
		ContextTimeoutEnabled: true, // New refuses a client without it
	})
	return redisreplay.New(ctx, client, redisreplay.Config{})
}

// newServer returns the protected server.
func newServer(config tripseal.Config) (*gosdk.Server, error) {
	boundary, err := tripseal.New(config)
	if err != nil {
		return nil, err
	}
	server := release.NewServer() // your server; the tools of this one ask the user
	return gosdk.Protect(server, boundary, nil), nil
}

// newHandler returns an HTTP handler that serves clients with a bearer token.
func newHandler(server *gosdk.Server) http.Handler {
	return auth.RequireBearerToken(verify, nil)(server.Handler(nil))
}

// verify accepts two users. Replace it with your own token verifier.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	user, ok := strings.CutSuffix(token, "-token")
	if !ok || user != "alice" && user != "bob" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
}
