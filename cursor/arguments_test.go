package cursor_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// TestTheLogSaysWhenTheCursorIsAmongTheArguments opens a cursor with arguments that still hold
// the cursor. The cursor was issued for arguments without a cursor, so Open rejects it, and the
// walk ends after one page. The log says to leave out the cursor. Otherwise a developer might
// drop all arguments, and cursors would no longer be bound to them.
func TestTheLogSaysWhenTheCursorIsAmongTheArguments(t *testing.T) {
	const hint = "without the cursor"
	s := newService(t, cursor.Config{})
	request := list()
	token := s.first(t, request, at)

	request.Arguments = fmt.Appendf(nil, `{"table":"hush","limit":10,"cursor":%q}`, token)
	if _, err := s.Open(t.Context(), request, token); !errors.Is(err, cursor.ErrInvalid) {
		t.Errorf("as it arrived: %v", err)
	}
	if cause := s.book.last().Cause; cause == nil || !strings.Contains(cause.Error(), hint) || strings.Contains(cause.Error(), token) {
		t.Errorf("the cause: %v", cause)
	}
	if log := s.book.buf.String(); !strings.Contains(log, hint) || strings.Contains(log, token) {
		t.Errorf("the log: %s", log)
	}
	other := list()
	other.Arguments = []byte(`{"table":"hush","limit":11}`)
	s.reject(t, other, token, tripseal.ReasonArguments)
	if cause := s.book.last().Cause; cause != nil {
		t.Errorf("other arguments: %v", cause)
	}
	s.accept(t, list(), token)
}
