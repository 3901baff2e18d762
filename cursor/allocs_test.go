//go:build !race

package cursor_test

import (
	"log/slog"
	"testing"
)

// Under the race detector a sync.Pool drops items at random, so this test is left out there.
func TestACursorCostsFewAllocations(t *testing.T) {
	ring := newRing(t)
	cursors, err := newCursors(settings{Keys: ring, Audience: "a", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := t.Context(), list()
	token := service{cursors, &book{}}.first(t, request, at)
	allocations := testing.AllocsPerRun(200, func() {
		page, err := cursors.Open(ctx, request, token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := page.Next(ctx, at); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 4 {
		t.Errorf("%v allocations for a page", allocations)
	}
}
