package cursor_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// TestACallerWhoGaveUpIsNoFailure cancels the caller's context. The function Principal then
// returns the error of the context, like a function that asks another service. The reason is
// ReasonCanceled, and the log has no error.
func TestACallerWhoGaveUpIsNoFailure(t *testing.T) {
	var log bytes.Buffer
	cursors, err := newCursors(settings{Keys: tripseal.Ephemeral(), Audience: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	request := tripseal.Request{Method: "tools/call", Target: "list", Principal: func(ctx context.Context) (string, error) { return "alice", ctx.Err() }}
	first, err := cursors.Open(ctx, request, "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := first.Next(ctx, cursor.NextPage{Position: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	var rejected *cursor.Error
	if _, err := cursors.Open(ctx, request, text); !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonCanceled {
		t.Errorf("opened: %v", err)
	}
	first, err = cursors.Open(ctx, request, "")
	if err != nil {
		t.Fatal(err)
	}
	var failed *cursor.Error
	if _, err := first.Next(ctx, cursor.NextPage{Position: []byte("x")}); !errors.As(err, &failed) || failed.Reason != tripseal.ReasonCanceled {
		t.Errorf("issued: %v", err)
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log: %s", &log)
	}
}
