package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/replay"
	"github.com/tripseal/tripseal/wire"
)

const (
	sessionID  = canary + "-session"
	initialize = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}`
)

// sessions is a server with sessions, as the TypeScript and Python SDKs write them: each answer repeats the id.
type sessions struct {
	got []*http.Request
}

func (s *sessions) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.got = append(s.got, r)
	w.Header().Set("Mcp-Session-Id", sessionID)
	switch {
	case r.Method == "GET":
		writes(200, eventType, "id: 1\n"+event(progress))(w, r)
	case r.Method == "DELETE":
		w.WriteHeader(204)
	case strings.Contains(string(body), `"id"`):
		writes(200, jsonType, doneMessage)(w, r)
	default:
		w.WriteHeader(202)
	}
}

// last returns the session id and the event id that the server got in the only request since the last call.
func (s *sessions) last(t *testing.T) (id, event string) {
	t.Helper()
	if len(s.got) != 1 {
		t.Fatalf("the server got %d requests", len(s.got))
	}
	header := s.got[0].Header
	s.got = nil
	if len(header["Mcp-Session-Id"]) > 1 {
		t.Errorf("the server got %v", header)
	}
	return header.Get("Mcp-Session-Id"), header.Get("Last-Event-Id")
}

// begin begins a session, and returns its sealed id.
func (f *front) begin(s *sessions) string {
	f.t.Helper()
	a := f.do("POST", initialize)
	s.got = nil
	id := a.header.Get("Mcp-Session-Id")
	if a.body != doneMessage || id == "" || strings.Contains(a.all(), canary) {
		f.t.Fatalf("%+v", a)
	}
	return id
}

func TestASessionWorksForTheUserWhoBeganItAlone(t *testing.T) {
	for way, change := range eachWay {
		s := new(sessions)
		f := newFront(t, s.serve, change)
		id := f.begin(s)
		if other := f.begin(s); other == id {
			t.Error("two sessions have one sealed id")
		}
		for method, body := range map[string]string{"POST": callMessage, "GET": "", "DELETE": ""} {
			a := f.do(method, body, "Mcp-Session-Id", id, "Last-Event-Id", "5")
			if got, resumed := s.last(t); got != sessionID || resumed != "5" {
				t.Errorf("%s, %s: the server got %q and %q", way, method, got, resumed)
			}
			if a.status >= 300 || fmt.Sprint(a.header["Mcp-Session-Id"]) != "["+id+"]" {
				t.Errorf("%s, %s: another text for the same session: %+v", way, method, a)
			}
			changed := id[:len(id)-2] + "A" + id[len(id)-1:]
			if changed == id {
				changed = id[:len(id)-2] + "B" + id[len(id)-1:]
			}
			for name, headers := range map[string][]string{
				"of another user":    {"Mcp-Session-Id", id, "X-User", "bob"},
				"of nobody":          {"Mcp-Session-Id", id, "X-User", ""},
				"plain":              {"Mcp-Session-Id", sessionID},
				"unknown":            {"Mcp-Session-Id", "1868a90c-1b2f"},
				"cut":                {"Mcp-Session-Id", id[:len(id)-1]},
				"changed":            {"Mcp-Session-Id", changed},
				"longer":             {"Mcp-Session-Id", id + "A"},
				"long":               {"Mcp-Session-Id", strings.Repeat(id, 50)},
				"of another version": {"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25", "X-User", "bob"},
				"to resume":          {"Mcp-Session-Id", id, "Last-Event-Id", "5", "X-User", "bob"},
			} {
				a := f.do(method, body, headers...)
				if a.status != 404 || len(s.got) > 0 || strings.Contains(a.all(), canary) ||
					a.body != "Not Found\n" {
					t.Errorf("%s, %s %s: %+v", way, method, name, a)
				}
				s.got = nil
			}
			if a := f.do(method, body, "Mcp-Session-Id", id, "Mcp-Session-Id", id); a.status != 400 || len(s.got) > 0 {
				t.Errorf("%s, %s: two ids: %+v", way, method, a)
			}
		}
	}
}

func TestARequestWithoutASessionReachesTheServerWithoutOne(t *testing.T) {
	s := new(sessions)
	f := newFront(t, s.serve)
	id := f.begin(s)
	for name, c := range map[string]struct {
		body    string
		headers []string
	}{
		"none":              {callMessage, nil},
		"empty":             {callMessage, []string{"Mcp-Session-Id", ""}},
		"initialize":        {initialize, []string{"Mcp-Session-Id", id}},
		"initialize, plain": {initialize, []string{"Mcp-Session-Id", sessionID}},
		"2026-07-28":        {callMessage, []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2026-07-28"}},
		"2026-07-28, plain": {callMessage, []string{"Mcp-Session-Id", sessionID, "Mcp-Protocol-Version", "2026-07-28"}},
		"a later revision":  {callMessage, []string{"Mcp-Session-Id", sessionID, "Mcp-Protocol-Version", "2027-01-01"}},
		"underscores": {callMessage, []string{"Mcp_Session_Id", sessionID, "mcp_session-id", sessionID,
			"MCP-SESSION_ID", sessionID}},
		"underscores, sealed": {callMessage, []string{"mcp_session_id", id, "last_event_id", "5", "Last-Event_id", "5"}},
	} {
		a := f.do("POST", c.body, append(c.headers, "Last-Event-Id", "5")...)
		if got, resumed := s.last(t); got != "" || resumed != "" || a.body != doneMessage {
			t.Errorf("%s: the server got %q and %q, the client %+v", name, got, resumed, a)
		}
		if text := a.header.Get("Mcp-Session-Id"); text == "" || text == id || strings.Contains(text, canary) {
			t.Errorf("%s: a new session has the id %q", name, text)
		}
	}
	for _, version := range []string{"2025-11-25", "2026-07-2", "2026-07-288", ""} {
		f.do("POST", callMessage, "Mcp-Session-Id", id, "Mcp-Protocol-Version", version)
		if got, _ := s.last(t); got != sessionID {
			t.Errorf("revision %q: the server got %q", version, got)
		}
	}
	// Underscores beside a session must not become a second one.
	f.do("POST", callMessage, "Mcp-Session-Id", id, "Mcp_Session_Id", "x")
	for name := range s.got[0].Header {
		if strings.Contains(name, "_") {
			t.Errorf("the server got %s", name)
		}
	}
}

func TestASessionThatCannotBeSealedIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		user    func(*http.Request) (string, error)
		headers []string
	}{
		"an error": {func(*http.Request) (string, error) { return "", errors.New(canary) }, []string{"Mcp-Session-Id",
			sessionID}},
		"a panic":    {func(*http.Request) (string, error) { panic(canary) }, []string{"Mcp-Session-Id", sessionID}},
		"nobody":     {func(*http.Request) (string, error) { return "", nil }, []string{"Mcp-Session-Id", sessionID}},
		"two ids":    {nil, []string{"Mcp-Session-Id", sessionID, "Mcp-Session-Id", "2"}},
		"too long":   {nil, []string{"Mcp-Session-Id", strings.Repeat(canary, 200)}},
		"one of two": {nil, []string{"Mcp-Session-Id", sessionID, "Mcp-Session-Id", ""}},
	} {
		for kind, body := range map[string]string{jsonType: askingMessage, eventType: event(askingMessage),
			"text/html": "x"} {
			f := newFront(t, writes(200, kind, body, c.headers...), func(s *setup) {
				if c.user != nil {
					s.options.User = c.user
				}
			})
			a := f.do("POST", initialize)
			if a.status != 502 || a.body != failedMessage || a.header["Mcp-Session-Id"] != nil || a.err != nil ||
				strings.Contains(a.all(), canary) {
				t.Errorf("%s, %s: %+v", name, kind, a)
			}
		}
		f := newFront(t, writes(202, "", "", c.headers...), func(s *setup) {
			if c.user != nil {
				s.options.User = c.user
			}
		})
		if a := f.do("POST", progress); a.status != 502 || a.body != "Bad Gateway\n" || strings.Contains(a.all(), canary) {
			t.Errorf("%s: %+v", name, a)
		}
		f.logged("an answer was replaced")
	}
	a := newFront(t, writes(200, jsonType, doneMessage, "Mcp-Session-Id", "")).do("POST", initialize)
	if _, has := a.header["Mcp-Session-Id"]; has || a.body != doneMessage {
		t.Errorf("an empty id: %+v", a)
	}
}

func TestUsersWithoutANameShareTheirSessionsWithNobodyElse(t *testing.T) {
	s := new(sessions)
	f := newFront(t, s.serve, func(o *setup) { o.options.AllowAnonymous = true })
	a := f.do("POST", initialize, "X-User", "")
	id := a.header.Get("Mcp-Session-Id")
	if s.got = nil; f.do("POST", callMessage, "X-User", "", "Mcp-Session-Id", id).status != 200 {
		t.Error("a session without a user is refused")
	}
	s.got = nil
	if a := f.do("POST", callMessage, "Mcp-Session-Id", id); a.status != 404 || len(s.got) > 0 {
		t.Errorf("alice uses a session of nobody: %+v", a)
	}
	// Without a function User, everybody is nobody.
	anybody := newFront(t, s.serve, func(o *setup) { o.options = wire.Options{AllowAnonymous: true} })
	if a := anybody.do("POST", initialize); a.header.Get("Mcp-Session-Id") == "" {
		t.Errorf("%+v", a)
	}
}

func TestATokenIsNotSpentWhenTheSessionIsRefused(t *testing.T) {
	store, err := replay.NewSingleProcess(replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	reached := 0
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		reached++
		writes(200, jsonType, askingMessage)(w, r)
	}, func(s *setup) { s.policy.Replay = store })
	retry := carriers[0].call(state(token(t, f.do("POST", callMessage).body)))
	if a := f.do("POST", retry, "Mcp-Session-Id", "unknown"); a.status != 404 || reached != 1 {
		t.Errorf("%+v", a)
	}
	if a := f.do("POST", retry); strings.Contains(a.body, `"error"`) || reached != 2 {
		t.Errorf("the token was spent: %+v", a)
	}
	if a := f.do("POST", retry); !strings.Contains(a.body, "invalid_request_state") || reached != 2 {
		t.Errorf("the token works twice: %+v", a)
	}
}

func TestASessionEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newRig(t, tripseal.Config{}, wire.Config{SessionTTL: time.Hour}).engine
		door := engine.Handler(http.HandlerFunc(new(sessions).serve), wire.Options{AllowAnonymous: true})
		id := serveOnce(door, initialize, "").Header().Get("Mcp-Session-Id")
		time.Sleep(59 * time.Minute)
		if got := serveOnce(door, callMessage, id).Code; got != 200 {
			t.Errorf("after 59 minutes: %d", got)
		}
		time.Sleep(2 * time.Minute)
		if got := serveOnce(door, callMessage, id).Code; got != 404 {
			t.Errorf("after an hour: %d", got)
		}
	})
}

// Some servers send an answer to whichever request of the session had its id last. With two calls of one id, a client
// would get the state of one call sealed for the arguments of the other.
func TestAResultThatAsksInASessionIsRefused(t *testing.T) {
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", "s1")
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "initialize") {
			writes(200, jsonType, doneMessage)(w, r)
			return
		}
		writes(200, jsonType, askingMessage)(w, r)
	})
	id := f.do("POST", `{"jsonrpc":"2.0","id":7,"method":"initialize"}`).header.Get("Mcp-Session-Id")
	if a := f.do("POST", callMessage, "Mcp-Session-Id", id); a.body != failedMessage {
		t.Errorf("%+v", a)
	}
	if a := f.do("POST", callMessage); !strings.Contains(a.body, "ms1.") {
		t.Errorf("without a session: %+v", a)
	}
}
