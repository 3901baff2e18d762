package sealtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/mcpseal/mcpseal"
)

// BoundaryWith returns a boundary with this config. If the config has neither Keys nor
// Format, the boundary gets random keys. The default Audience is "test", and the default
// Logger is the test's log. Use BoundaryWith in a test that needs a setting, such as a
// short TTL or an observer.
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

// Events records the events of a boundary. Use it in a test that must know why a token was
// rejected, because no client learns that. The zero value is ready to use: set
// Config.Observer to its method Observe.
type Events struct {
	mu  sync.Mutex
	all []mcpseal.Event
}

// Observe records an event. Use it as Config.Observer.
func (e *Events) Observe(_ context.Context, event mcpseal.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// All returns all events recorded so far, the oldest first. Use it to look at more than
// the reasons.
func (e *Events) All() []mcpseal.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Reasons returns the reasons why tokens were rejected or states were not sealed, the
// oldest reason first. Compare them with the rejections that your test expects.
func (e *Events) Reasons() []mcpseal.Reason {
	var reasons []mcpseal.Reason
	for _, event := range e.All() {
		if event.Reason != "" {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
