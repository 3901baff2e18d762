package otelseal

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/tripseal/tripseal"
)

// Config has the settings of an [Observer]. [New] copies it. The zero value is enough for a
// program that has set the global meter provider.
type Config struct {
	// MeterProvider makes the metrics. Nil means the global provider, otel.GetMeterProvider().
	MeterProvider metric.MeterProvider
	// Targets has the targets that metrics may name, written as in [tripseal.Event].Target: names of
	// tools and prompts, schemes such as "file:", and kinds of handles. Metrics show any other target
	// as "_OTHER", and every new one once 600 series name a target. Nil means all targets. If the
	// list is empty but not nil, neither metrics nor spans show a target.
	Targets []string
}

// Observer reports to OpenTelemetry. It is safe for concurrent use. Make one with [New] when the program starts.
type Observer struct {
	series series

	operations, dropped, lateKeys, revokedKeys metric.Int64Counter
	duration, spending                         metric.Float64Histogram
	tokenSize, stateSize                       metric.Int64Histogram

	files files
	level atomic.Pointer[leveled]
}

var (
	// The first bounds are small, because opening a token takes microseconds. The last are large,
	// because a codec or a store may have to ask another machine.
	secondBuckets = metric.WithExplicitBucketBoundaries(.00001, .000025, .0001, .0005, .001, .005, .01, .05, .1, .5, 1, 2.5)
	byteBuckets   = metric.WithExplicitBucketBoundaries(256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
)

// New makes an Observer and its metrics. Make only one in a program, because the gauges of two
// observers would overwrite each other.
func New(config Config) (*Observer, error) {
	provider := cmp.Or(config.MeterProvider, otel.GetMeterProvider())
	o := &Observer{series: series{made: make(map[labels]*options)}, files: files{last: make(map[string]file)}}
	if config.Targets != nil {
		o.series.allowed = make(map[string]bool)
	}
	for _, target := range config.Targets {
		o.series.allowed[tripseal.PlainText(target)] = true // events have their targets in this form
	}
	return o, o.makeMetrics(provider.Meter("github.com/tripseal/tripseal/otelseal"))
}

func (o *Observer) makeMetrics(meter metric.Meter) error {
	var errs []error
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), secondBuckets)
		errs = append(errs, err)
		return h
	}
	bytes := func(name, description string) metric.Int64Histogram {
		h, err := meter.Int64Histogram(name, metric.WithUnit("By"), metric.WithDescription(description), byteBuckets)
		errs = append(errs, err)
		return h
	}
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	o.operations = counter("tripseal.operations", "{operation}", "Tokens, cursors and handles that were sealed, opened or rejected.")
	o.duration = seconds("tripseal.operation.duration", "How long it took to seal, open or reject a token, cursor or handle.")
	o.tokenSize = bytes("tripseal.token.size", "Size of the tokens, cursors and handles that were sealed or opened.")
	o.stateSize = bytes("tripseal.state.size", "Size of the states that were sealed or opened.")
	o.dropped = counter("tripseal.answers.dropped", "{answer}", "Answers that no question asked for, or that were incomplete.")
	o.spending = seconds("tripseal.store.spend.duration", "How long the store of used tokens took to answer.")
	o.lateKeys = counter("tripseal.keys.late", "{key}", "Keys that arrived after they should have begun to seal.")
	o.revokedKeys = counter("tripseal.keys.revoked", "{key}", "Keys that left the file while they still opened tokens.")
	held := gauge("tripseal.store.held", "{token}", "Used tokens that the store remembers.")
	capacity := gauge("tripseal.store.capacity", "{token}", "Used tokens that the store can remember.")
	opening := gauge("tripseal.keys.opening", "{key}", "Keys that open tokens now.")
	unusable := gauge("tripseal.keys.unusable", "{file}", "Files of keys whose present version cannot be used.")
	since := gauge("tripseal.keys.sealing_since.timestamp", "s", "Unix time at which this process began to seal with the present key.")
	next := gauge("tripseal.keys.next_change.timestamp", "s", "Unix time at which a key begins to seal or stops opening.")
	_, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		return tripseal.Guard(func() error {
			if keys, known := o.files.sum(); known {
				to.ObserveInt64(opening, int64(keys.opening))
				to.ObserveInt64(unusable, int64(keys.unusable))
				to.ObserveInt64(since, keys.since.Unix())
				if !keys.next.IsZero() {
					to.ObserveInt64(next, keys.next.Unix())
				}
			}
			if store := o.level.Load(); store != nil { // asked here, because a store with an observer counts as one that can block
				level := (*store).Level()
				to.ObserveInt64(held, int64(level.Held))
				to.ObserveInt64(capacity, int64(level.Capacity))
			}
			return nil
		})
	}, opening, unusable, since, next, held, capacity)
	return errors.Join(append(errs, err)...)
}
