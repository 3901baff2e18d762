package otelseal

import (
	"context"
	"errors"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
)

// Store returns a store that passes every call to the given store, and measures the results
// and the durations of these calls. Pass the returned store to tripseal.Config.Replay. If the
// given store is a [tripseal.NonBlockingStore], so is the returned one, because measuring a
// call does not block it. If the given store has a method Level, as [replay.SingleProcess]
// has, metrics also show how full it is; call Store for one such store only. Store returns nil if
// the given store is nil.
func (o *Observer) Store(store tripseal.ReplayStore) tripseal.ReplayStore {
	if store == nil {
		return nil
	}
	if leveled, ok := store.(leveled); ok {
		o.level.Store(&leveled)
	}
	observed := &observedStore{store, o}
	if s, ok := store.(tripseal.NonBlockingStore); ok {
		cannot := false
		quietly(func() { cannot = s.NonBlocking() == store }) // as a boundary asks; == panics if the type is not comparable
		if cannot {
			return &nonBlockingStore{observed}
		}
	}
	return observed
}

type observedStore struct {
	store    tripseal.ReplayStore
	observer *Observer
}

func (s *observedStore) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	start, returned := time.Now(), false
	defer func() { // also runs if the store panics, and does not stop the panic
		took, result := time.Since(start), "error"
		quietly(func() { // errors.Is can panic: it calls methods of the store's error
			switch {
			case !returned:
			case err == nil && first:
				result = "first"
			case err == nil:
				result = "used"
			case errors.Is(err, replay.ErrFull) || errors.Is(err, replay.ErrOwnerFull):
				result = "full"
			case errors.Is(err, context.DeadlineExceeded):
				result = "timeout"
			case errors.Is(err, context.Canceled):
				result = "canceled"
			}
		})
		quietly(func() {
			s.observer.spending.Record(ctx, took.Seconds(), s.observer.series.of(labels{storeResult: result}).record...)
		})
	}()
	first, err = s.store.Spend(ctx, use)
	returned = true
	return first, err
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
