package sealtest_test

import (
	"context"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

func TestBoundaryWithFillsInOnlyWhatIsMissing(t *testing.T) {
	filled := sealtest.BoundaryWith(t, tripseal.Config{TTL: time.Minute}).Config()
	if filled.Keys == nil || filled.Audience != "test" || filled.Logger == nil || filled.TTL != time.Minute {
		t.Errorf("%+v", filled)
	}
	keys, logger := tripseal.Ephemeral(), slog.New(slog.NewTextHandler(io.Discard, nil))
	kept := sealtest.BoundaryWith(t, tripseal.Config{Keys: keys, Audience: "mine", Logger: logger}).Config()
	if kept.Keys != tripseal.KeySource(keys) || kept.Audience != "mine" || kept.Logger != logger {
		t.Errorf("%+v", kept)
	}
	format := tripseal.NativeFormat(keys)
	if got := sealtest.BoundaryWith(t, tripseal.Config{Format: format}).Config(); got.Keys != nil || got.Format == nil {
		t.Errorf("%+v", got)
	}
}

// fataled is a testing.TB that records whether Fatal was called.
type fataled struct {
	testing.TB
	ended bool
}

func (f *fataled) Fatal(...any) { f.ended = true; runtime.Goexit() }

func TestAConfigThatIsWrongEndsTheTest(t *testing.T) {
	f := &fataled{TB: t}
	var group sync.WaitGroup
	group.Go(func() { sealtest.BoundaryWith(f, tripseal.Config{MaxRounds: -7}) })
	group.Wait()
	if !f.ended {
		t.Error("it did not end")
	}
}

func TestEventsTellWhyTokensWereRejected(t *testing.T) {
	ctx := t.Context()
	var events sealtest.Events
	boundary := sealtest.BoundaryWith(t, tripseal.Config{Observer: events.Observe})
	request := tripseal.Request{Method: "tools/call", Target: "deploy", Principal: tripseal.User("alice")}
	round, _ := boundary.Open(ctx, request, "")
	state := "step=1"
	token, err := boundary.Seal(ctx, &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	if got := events.Reasons(); len(got) != 0 {
		t.Errorf("before any rejection: %v", got)
	}
	boundary.Open(ctx, request, token)
	boundary.Open(ctx, request, token+"A")
	request.Principal = tripseal.User("bob")
	boundary.Open(ctx, request, token)
	reasons := events.Reasons()
	if len(reasons) != 2 || reasons[0] != tripseal.ReasonMalformed && reasons[0] != tripseal.ReasonForged || reasons[1] != tripseal.ReasonUser {
		t.Error(reasons)
	}
	var ops []tripseal.Op
	for _, event := range events.All() {
		ops = append(ops, event.Op)
	}
	if !slices.Equal(ops, []tripseal.Op{tripseal.OpSeal, tripseal.OpOpen, tripseal.OpOpen, tripseal.OpOpen}) {
		t.Error(ops)
	}
	events.All()[0].Op = "changed"
	if events.All()[0].Op != tripseal.OpSeal {
		t.Error("All returned its own memory")
	}
}

func TestEventsAreRecordedFromManyGoroutines(t *testing.T) {
	var events sealtest.Events
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				events.Observe(context.Background(), tripseal.Event{Op: tripseal.OpOpen, Reason: tripseal.ReasonForged})
				events.All()
			}
		})
	}
	group.Wait()
	if got := len(events.Reasons()); got != 800 {
		t.Errorf("%d events", got)
	}
}
