package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
)

const audience = "release.example.com"

// replica is a server with its own telemetry, as if it ran in a process of its own.
type replica struct {
	host     string // the address at which the replica serves MCP
	metrics  string // the URL of its metrics
	observer *otelseal.Observer
	tracer   trace.Tracer
	reader   *sdkmetric.ManualReader // reads the metrics from the SDK, without an exporter
	exported buffer                  // the spans, in the form that the exporter writes
	stops    []func()
}

// startReplica starts a replica. All replicas share the file of keys and the store.
func startReplica(name, keysFile string, store tripseal.ReplayStore) (_ *replica, err error) {
	r := &replica{reader: sdkmetric.NewManualReader()}
	defer func() {
		if err != nil {
			r.stop()
		}
	}()
	// The exporters.
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithReader(r.reader))
	spans, err := stdouttrace.New(stdouttrace.WithWriter(&r.exported))
	if err != nil {
		return nil, err
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.instance.id", name))))

	// Make the server and its observer.
	if r.observer, err = otelseal.New(otelseal.Config{MeterProvider: meters}); err != nil {
		return nil, err
	}
	source, err := keys.OpenFile(keysFile, &keys.Options{Observer: r.observer.ObserveKeys})
	if err != nil {
		return nil, err
	}
	r.stops = append(r.stops, func() { source.Close() })
	boundary, err := tripseal.New(tripseal.Config{
		Keys: source, Audience: audience, Replay: r.observer.Store(store), Observer: r.observer.Observe,
	})
	if err != nil {
		return nil, err
	}
	server := release.NewServer()
	protected := gosdk.Protect(server, boundary, nil)
	gosdk.AddPagedTool(protected, &mcp.Tool{Name: "list_versions"}, listVersions, nil)
	r.tracer = tracers.Tracer("release")
	server.AddReceivingMiddleware(traced(r.tracer))
	handler := gosdk.Handler(func(*http.Request) *mcp.Server { return server }, nil)
	if r.host, err = r.serve(auth.RequireBearerToken(verify, nil)(handler)); err != nil {
		return nil, err
	}
	host, err := r.serve(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	r.metrics = "http://" + host + "/metrics"
	return r, err
}

// traced starts a span for each request. Add it after gosdk.Protect: in the SDK, the middleware
// that was added last runs first.
func traced(tracer trace.Tracer) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			ctx, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer))
			defer span.End()
			result, err := next(ctx, method, req)
			if err != nil {
				span.SetStatus(codes.Error, "") // without the error's text, which a handler wrote
			}
			return result, err
		}
	}
}

type listArgs struct {
	Service string `json:"service"`
}

// listVersions returns one page, with one version on it. There are three pages.
func listVersions(_ context.Context, _ *mcp.CallToolRequest, _ listArgs, after *int) ([]string, *int, error) {
	next := 1
	if after != nil {
		next = *after + 1
	}
	version := []string{fmt.Sprintf("1.4.%d", next)}
	if next == 3 {
		return version, nil, nil
	}
	return version, &next, nil
}

// verify accepts every bearer token, and uses it as the name of the user.
func verify(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
	return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
}

// serve serves a handler on a free port of this machine, and returns its address.
func (r *replica) serve(handler http.Handler) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go web.Serve(listener)
	r.stops = append(r.stops, func() { web.Close() })
	return listener.Addr().String(), nil
}

func (r *replica) stop() {
	for _, stop := range r.stops {
		stop()
	}
}

// scrape returns the metrics in the form that a Prometheus server reads.
func (r *replica) scrape(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.metrics, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the metrics have status %s: %s", response.Status, text)
	}
	return string(text), err
}

// span is a span in the form that the exporter writes.
type span struct {
	Name        string
	SpanContext struct{ TraceID string }
	Parent      struct{ SpanID string }
	StartTime   time.Time
	Attributes  []attr
	Events      []struct {
		Name       string
		Attributes []attr
	}
	Resource []attr
}

type attr struct {
	Key   string
	Value struct{ Value any }
}

func (s *span) attribute(of []attr, key string) string {
	for _, a := range of {
		if a.Key == key {
			return fmt.Sprint(a.Value.Value)
		}
	}
	return ""
}

// spans returns all spans that the exporter has written so far.
func (r *replica) spans() (all []span, err error) {
	decoder := json.NewDecoder(bytes.NewReader(r.exported.copy()))
	for {
		var s span
		if err := decoder.Decode(&s); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
}

// buffer is a bytes.Buffer that several goroutines may use.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) copy() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data.Bytes())
}

// writeKeys writes a file with a key that seals now, and a key that begins to seal
// tomorrow.
func writeKeys(path string) error {
	now := time.Now().UTC()
	tomorrow := now.Add(24 * time.Hour)
	text := "tripseal-keys 1\n"
	for _, k := range []struct {
		from  time.Time
		until string
	}{{now.Add(-time.Hour), tomorrow.Add(2 * time.Hour).Format(time.RFC3339)}, {tomorrow, "never"}} {
		key, from := tripseal.GenerateKey(), k.from.Format(time.RFC3339)
		text += fmt.Sprintf("key %s made=%s seals-from=%s opens-until=%s secret=%s\n", key.ID(), from, from, k.until, key.Reveal())
	}
	return os.WriteFile(path, []byte(text+"end\n"), 0o600)
}
