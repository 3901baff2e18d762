package sealtest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/tripseal/tripseal"
)

// BoundaryWith returns a boundary with this config. If the config has neither Keys nor
// Format, the boundary gets random keys. The default Audience is "test", and the default
// Logger is the test's log. Use BoundaryWith in a test that needs a setting, such as a
// short TTL or an observer.
func BoundaryWith(t testing.TB, config tripseal.Config) *tripseal.Boundary {
	t.Helper()
	if config.Keys == nil && config.Format == nil {
		config.Keys = tripseal.Ephemeral()
	}
	if config.Audience == "" {
		config.Audience = "test"
	}
	if config.Logger == nil {
		config.Logger = Logger(t)
	}
	boundary, err := tripseal.New(config)
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
	all []tripseal.Event
}

// Observe records an event. Use it as Config.Observer.
func (e *Events) Observe(_ context.Context, event tripseal.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// All returns all events recorded so far, the oldest first. Use it to look at more than
// the reasons.
func (e *Events) All() []tripseal.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// Reasons returns the reasons why tokens were rejected or states were not sealed, the
// oldest reason first. Compare them with the rejections that your test expects.
func (e *Events) Reasons() []tripseal.Reason {
	var reasons []tripseal.Reason
	for _, event := range e.All() {
		if event.Reason != "" {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
