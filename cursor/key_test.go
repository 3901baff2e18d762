package cursor_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/cursor"
)

// TestTheLogNamesTheKeyOfARejectedCursor checks that the log names the key, so that an operator
// can compare it with the keys of other replicas.
func TestTheLogNamesTheKeyOfARejectedCursor(t *testing.T) {
	var log bytes.Buffer
	var events []mcpseal.Event
	issuer := func() (*cursor.Cursors, string) {
		key := mcpseal.GenerateKey()
		ring, err := mcpseal.NewRing(key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := cursor.New(cursor.Config{
			Keys: ring, Audience: "a", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Observer: func(_ context.Context, e mcpseal.Event) { events = append(events, e) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return c, key.ID().String()
	}
	ours, _ := issuer()
	theirs, id := issuer()
	request := mcpseal.Request{Method: "tools/call", Target: "list"}
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
