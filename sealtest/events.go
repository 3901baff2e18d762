package sealtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/mcpseal/mcpseal"
)

// BoundaryWith returns a boundary with this config. If it has neither Keys nor Format
// they are random keys; if it has no Audience that is "test"; if it has no Logger that is
// the test's log.
func BoundaryWith(t testing.TB, config mcpseal.Config) *mcpseal.Boundary {
	t.Helper()
	if config.Keys == nil && config.Format == nil {
		config.Keys = mcpseal.Ephemeral()
	}
	if config.Audience == "" {
		config.Audience = "test"
	}
	if config.Logger == nil {
		config.Logger = Logger(t)
	}
	boundary, err := mcpseal.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return boundary
}

// Events records what a boundary does, for a test that wants to know why a token was
// rejected: no client learns it. The zero value is ready; set Config.Observer to its
// Observe.
type Events struct {
	mu  sync.Mutex
	all []mcpseal.Event
}

// Observe records an event.
func (e *Events) Observe(_ context.Context, event mcpseal.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// All returns the events so far.
func (e *Events) All() []mcpseal.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Reasons returns the reasons of all rejections and failed seals so far, the oldest
// first.
func (e *Events) Reasons() []mcpseal.Reason {
	var reasons []mcpseal.Reason
	for _, event := range e.All() {
		if event.Reason != "" {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
