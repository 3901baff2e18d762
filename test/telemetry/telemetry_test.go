// Package telemetry_test uses otelseal with the SDK of OpenTelemetry and the exporter for
// Prometheus, which the module otelseal does not depend on.
package telemetry_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	seal "github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cmd/tripseal/release"
	"github.com/tripseal/tripseal/gosdk"
	"github.com/tripseal/tripseal/keys"
	"github.com/tripseal/tripseal/otelseal"
	"github.com/tripseal/tripseal/replay"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newObserver(t *testing.T) (*otelseal.Observer, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	must(t, err)
	meters := metric.NewMeterProvider(metric.WithReader(exporter))
	observer, err := otelseal.New(otelseal.Config{MeterProvider: meters})
	must(t, err)
	return observer, registry
}

// reasons returns the reasons in the source of the root module.
func reasons(t *testing.T) (all []seal.Reason) {
	t.Helper()
	source, err := os.ReadFile("../../errors.go")
	must(t, err)
	constant := regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(\w+)"`)
	for _, match := range constant.FindAllStringSubmatch(string(source), -1) {
		all = append(all, seal.Reason(match[1]))
	}
	if len(all) < 20 {
		t.Fatalf("%d reasons found", len(all))
	}
	return all
}

// TestEveryReasonIsALabel checks that every reason is counted under its own name. A reason that is
// missing in the list of otelseal would be counted as _OTHER.
func TestEveryReasonIsALabel(t *testing.T) {
	observer, registry := newObserver(t)
	all := reasons(t)
	for _, reason := range all {
		observer.Observe(t.Context(), seal.Event{Op: seal.OpOpen, Method: "tools/call", Reason: reason})
	}
	counted := make(map[string]bool)
	families, err := registry.Gather()
	must(t, err)
	for _, family := range families {
		for _, series := range family.Metric {
			for _, label := range series.Label {
				if label.GetName() == "error_type" {
					counted[label.GetValue()] = true
				}
			}
		}
	}
	if len(counted) != len(all) || counted["_OTHER"] {
		t.Errorf("%d reasons are counted as %d: %v", len(all), len(counted), counted)
	}
}

type fixedStore struct{}

func (fixedStore) Spend(context.Context, seal.Use) (bool, error) { return true, nil }

// TestTheRulesAndTheBoardNameMetricsThatExist checks deploy/prometheus and deploy/grafana: a query
// for a metric that does not exist is valid, and never raises an alert.
func TestTheRulesAndTheBoardNameMetricsThatExist(t *testing.T) {
	observer, registry := newObserver(t)
	for _, op := range []seal.Op{seal.OpSeal, seal.OpOpen, seal.OpDrop} {
		observer.Observe(t.Context(), seal.Event{Op: op, Method: "tools/call", Format: "ms1.", TokenBytes: 1, StateBytes: 1, Dropped: 1})
	}
	store, err := replay.NewSingleProcess(replay.Config{})
	must(t, err)
	observer.Store(store)
	_, err = observer.Store(fixedStore{}).Spend(t.Context(), seal.Use{})
	must(t, err)
	observer.ObserveKeys(keys.Event{Path: "keys", Next: time.Now().Add(time.Hour)})
	exported := make(map[string]bool) // the names of metrics and of their labels
	families, err := registry.Gather()
	must(t, err)
	for _, family := range families {
		exported[family.GetName()] = true
		for _, series := range family.Metric {
			for _, label := range series.Label {
				exported[label.GetName()] = true
			}
		}
	}

	metricName := regexp.MustCompile(`(?:^|[^\w:])(tripseal_\w+?)(?:_bucket|_sum|_count)?\b`)
	for _, file := range []string{"grafana/tripseal.json", "prometheus/recording.yaml", "prometheus/alerts.yaml"} {
		text, err := os.ReadFile("../../deploy/" + file)
		must(t, err)
		if strings.HasSuffix(file, ".json") && !json.Valid(text) {
			t.Errorf("%s is not JSON", file)
		}
		named := metricName.FindAllStringSubmatch(string(text), -1)
		if len(named) < 5 {
			t.Errorf("%s names only %d metrics", file, len(named))
		}
		for _, match := range named {
			if !exported[match[1]] {
				t.Errorf("%s: nothing exports %s", file, match[1])
			}
		}
	}
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

// TestTheRoundsOfAFlowAreTracesJoinedByItsID uses the middleware of docs/telemetry.md.
func TestTheRoundsOfAFlowAreTracesJoinedByItsID(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("release")
	observer, _ := newObserver(t)
	boundary, err := seal.New(seal.Config{
		Keys: seal.Ephemeral(), Audience: "release.example.com", Observer: observer.Observe,
		Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	server := release.NewServer()
	gosdk.Protect(server, boundary, nil)
	server.AddReceivingMiddleware(traced(tracer))
	answers := map[string]map[string]any{"In which region?": {"name": "eu"}}
	client := mcp.NewClient(&mcp.Implementation{Name: "telemetry", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			content := answers[request.Params.Message]
			if content == nil {
				content = map[string]any{"ok": true}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
	})
	ours, theirs := mcp.NewInMemoryTransports()
	served, err := server.Connect(t.Context(), theirs, nil)
	must(t, err)
	defer served.Close()
	session, err := client.Connect(t.Context(), ours, nil)
	must(t, err)
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "deploy", Arguments: map[string]any{"service": "web", "version": "1"},
	})
	must(t, errors.Join(err, result.GetError()))

	flows, traces := make(map[string]string), make(map[trace.TraceID]bool)
	for _, span := range spans.GetSpans() {
		if len(span.Events) == 0 {
			continue
		}
		traces[span.SpanContext.TraceID()] = true
		for _, attribute := range span.Attributes {
			if attribute.Key == "tripseal.flow.id" {
				for _, event := range span.Events {
					flows[attribute.Value.AsString()] += event.Name + " "
				}
			}
		}
	}
	const want = "tripseal.seal tripseal.open tripseal.seal tripseal.open "
	for flow, events := range flows {
		if events != want || flow == "" || len(flows) != 1 || len(traces) != 3 {
			t.Errorf("%d flows in %d traces: %v", len(flows), len(traces), flows)
		}
	}
	if len(flows) == 0 {
		t.Error("no span has a flow")
	}
}
