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

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/sealtest"
)

func TestBoundaryWithFillsInOnlyWhatIsMissing(t *testing.T) {
	filled := sealtest.BoundaryWith(t, mcpseal.Config{TTL: time.Minute}).Config()
	if filled.Keys == nil || filled.Audience != "test" || filled.Logger == nil || filled.TTL != time.Minute {
		t.Errorf("%+v", filled)
	}
	keys, logger := mcpseal.Ephemeral(), slog.New(slog.NewTextHandler(io.Discard, nil))
	kept := sealtest.BoundaryWith(t, mcpseal.Config{Keys: keys, Audience: "mine", Logger: logger}).Config()
	if kept.Keys != mcpseal.KeySource(keys) || kept.Audience != "mine" || kept.Logger != logger {
		t.Errorf("%+v", kept)
	}
	format := mcpseal.NativeFormat(keys)
	if got := sealtest.BoundaryWith(t, mcpseal.Config{Format: format}).Config(); got.Keys != nil || got.Format == nil {
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
	group.Go(func() { sealtest.BoundaryWith(f, mcpseal.Config{MaxRounds: -7}) })
	group.Wait()
	if !f.ended {
		t.Error("it did not end")
	}
}

func TestEventsTellWhyTokensWereRejected(t *testing.T) {
	ctx := t.Context()
	var events sealtest.Events
	boundary := sealtest.BoundaryWith(t, mcpseal.Config{Observer: events.Observe})
	request := mcpseal.Request{Method: "tools/call", Target: "deploy", Principal: mcpseal.User("alice")}
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
	request.Principal = mcpseal.User("bob")
	boundary.Open(ctx, request, token)
	reasons := events.Reasons()
	if len(reasons) != 2 || reasons[0] != mcpseal.ReasonMalformed && reasons[0] != mcpseal.ReasonForged || reasons[1] != mcpseal.ReasonUser {
		t.Error(reasons)
	}
	var ops []mcpseal.Op
	for _, event := range events.All() {
		ops = append(ops, event.Op)
	}
	if !slices.Equal(ops, []mcpseal.Op{mcpseal.OpSeal, mcpseal.OpOpen, mcpseal.OpOpen, mcpseal.OpOpen}) {
		t.Error(ops)
	}
	events.All()[0].Op = "changed"
	if events.All()[0].Op != mcpseal.OpSeal {
		t.Error("All returned its own memory")
	}
}

func TestEventsAreRecordedFromManyGoroutines(t *testing.T) {
	var events sealtest.Events
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				events.Observe(context.Background(), mcpseal.Event{Op: mcpseal.OpOpen, Reason: mcpseal.ReasonForged})
				events.All()
			}
		})
	}
	group.Wait()
	if got := len(events.Reasons()); got != 800 {
		t.Errorf("%d events", got)
	}
}
