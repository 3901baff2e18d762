package otelseal

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
)

// Store returns a store that passes every call to the given store, and measures the results
// and the durations of these calls. Pass the returned store to tripseal.Config.Replay. If the
// given store is a [tripseal.NonBlockingStore], so is the returned one, because measuring a
// call does not block it. If the given store has a method Level, as [replay.SingleProcess]
// has, metrics also show how full it is. Store returns nil if the given store is nil.
func (o *Observer) Store(store tripseal.ReplayStore) tripseal.ReplayStore {
	if store == nil {
		return nil
	}
	if leveled, ok := store.(leveled); ok {
		o.levels.add(leveled)
	}
	observed := &observedStore{store, o.spending}
	if cannotBlock(store) {
		return &nonBlockingStore{observedStore: observed}
	}
	return observed
}

// cannotBlock reports whether the store promises that its method Spend cannot block. A boundary
// finds this out in the same way.
func cannotBlock(store tripseal.ReplayStore) (says bool) {
	if s, ok := store.(tripseal.NonBlockingStore); ok {
		quietly(func() { says = s.NonBlocking() == store }) // == panics if the store's type is not comparable
	}
	return says
}

// The results of a call of Spend. They are indexes into storeResults.
const (
	resultFirst = iota
	resultUsed
	resultFull
	resultTimeout
	resultCanceled
	resultError
)

var storeResults = func() (all [][]metric.RecordOption) {
	for _, name := range []string{"first", "used", "full", "timeout", "canceled", "error"} {
		all = append(all, record(attribute.String(attrStoreResult, name)))
	}
	return all
}()

type observedStore struct {
	store tripseal.ReplayStore
	took  metric.Float64Histogram
}

func (s *observedStore) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	start, returned := time.Now(), false
	defer func() { // also runs if the store panics, and does not stop the panic
		took := time.Since(start)
		quietly(func() { s.took.Record(ctx, took.Seconds(), storeResults[resultOf(returned, first, err)]...) })
	}()
	first, err = s.store.Spend(ctx, use)
	returned = true
	return first, err
}

func resultOf(returned, first bool, err error) int {
	switch {
	case !returned:
		return resultError
	case err == nil && first:
		return resultFirst
	case err == nil:
		return resultUsed
	}
	result := resultError
	quietly(func() { // errors.Is can panic: it calls methods of the store's error
		switch {
		case errors.Is(err, replay.ErrFull) || errors.Is(err, replay.ErrOwnerFull):
			result = resultFull
		case errors.Is(err, context.DeadlineExceeded):
			result = resultTimeout
		case errors.Is(err, context.Canceled):
			result = resultCanceled
		}
	})
	return result
}

// nonBlockingStore is an observedStore whose Spend cannot block.
type nonBlockingStore struct{ *observedStore }

// NonBlocking returns s, because s.Spend cannot block: see [tripseal.NonBlockingStore].
func (s *nonBlockingStore) NonBlocking() tripseal.ReplayStore { return s }

// quietly calls f and ignores a panic of f.
func quietly(f func()) {
	defer func() { _ = recover() }()
	f()
}

type leveled interface{ Level() replay.Level }

// levels reports how full the stores are. It calls their method Level when metrics are collected.
// It does not use replay.Config.Observer, because a store with that option counts as a store that
// can block.
type levels struct {
	held, capacity metric.Int64ObservableGauge

	mu     sync.Mutex
	stores []leveled
}

func (l *levels) add(store leveled) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stores = append(l.stores, store)
}

// collect reports only the level of the fullest store, because that store is the first to
// refuse tokens.
func (l *levels) collect(to metric.Observer) {
	l.mu.Lock()
	stores := slices.Clone(l.stores)
	l.mu.Unlock()
	var fullest replay.Level
	for _, store := range stores {
		level := store.Level()
		if fullest.Capacity == 0 || float64(level.Held)/float64(level.Capacity) > float64(fullest.Held)/float64(fullest.Capacity) {
			fullest = level
		}
	}
	if len(stores) > 0 {
		to.ObserveInt64(l.held, int64(fullest.Held))
		to.ObserveInt64(l.capacity, int64(fullest.Capacity))
	}
}
