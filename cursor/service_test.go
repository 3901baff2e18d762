package cursor_test

import (
	"log/slog"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// TestBoundariesOnOneEphemeralRingAreOneServiceUntilTheyAreNamed checks what the documentation of
// tripseal.Config.Audience says. Two boundaries accept each other's cursors if they share an
// Ephemeral ring and have no audience. With different audiences they do not.
func TestBoundariesOnOneEphemeralRingAreOneServiceUntilTheyAreNamed(t *testing.T) {
	ring := tripseal.Ephemeral()
	serviceOf := func(ring *tripseal.Ring, audience string) service {
		b := &book{}
		boundary, err := tripseal.New(tripseal.Config{
			Keys: ring, Audience: audience, Logger: slog.New(slog.NewTextHandler(b, nil)), Observer: b.observe,
		})
		if err != nil {
			t.Fatal(err)
		}
		cursors, err := cursor.New(boundary, cursor.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return service{cursors, b}
	}
	token := serviceOf(ring, "").first(t, list(), at)
	serviceOf(ring, "").accept(t, list(), token)
	serviceOf(ring, "one").reject(t, list(), token, tripseal.ReasonAudience)
	serviceOf(ring, "two").reject(t, list(), serviceOf(ring, "one").first(t, list(), at), tripseal.ReasonAudience)
	serviceOf(tripseal.Ephemeral(), "").reject(t, list(), token, tripseal.ReasonUnknownKey)
}
