package atd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

func TestTheAdapterKeepsTheContractOfCursors(t *testing.T) {
	var log strings.Builder
	options := Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	newCursors := func(session []byte) cursor.Issuer {
		options.Session = session
		i, err := NewIssuer(testKey, options)
		if err != nil {
			t.Fatal(err)
		}
		return i.Cursors()
	}
	request := tripseal.Request{Method: "tools/call", Target: "list_rows", Arguments: []byte(`{"a":1}`), Principal: tripseal.User("hush")}
	synctest.Test(t, func(t *testing.T) {
		c := newCursors(nil)
		open := func(c cursor.Issuer, request tripseal.Request, token string) error {
			_, err := c.Open(t.Context(), request, token)
			return err
		}
		page, err := c.Open(t.Context(), request, "")
		if err != nil || !page.First() {
			t.Fatal(err)
		}
		token, err := page.Next(t.Context(), cursor.NextPage{Position: []byte("p")})
		if err != nil {
			t.Fatal(err)
		}
		if page, err = c.Open(t.Context(), request, token); err != nil || page.Number() != 1 || string(page.Position()) != "p" {
			t.Fatalf("%v, %v", page, err)
		}
		failing := request
		failing.Principal = func(context.Context) (string, error) { return "", fmt.Errorf("hush: %w", cursor.ErrExpired) }
		if first, err := c.Open(t.Context(), failing, ""); err != nil {
			t.Errorf("a first page does not open: %v", err)
		} else if _, err := first.Next(t.Context(), cursor.NextPage{}); err == nil {
			t.Error("a cursor for nobody knows whom")
		}
		other := request
		other.Principal = tripseal.User("bob")
		prompt := request
		prompt.Method = "prompts/get"
		if first, err := c.Open(t.Context(), prompt, ""); err != nil {
			t.Error(err)
		} else if _, err := first.Next(t.Context(), cursor.NextPage{}); err == nil {
			t.Error("a cursor for another method is issued: it would be one for a tool")
		}
		for name, err := range map[string]error{
			"another user":    open(c, other, token),
			"another method":  open(c, prompt, token),
			"another session": open(newCursors([]byte("12345678")), request, token),
			"no user":         open(c, failing, token),
			"changed":         open(c, request, token+"A"),
			"page 0":          open(c, request, mustIssue(t, c.(cursors).Issuer, Request{Tool: "list_rows", Caller: "hush", Arguments: request.Arguments}, Page{})),
		} {
			if !errors.Is(err, cursor.ErrInvalid) || errors.Is(err, cursor.ErrExpired) || err.Error() != cursor.ErrInvalid.Error() {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, next := range map[string]cursor.NextPage{
			"shared": {Shared: true}, "cached": {Cached: time.Hour}, "too long": {Position: make([]byte, 300)},
		} {
			_, err := page.Next(t.Context(), next)
			var issue *cursor.Error
			if !errors.As(err, &issue) {
				t.Errorf("%s: %v", name, err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		var rejected *cursor.Error
		if _, err := c.Open(gone, failing, token); !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonCanceled {
			t.Errorf("a caller who gave up: %v", err)
		}
		time.Sleep(time.Hour)
		if err := open(c, request, token); !errors.Is(err, cursor.ErrExpired) {
			t.Errorf("expired: %v", err)
		}
		if err := open(newCursors([]byte("12345678")), request, token); !errors.Is(err, cursor.ErrInvalid) {
			t.Errorf("another session, expired: %v", err)
		}
	})
	if !strings.Contains(log.String(), "reason=expired") || !strings.Contains(log.String(), "reason=audience") || strings.Contains(log.String(), "hush") {
		t.Errorf("the log: %s", log.String())
	}
}

// TestTheNextCursorIsForWhatArrived changes the arguments in place between Open and Next. The next
// cursor is still bound to the arguments that arrived.
func TestTheNextCursorIsForWhatArrived(t *testing.T) {
	issuer, err := NewIssuer(testKey, Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	arrived := func() tripseal.Request {
		return tripseal.Request{Method: "tools/call", Target: "list", Arguments: []byte(`{"tenant":"a"}`)}
	}
	first, err := issuer.Cursors().Open(t.Context(), arrived(), "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := first.Next(t.Context(), cursor.NextPage{Position: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	request := arrived()
	page, err := issuer.Cursors().Open(t.Context(), request, token)
	if err != nil {
		t.Fatal(err)
	}
	copy(request.Arguments, `{"tenant":"b"}`)
	if token, err = page.Next(t.Context(), cursor.NextPage{Position: []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if _, err := issuer.Cursors().Open(t.Context(), arrived(), token); err != nil {
		t.Errorf("the honest walk: %v", err)
	}
	if _, err := issuer.Cursors().Open(t.Context(), request, token); err == nil {
		t.Error("the cursor is for what became of the arguments")
	}
}

// TestAForgedCursorBuysNoDigest opens cursors with arguments that have no digest. For a forged
// cursor, the error must still name the signature. This shows that Open checks the cursor before it
// digests the arguments.
func TestAForgedCursorBuysNoDigest(t *testing.T) {
	issuer, err := NewIssuer(testKey, Options{})
	if err != nil {
		t.Fatal(err)
	}
	good, err := issuer.Issue(Request{Tool: "list"}, Page{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	broken := Request{Tool: "list", Arguments: []byte(`{"a":1,"a":2}`)}
	end := "AA"
	if strings.HasSuffix(good, end) {
		end = "EE"
	}
	if _, err := issuer.Open(broken, good[:len(good)-2]+end); !errors.Is(err, ErrSignature) {
		t.Errorf("a forged cursor: %v", err)
	}
	if _, err := issuer.Open(broken, good); err == nil || errors.Is(err, ErrSignature) {
		t.Errorf("a genuine cursor: %v", err)
	}
}
