package otelseal

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/tripseal/tripseal"
)

// Config has the settings of an [Observer]. [New] copies it. The zero value is enough for a
// program that has set the global meter provider.
type Config struct {
	// MeterProvider makes the metrics. Nil means the global provider, otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
	// Targets is a list of the targets that metrics may name, written as in [tripseal.Event].Target:
	// names of tools and prompts, schemes of resources, such as "file:", and kinds of handles.
	// Metrics show any other target as "_OTHER". Nil means that metrics may name every target. Once 600 series name a
	// target, new series show "_OTHER" instead. This limit applies with a list and without one. If
	// the list is empty but not nil, neither metrics nor spans show a target.
	Targets []string
}

// Observer reports to OpenTelemetry. It is safe for concurrent use. Make one with [New]
// when the program starts.
type Observer struct {
	labels *labels

	operations, dropped   metric.Int64Counter
	duration              metric.Float64Histogram
	tokenSize, stateSize  metric.Int64Histogram
	spending              metric.Float64Histogram
	lateKeys, revokedKeys metric.Int64Counter

	files  files
	levels levels
}

const scope = "github.com/tripseal/tripseal/otelseal"

var (
	// The first bounds are small, because opening a token takes microseconds. The last are large,
	// because a codec or a store may have to ask another machine.
	secondBuckets = []float64{.00001, .000025, .0001, .0005, .001, .005, .01, .05, .1, .5, 1, 2.5}
	byteBuckets   = []float64{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}
)

// New makes an Observer and its metrics. Make only one in a program, because the gauges of two
// observers would overwrite each other.
func New(config Config) (*Observer, error) {
	provider := config.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m := maker{meter: provider.Meter(scope)}
	o := &Observer{
		labels:      newLabels(config.Targets),
		operations:  m.counter("tripseal.operations", "{operation}", "Tokens, cursors and handles that were sealed, opened or rejected."),
		duration:    m.seconds("tripseal.operation.duration", "How long it took to seal, open or reject a token, cursor or handle."),
		tokenSize:   m.bytes("tripseal.token.size", "Size of the tokens, cursors and handles that were sealed or opened."),
		stateSize:   m.bytes("tripseal.state.size", "Size of the states that were sealed or opened."),
		dropped:     m.counter("tripseal.answers.dropped", "{answer}", "Answers that were dropped because no question asked for them, or because they were incomplete."),
		spending:    m.seconds("tripseal.store.spend.duration", "How long the store of used tokens took to answer."),
		lateKeys:    m.counter("tripseal.keys.late", "{key}", "Keys that arrived after they should have begun to seal."),
		revokedKeys: m.counter("tripseal.keys.revoked", "{key}", "Keys that were revoked while they still opened tokens."),
	}
	o.files.opening = m.gauge("tripseal.keys.opening", "{key}", "Keys that open tokens now.")
	o.files.unusable = m.gauge("tripseal.keys.unusable", "{file}", "Files of keys whose present version cannot be used.")
	o.files.sealingSince = m.gauge("tripseal.keys.sealing_since.timestamp", "s", "Unix time at which this process began to seal with the present key.")
	o.files.nextChange = m.gauge("tripseal.keys.next_change.timestamp", "s", "Unix time at which a key begins to seal or stops opening.")
	o.levels.held = m.gauge("tripseal.store.held", "{token}", "Used tokens that the store remembers.")
	o.levels.capacity = m.gauge("tripseal.store.capacity", "{token}", "Used tokens that the store can remember.")
	m.callback(o.files.collect, o.files.opening, o.files.unusable, o.files.sealingSince, o.files.nextChange)
	m.callback(o.levels.collect, o.levels.held, o.levels.capacity)
	if err := errors.Join(m.errs...); err != nil {
		return nil, err
	}
	return o, nil
}

// maker makes OpenTelemetry instruments, and collects the errors that occur.
type maker struct {
	meter metric.Meter
	errs  []error
}

func (m *maker) counter(name, unit, description string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) seconds(name, description string) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(secondBuckets...))
	m.errs = append(m.errs, err)
	return h
}

func (m *maker) bytes(name, description string) metric.Int64Histogram {
	h, err := m.meter.Int64Histogram(name, metric.WithUnit("By"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(byteBuckets...))
	m.errs = append(m.errs, err)
	return h
}

func (m *maker) gauge(name, unit, description string) metric.Int64ObservableGauge {
	g, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
	m.errs = append(m.errs, err)
	return g
}

// callback registers the function collect, which reports the values of the gauges each time
// metrics are collected.
func (m *maker) callback(collect func(metric.Observer), gauges ...metric.Observable) {
	_, err := m.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		return tripseal.Guard(func() error { collect(to); return nil })
	}, gauges...)
	m.errs = append(m.errs, err)
}
