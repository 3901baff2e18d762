package proxycmd

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/tripseal/tripseal/otelseal"
)

// proxyMetrics has the metrics of a proxy: the metrics of otelseal, and the duration of HTTP
// requests.
type proxyMetrics struct {
	*otelseal.Observer
	handler  http.Handler // serves the metrics to Prometheus
	requests metric.Float64Histogram
}

// newProxyMetrics makes metrics that may name the listed tools. They name no other tools.
func newProxyMetrics(tools []string) (*proxyMetrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	m := &proxyMetrics{handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})}
	if m.Observer, err = otelseal.New(otelseal.Config{MeterProvider: provider, Targets: append([]string{}, tools...)}); err != nil {
		return nil, err
	}
	m.requests, err = provider.Meter("github.com/tripseal/tripseal/cmd/tripseal").Float64Histogram("http.server.request.duration",
		metric.WithUnit("s"), metric.WithDescription("How long requests took, by status."),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60))
	return m, err
}

// count counts a request. Its attributes have only a few possible values, whatever clients and
// the server send, so the number of time series stays small.
func (m *proxyMetrics) count(ctx context.Context, r record) {
	method, status := "_OTHER", 0
	switch r.HTTPMethod {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
		method = r.HTTPMethod
	}
	if http.StatusText(r.Status) != "" {
		status = r.Status
	}
	m.requests.Record(ctx, r.Duration.Seconds(), metric.WithAttributeSet(attribute.NewSet(
		attribute.String("http.request.method", method), attribute.Int("http.response.status_code", status))))
}
