package otelseal_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tripseal/tripseal/otelseal"
)

// meter is a Meter for tests. This module must not depend on the SDK, so its tests do not use the
// SDK's Meter. The tests in test/telemetry use the SDK's Meter.
type meter struct {
	noop.Meter
	broken bool // true if every measurement panics

	mu        sync.Mutex
	series    map[string]map[string][]float64 // values by metric and attributes
	callbacks []metric.Callback
}

type provider struct {
	noop.MeterProvider
	meter *meter
}

func (p provider) Meter(string, ...metric.MeterOption) metric.Meter { return p.meter }

func newObserver(t testing.TB, config otelseal.Config) (*otelseal.Observer, *meter) {
	t.Helper()
	m := &meter{series: make(map[string]map[string][]float64)}
	config.MeterProvider = provider{meter: m}
	o, err := otelseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return o, m
}

func (m *meter) keep(name string, value float64, set attribute.Set) {
	if m.broken {
		panic("the instrument is broken")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series[name] == nil {
		m.series[name] = make(map[string][]float64)
	}
	text := text(set.ToSlice())
	m.series[name][text] = append(m.series[name][text], value)
}

// text writes attributes as name=value, separated by spaces.
func text(attrs []attribute.KeyValue) string {
	var all []string
	for _, a := range attrs {
		all = append(all, string(a.Key)+"="+a.Value.String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// of(name) returns the attributes of all series of the metric with this name.
func (m *meter) of(name string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.series[name]))
}

// sum returns the sum of the values of a metric.
func (m *meter) sum(name string) (sum float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, values := range m.series[name] {
		for _, value := range values {
			sum += value
		}
	}
	return sum
}

func (m *meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return &counter{m: m, name: name}, nil
}

func (m *meter) Int64Histogram(name string, _ ...metric.Int64HistogramOption) (metric.Int64Histogram, error) {
	return &intHistogram{m: m, name: name}, nil
}

func (m *meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return &floatHistogram{m: m, name: name}, nil
}

func (m *meter) Int64ObservableGauge(name string, _ ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	return &gauge{name: name}, nil
}

func (m *meter) RegisterCallback(f metric.Callback, _ ...metric.Observable) (metric.Registration, error) {
	m.callbacks = append(m.callbacks, f)
	return noop.Registration{}, nil
}

type counter struct {
	noop.Int64Counter
	m    *meter
	name string
}

func (c *counter) Add(_ context.Context, n int64, options ...metric.AddOption) {
	c.m.keep(c.name, float64(n), metric.NewAddConfig(options).Attributes())
}

type intHistogram struct {
	noop.Int64Histogram
	m    *meter
	name string
}

func (h *intHistogram) Record(_ context.Context, n int64, options ...metric.RecordOption) {
	h.m.keep(h.name, float64(n), metric.NewRecordConfig(options).Attributes())
}

type floatHistogram struct {
	noop.Float64Histogram
	m    *meter
	name string
}

func (h *floatHistogram) Record(_ context.Context, n float64, options ...metric.RecordOption) {
	h.m.keep(h.name, n, metric.NewRecordConfig(options).Attributes())
}

type gauge struct {
	noop.Int64ObservableGauge
	name string
}

// collect returns the values of all gauges.
func (m *meter) collect(t *testing.T) gauges {
	t.Helper()
	found := gauges{values: make(map[string]int64)}
	for _, f := range m.callbacks {
		if err := f(t.Context(), &found); err != nil {
			t.Error(err)
		}
	}
	return found
}

type gauges struct {
	noop.Observer
	values map[string]int64
}

func (g *gauges) ObserveInt64(of metric.Int64Observable, value int64, _ ...metric.ObserveOption) {
	g.values[of.(*gauge).name] = value
}

// span records the attributes and the events that it gets.
type span struct {
	tracenoop.Span
	attrs  []attribute.KeyValue
	names  []string
	events [][]attribute.KeyValue
	asleep bool
}

func (s *span) IsRecording() bool { return !s.asleep }

func (s *span) SetAttributes(attrs ...attribute.KeyValue) { s.attrs = append(s.attrs, attrs...) }

func (s *span) AddEvent(name string, options ...trace.EventOption) {
	config := trace.NewEventConfig(options...)
	s.names, s.events = append(s.names, name), append(s.events, config.Attributes())
}
