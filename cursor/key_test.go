package cursor_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// TestTheLogNamesTheKeyOfARejectedCursor checks that the log names the key, so that an operator
// can compare it with the keys of other replicas.
func TestTheLogNamesTheKeyOfARejectedCursor(t *testing.T) {
	var log bytes.Buffer
	var events []tripseal.Event
	issuer := func() (*cursor.Cursors, string) {
		key := tripseal.GenerateKey()
		ring, err := tripseal.NewRing(key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCursors(settings{
			Keys: ring, Audience: "a", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Observer: func(_ context.Context, e tripseal.Event) { events = append(events, e) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return c, key.ID().String()
	}
	ours, _ := issuer()
	theirs, id := issuer()
	request := tripseal.Request{Method: "tools/call", Target: "list"}
	page, err := theirs.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := page.Next(t.Context(), cursor.NextPage{Position: []byte("p")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Open(t.Context(), request, text); err == nil {
		t.Fatal("opened")
	}
	if !strings.Contains(log.String(), "reason=unknown_key") || !strings.Contains(log.String(), "key="+id) || events[len(events)-1].KeyID != id {
		t.Errorf("no key %s in %s, %+v", id, &log, events)
	}
	for _, garbage := range []string{"mc1.", "mc1.!!!!!!!!!!", "x", "mc1." + strings.Repeat("A", 1<<20)} {
		ours.Open(t.Context(), request, garbage)
	}
}
