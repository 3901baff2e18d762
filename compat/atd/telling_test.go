package atd

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/cursor"
)

// logged returns an issuer of cursors and its log.
func logged(t *testing.T, session []byte) (*Issuer, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	i, err := NewIssuer(testKey, Options{Session: session, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return i, &log
}

func rows(user, arguments string) tripseal.Request {
	return tripseal.Request{Method: "tools/call", Target: "list_rows", Arguments: []byte(arguments), Principal: tripseal.User(user)}
}

func firstCursor(t *testing.T, c cursor.Issuer, request tripseal.Request, next cursor.NextPage) (string, error) {
	t.Helper()
	page, err := c.Open(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	return page.Next(t.Context(), next)
}

func TestWhatTheseCursorsDoNotProtectIsLoggedOnce(t *testing.T) {
	for _, session := range [][]byte{nil, []byte("release7")} {
		i, log := logged(t, session)
		if log.Len() != 0 {
			t.Errorf("before Cursors: %s", log)
		}
		for range 3 {
			i.Cursors()
		}
		said := log.String()
		for _, want := range []string{"level=WARN", "can be read", "user in clear text", "every service with the same key and session"} {
			if strings.Count(said, want) != 1 {
				t.Errorf("%q is not logged once: %s", want, said)
			}
		}
		if advised := strings.Contains(said, "set Options.Session"); advised != (session == nil) || strings.Contains(said, "release7") {
			t.Errorf("session %q: %s", session, said)
		}
	}
}

// TestServicesOfOneKeyAreKeptApartByTheirSessionAlone checks that services with the same key refuse
// each other's cursors only if their sessions differ, because these cursors hold no audience.
func TestServicesOfOneKeyAreKeptApartByTheirSessionAlone(t *testing.T) {
	issue := func(session []byte) string {
		i, _ := logged(t, session)
		token, err := firstCursor(t, i.Cursors(), rows("alice", `{}`), cursor.NextPage{})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for _, c := range []struct {
		from, to []byte
		opens    bool
	}{{nil, nil, true}, {nil, []byte("service1"), false}, {[]byte("service1"), []byte("service2"), false}, {[]byte("service1"), nil, false}} {
		i, _ := logged(t, c.to)
		if _, err := i.Cursors().Open(t.Context(), rows("alice", `{}`), issue(c.from)); (err == nil) != c.opens {
			t.Errorf("from %q to %q: %v", c.from, c.to, err)
		}
	}
}

func TestTheLogSaysWhyACursorIsNotIssued(t *testing.T) {
	long := strings.Repeat("a", 300)
	prompt := rows("hush", `{}`)
	prompt.Method = "prompts/get"
	tool := rows("hush", `{}`)
	tool.Target = "\xff"
	longTool := rows("hush", `{}`)
	longTool.Target = long
	for name, c := range map[string]struct {
		request tripseal.Request
		next    cursor.NextPage
		says    []string
	}{
		"a user that is not UTF-8": {rows("hush\x80", `{}`), cursor.NextPage{}, []string{"reason=misuse", "caller's name is not UTF-8", "Options.Principal"}},
		"a tool that is not UTF-8": {tool, cursor.NextPage{}, []string{"reason=misuse", "tool's name is not UTF-8"}},
		"a long user":              {rows("hush"+long, `{}`), cursor.NextPage{}, []string{"reason=too_large", "caller's 304", "Options.Principal"}},
		"a long tool":              {longTool, cursor.NextPage{}, []string{"reason=too_large", "tool's name has 300", "shorten the tool"}},
		"a long state":             {rows("hush", `{}`), cursor.NextPage{Position: make([]byte, 256)}, []string{"reason=too_large", "state 256", "not a row"}},
		"a longer state":           {rows("hush", `{}`), cursor.NextPage{Position: make([]byte, 257)}, []string{"reason=too_large", "257", "not a row"}},
		"for everybody":            {rows("hush", `{}`), cursor.NextPage{Shared: true}, []string{"reason=misuse", "Shared"}},
		"another method":           {prompt, cursor.NextPage{}, []string{"reason=misuse", "tools/call"}},
		"no JSON":                  {rows("hush", `{"hush"`), cursor.NextPage{}, []string{"reason=invalid_params", "at byte"}},
	} {
		i, log := logged(t, nil)
		c2 := i.Cursors()
		log.Reset()
		if _, err := firstCursor(t, c2, c.request, c.next); err == nil {
			t.Errorf("%s: issued", name)
		}
		for _, want := range append(c.says, "cause=") {
			if said := log.String(); !strings.Contains(said, want) || strings.Contains(said, "hush") {
				t.Errorf("%s: %q is not in %s", name, want, said)
			}
		}
	}
}

func TestTheLogSaysWhenTheCursorIsAmongTheArguments(t *testing.T) {
	i, log := logged(t, nil)
	c := i.Cursors()
	token, err := firstCursor(t, c, rows("hush", `{"a":1}`), cursor.NextPage{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(t.Context(), rows("hush", `{"a":2}`), token); err == nil || strings.Contains(log.String(), "cause") {
		t.Errorf("other arguments: %v, %s", err, log)
	}
	if _, err := c.Open(t.Context(), rows("hush", fmt.Sprintf(`{"a":1,"cursor":%q}`, token)), token); err == nil || !strings.Contains(log.String(), "without the cursor") {
		t.Errorf("as it arrived: %v, %s", err, log)
	}
	if strings.Contains(log.String(), token) {
		t.Errorf("the log has the cursor: %s", log)
	}
}
