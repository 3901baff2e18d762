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
	return &observedStore{store, o}
}

type leveled interface{ Level() replay.Level }

type observedStore struct {
	store    tripseal.ReplayStore
	observer *Observer
}

// NonBlocking returns s if the store that s observes cannot block: see [tripseal.NonBlockingStore].
func (s *observedStore) NonBlocking() tripseal.ReplayStore {
	if inner, ok := s.store.(tripseal.NonBlockingStore); ok && inner.NonBlocking() == s.store {
		return s
	}
	return nil
}

func (s *observedStore) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	start, result := time.Now(), "error"
	defer func() { // also runs if the store panics, and does not stop the panic
		tripseal.Guard(func() error { // measuring must not change the answer
			s.observer.spending.Record(ctx, time.Since(start).Seconds(), s.observer.series.of(labels{storeResult: result}).record...)
			return nil
		})
	}()
	first, err = s.store.Spend(ctx, use)
	switch {
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
	return first, err
}
