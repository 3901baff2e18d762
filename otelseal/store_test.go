package otelseal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/otelseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/sealtest"
)

func newStore(t *testing.T, config replay.Config) *replay.SingleProcess {
	t.Helper()
	store, err := replay.NewSingleProcess(config)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// storeFunc is a store that can block.
type storeFunc func(ctx context.Context) (bool, error)

func (f storeFunc) Spend(ctx context.Context, _ tripseal.Use) (bool, error) { return f(ctx) }

// blocking is a wrapper of a store. It has no method NonBlocking, so it counts as a store that can
// block.
type blocking struct{ tripseal.ReplayStore }

func TestAnObservedStoreIsStillAStore(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	t.Run("NonBlocking", func(t *testing.T) { sealtest.TestReplayStore(t, o.Store(newStore(t, replay.Config{}))) })
	t.Run("Blocking", func(t *testing.T) { sealtest.TestReplayStore(t, o.Store(blocking{newStore(t, replay.Config{})})) })
	if got := m.of("tripseal.store.spend.duration"); !slices.Contains(got, "tripseal.store.result=first") || !slices.Contains(got, "tripseal.store.result=used") {
		t.Errorf("%q", got)
	}
}

func TestAnObservedStoreCanBlockIfItsStoreCan(t *testing.T) {
	o, _ := newObserver(t, otelseal.Config{})
	inner := newStore(t, replay.Config{})
	for _, c := range []struct {
		name  string
		store tripseal.ReplayStore
		want  bool
	}{
		{"in memory", inner, true},
		{"a function", storeFunc(func(context.Context) (bool, error) { return true, nil }), false},
		{"a wrapper that embeds", struct{ *replay.SingleProcess }{inner}, false},
		{"observed twice", o.Store(inner), true},
	} {
		observed := o.Store(c.store)
		if got := observed.(tripseal.NonBlockingStore).NonBlocking() == observed; got != c.want {
			t.Errorf("%s: it says that it cannot block: %v", c.name, got)
		}
	}
	if o.Store(nil) != nil {
		t.Error("no store became a store: every token would have single use")
	}
}

func TestAnswersOfAStoreAreCountedAndNotChanged(t *testing.T) {
	failure := errors.New("a secret")
	for _, c := range []struct {
		first bool
		err   error
		want  string
	}{
		{true, nil, "first"},
		{false, nil, "used"},
		{true, failure, "error"}, // a contradiction; the boundary decides what it means
		{false, failure, "error"},
		{false, replay.ErrFull, "full"},
		{false, fmt.Errorf("wrapped: %w", replay.ErrOwnerFull), "full"},
		{false, context.Canceled, "canceled"},
		{false, context.DeadlineExceeded, "timeout"},
	} {
		for _, broken := range []bool{false, true} {
			o, m := newObserver(t, otelseal.Config{})
			m.broken = broken
			store := o.Store(storeFunc(func(context.Context) (bool, error) { return c.first, c.err }))
			if first, err := store.Spend(t.Context(), tripseal.Use{}); first != c.first || err != c.err {
				t.Errorf("%v, %v became %v, %v", c.first, c.err, first, err)
			}
			want := []string{"tripseal.store.result=" + c.want}
			if got := m.of("tripseal.store.spend.duration"); !broken && !slices.Equal(got, want) {
				t.Errorf("%v, %v is counted as %q", c.first, c.err, got)
			}
		}
	}
}

func TestAPanicOfAStoreGoesOn(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	defer func() {
		if got := recover(); got != "a secret" {
			t.Errorf("the panic became %v", got)
		}
		if got := m.of("tripseal.store.spend.duration"); !slices.Equal(got, []string{"tripseal.store.result=error"}) {
			t.Errorf("counted as %q", got)
		}
	}()
	o.Store(storeFunc(func(context.Context) (bool, error) { panic("a secret") })).Spend(t.Context(), tripseal.Use{})
}

func TestTheLevelOfTheStoreInMemoryIsReported(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	if got := m.collect(t).values; len(got) != 0 {
		t.Errorf("without a store: %v", got)
	}
	o.Store(storeFunc(func(context.Context) (bool, error) { return true, nil }))
	if got := m.collect(t).values; len(got) != 0 {
		t.Errorf("a store without a level: %v", got)
	}
	small := o.Store(newStore(t, replay.Config{Capacity: 20}))
	use := tripseal.Use{Round: 1, Issued: time.Now(), Until: time.Now().Add(time.Hour)}
	if _, err := small.Spend(t.Context(), use); err != nil {
		t.Fatal(err)
	}
	if got := m.collect(t).values; got["tripseal.store.held"] != 1 || got["tripseal.store.capacity"] != 20 {
		t.Errorf("%v", got)
	}
}

// TestABoundaryWithBrokenMetricsStillDecides checks that a boundary accepts and rejects the same
// tokens if its telemetry fails.
func TestABoundaryWithBrokenMetricsStillDecides(t *testing.T) {
	o, m := newObserver(t, otelseal.Config{})
	m.broken = true
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "release.example.com", Observer: o.Observe, Replay: o.Store(newStore(t, replay.Config{})),
	})
	if err != nil {
		t.Fatal(err)
	}
	request := tripseal.Request{Method: "tools/call", Target: "deploy", Arguments: []byte(`{}`)}
	round, err := boundary.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	state := "state"
	token, err := boundary.Seal(t.Context(), &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := boundary.Open(t.Context(), request, token); err != nil {
		t.Error(err)
	}
	if _, err := boundary.Open(t.Context(), request, token); !errors.Is(err, tripseal.ErrRejected) {
		t.Errorf("a used token: %v", err)
	}
	if _, err := boundary.Open(t.Context(), request, strings.ToUpper(token)); !errors.Is(err, tripseal.ErrRejected) {
		t.Errorf("a forged token: %v", err)
	}
}
