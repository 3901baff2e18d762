package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

var inProcess = map[string]func(*setup){"HTTP/1": func(*setup) {}, "HTTP/2": overHTTP2}

func TestAServerCannotGetBehindTheDoor(t *testing.T) {
	for way, change := range inProcess {
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			if _, _, err := control.Hijack(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: Hijack: %v", way, err)
			}
			if err := control.EnableFullDuplex(); !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("%s: EnableFullDuplex: %v", way, err)
			}
			_, unwraps := w.(interface{ Unwrap() http.ResponseWriter })
			_, pushes := w.(http.Pusher)
			_, copies := w.(io.ReaderFrom)
			if unwraps || pushes || copies {
				t.Errorf("%s: %v %v %v", way, unwraps, pushes, copies)
			}
			past := time.Now().Add(-time.Hour) // servers that know nothing of the door set deadlines of their own
			if control.SetReadDeadline(past) != nil || control.SetWriteDeadline(past) != nil {
				t.Errorf("%s: a deadline is an error", way)
			}
			if w.Header().Set("X-Own", "1"); w.Header().Get("X-Outside") != "" {
				t.Errorf("%s: the server sees %v", way, w.Header())
			}
			writes(200, jsonType, doneMessage)(w, r)
		}, change, func(s *setup) {
			s.outside = func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Outside", "1")
					h.ServeHTTP(w, r)
				})
			}
		})
		a := f.do("POST", callMessage)
		if a.body != doneMessage || a.header.Get("X-Outside") != "1" || a.header.Get("X-Own") != "1" {
			t.Errorf("%s: %+v", way, a)
		}
	}
}

func TestHeadersFromOutsideTheDoorStay(t *testing.T) {
	f := newFront(t, writes(200, jsonType, doneMessage, "Vary", "Accept", "Set-Cookie", "b=2", "Cache-Control",
		"no-store"),
		func(s *setup) {
			s.outside = func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header()["Vary"], w.Header()["Set-Cookie"] = []string{"Origin"}, []string{"a=1"}
					w.Header().Set("Cache-Control", "private")
					h.ServeHTTP(w, r)
				})
			}
		})
	got := fmt.Sprint(f.do("POST", callMessage).header)
	for _, want := range []string{"Vary:[Origin Accept]", "Set-Cookie:[a=1 b=2]", "Cache-Control:[no-store]"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// serveOnce sends a message to a handler without a network. The session may be "".
func serveOnce(h http.Handler, message, session string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/", strings.NewReader(message))
	r.Header.Set("Content-Type", jsonType)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// plainWriter is a writer that cannot be flushed.
type plainWriter struct{ http.ResponseWriter }

func TestAServerCanFlushOnlyIfTheClientCanGetParts(t *testing.T) {
	engine := newRig(t, tripseal.Config{}, wire.Config{}).engine
	var can bool
	door := engine.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, can = w.(http.Flusher)
		writes(200, eventType, event(progress))(w, r)
		io.WriteString(w, event(doneMessage))
	}), wire.Options{AllowAnonymous: true})
	for _, want := range []bool{true, false} {
		outer := door
		if !want {
			outer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { door.ServeHTTP(plainWriter{w}, r) })
		}
		if w := serveOnce(outer, callMessage, ""); can != want || w.Body.String() != event(progress)+event(doneMessage) {
			t.Errorf("can flush: %v; %s", can, w.Body)
		}
	}
}

func TestWhatAServerWritesLateReachesNobody(t *testing.T) {
	for way, change := range inProcess {
		for kind, body := range map[string]string{jsonType: doneMessage, eventType: event(doneMessage), "text/plain": "x"} {
			late := make(chan http.ResponseWriter, 1)
			first := true
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				if !first {
					writes(200, jsonType, doneMessage)(w, r)
					return
				}
				first = false
				w.Header().Set("Trailer", "X-State")
				w.Header().Set(http.TrailerPrefix+"X-Early", canary)
				writes(200, kind, body)(w, r)
				w.Header().Set("X-State", canary)
				w.Header().Set("X-Late", canary)
				w.Header().Set(http.TrailerPrefix+"X-Later", canary)
				w.WriteHeader(500)
				late <- w
			}, change)
			if a := f.do("POST", callMessage); strings.Contains(a.all(), canary) || len(a.trailer) > 0 ||
				a.header.Get("Trailer") != "" {
				t.Errorf("%s, %s: %+v", way, kind, a)
			}
			w := <-late // the request is over
			w.Header().Set("X-Late", canary)
			w.WriteHeader(400)
			w.(http.Flusher).Flush()
			if n, err := io.WriteString(w, canary); n != len(canary) || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			if a := f.do("POST", callMessage); a.status != 200 || a.body != doneMessage || strings.Contains(a.all(), canary) {
				t.Errorf("%s, %s: the next request gets %+v", way, kind, a)
			}
		}
	}
}

func TestTheFirstStatusCounts(t *testing.T) {
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(404)
		w.WriteHeader(200)
		io.WriteString(w, doneMessage)
		w.WriteHeader(500)
	})
	if a := f.do("POST", callMessage); a.status != 404 || a.body != doneMessage {
		t.Errorf("%+v", a)
	}
}

func TestAFlushBeforeTheContentTypeCommitsNothing(t *testing.T) {
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		w.Header().Set("X-Own", "1")
		w.Header().Set("Content-Type", jsonType)
		w.(http.Flusher).Flush()
		io.WriteString(w, askingMessage)
	})
	if a := f.do("POST", callMessage); a.header.Get("X-Own") != "1" || token(t, a.body) == "" {
		t.Errorf("%+v", a)
	}
}

func TestAServerMayWriteFromSeveralGoroutines(t *testing.T) {
	for way, change := range inProcess {
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", eventType)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 50 {
						io.WriteString(w, event(progress))
						http.NewResponseController(w).Flush()
						w.WriteHeader(200)
					}
				})
			}
			all.Wait()
			go io.WriteString(w, ": late\n\n") // before or after the end
			io.WriteString(w, event(askingMessage))
		}, change)
		a := f.do("POST", callMessage)
		if strings.Count(a.body, event(progress)) != 400 || !strings.Contains(a.body, "ms1.") || strings.Contains(a.body,
			canary) {
			t.Errorf("%s: %d events, %s", way, strings.Count(a.body, event(progress)), a.body[max(0, len(a.body)-400):])
		}
	}
}

func TestAWholeAnswerReachesTheClientThoughTheServerGoesOn(t *testing.T) {
	for _, s := range []struct{ message, body string }{{callMessage, doneMessage}, {callMessage, askingMessage},
		{progress, ""}} {
		got := make(chan bool)
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			if s.body == "" {
				w.WriteHeader(202)
			} else {
				writes(200, jsonType, s.body, "Content-Length", fmt.Sprint(len(s.body)))(w, r)
			}
			select {
			case <-got:
			case <-time.After(time.Minute):
				t.Errorf("the client waits for the answer to %s", s.message)
			}
		})
		a := f.do("POST", s.message)
		close(got)
		if a.err != nil || s.body != askingMessage && a.body != s.body {
			t.Errorf("%+v", a)
		}
	}
}

func TestAStreamThatEndsBeforeTheAnswerIsAnErrorUnlessTheClientCanComeBack(t *testing.T) {
	for in, ended := range map[string]bool{
		"": true, ": hi\n\n": true, event(progress): true,
		"id: 1\ndata:\n\n": false, "retry: 5\ndata:\n\n": false, "retry: 5\n\n": false,
		"id: 1\n" + event(progress):               false,
		"id: 1\n" + event(askingMessage+"x"):      true,  // refused, and replaced by an error
		"id: 1\ndata: " + doneMessage:             true,  // not complete: no client sees the id
		"id: 1\n" + event("[1]") + ": hi\n\n":     true,  // dropped, and replaced by an error
		"id: 1\nevent: x\n" + event(progress):     true,  // dropped, with its id
		event(doneMessage):                        false, // answered
		event(`{"jsonrpc":"2.0","id":7}`) + ":\n": true,
	} {
		for way, change := range eachWay {
			a := newFront(t, writes(200, eventType, in), change).do("POST", callMessage)
			if strings.Contains(a.body, failedMessage) != ended || strings.Count(a.body, "jsonrpc") > 2 || a.err != nil {
				t.Errorf("%s: %q becomes %+v", way, in, a)
			}
		}
	}
	// A notification has no answer to wait for.
	if a := newFront(t, writes(200, eventType, ": hi\n\n")).do("POST", progress); a.body != ": hi\n\n" {
		t.Errorf("%+v", a)
	}
	// At shutdown the client still gets its error.
	stop := make(chan context.CancelFunc, 1)
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventType)
		io.WriteString(w, ": hi\n\n")
		<-r.Context().Done()
	}, func(s *setup) {
		s.outside = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, cancel := context.WithCancel(r.Context())
				stop <- cancel
				h.ServeHTTP(w, r.WithContext(ctx))
			})
		}
	})
	go func() { (<-stop)() }()
	if a := f.do("POST", callMessage); a.body != ": hi\n\n"+event(failedMessage) {
		t.Errorf("%+v", a)
	}
}

func TestAPanicOfTheServerIsAnErrorOfThisRequestAlone(t *testing.T) {
	type secret struct{ text string }
	for name, problem := range map[string]any{"string": canary, "*errors.errorString": errors.New(canary),
		"wire_test.secret": secret{canary}, "cut off": http.ErrAbortHandler} {
		for _, s := range []struct {
			message, kind, written string
			status                 int
			body                   string
		}{
			{callMessage, "", "", 502, failedMessage},
			{callMessage, jsonType, askingMessage[:50], 502, failedMessage},
			{callMessage, jsonType, askingMessage, 502, failedMessage},
			{callMessage, eventType, ": hi\n\ndata: " + askingMessage, 200, ": hi\n\n" + event(failedMessage)},
			{callMessage, eventType, event(doneMessage), 200, event(doneMessage)},
			{callMessage, "text/plain", canary, 502, failedMessage},
			{progress, "", "", 502, "Bad Gateway\n"},
		} {
			broken := true
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				if !broken {
					writes(200, jsonType, doneMessage)(w, r)
					return
				}
				if s.kind != "" {
					w.Header().Set("Content-Type", s.kind)
					io.WriteString(w, s.written)
				}
				panic(problem)
			})
			if a := f.do("POST", s.message); a.status != s.status || a.body != s.body || a.err != nil {
				t.Errorf("%s: %q: %+v", name, s.written, a)
			}
			await(t, name+" is logged", func() bool { return strings.Contains(f.log.String(), name) })
			if broken = false; f.do("POST", callMessage).body != doneMessage {
				t.Errorf("%s: the next request fails", name)
			}
		}
	}
}

func TestTheServerFindsTheCallAndWhatWasSetOutside(t *testing.T) {
	type key struct{}
	other := newRig(t, tripseal.Config{}, wire.Config{}).engine
	var f *front
	f = newFront(t, func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if ctx.Value(key{}) != "value" {
			t.Error("the value from outside is lost")
		}
		switch x := f.engine.Through(ctx, ""); {
		case r.Method == "GET" && x != nil, r.Method == "POST" && x == nil:
			t.Errorf("%s: %+v", r.Method, x)
		case x != nil:
			if user, err := x.User()(ctx); user != "alice" || err != nil || x.Method != "tools/call" || x.Target != "deploy" {
				t.Errorf("%q, %v, %+v", user, err, x)
			}
		}
		if other.Through(ctx, "") != nil {
			t.Error("another engine takes the call for its own")
		}
		writes(200, jsonType, doneMessage)(w, r)
	}, func(s *setup) {
		s.outside = func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "value")))
			})
		}
	})
	if a, b := f.do("POST", callMessage), f.do("GET", ""); a.body != doneMessage || b.body != doneMessage {
		t.Errorf("%+v, %+v", a, b)
	}
}

// closesAtEnd closes the channel when the request has ended.
func closesAtEnd(ended chan bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			next.ServeHTTP(w, r)
		})
	}
}

func TestTheServerLearnsThatTheClientIsGoneAndNothingIsLogged(t *testing.T) {
	for way, change := range eachWay {
		for _, kind := range []string{"", eventType, jsonType} {
			ended, arrived := make(chan bool), make(chan bool)
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if kind != "" {
					w.Header().Set("Content-Type", kind)
					http.NewResponseController(w).Flush()
				}
				close(arrived)
				<-r.Context().Done()
			}, change, func(s *setup) { s.outside = closesAtEnd(ended) })
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-arrived
				cancel()
			}()
			if res, err := f.client.Do(f.request("POST", callMessage).WithContext(ctx)); err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatalf("%s, %q: the server waits", way, kind)
			}
			if text := f.log.String(); strings.Contains(text, "level=WARN") {
				t.Errorf("%s, %q: a client that cancels is logged: %s", way, kind, text)
			}
		}
	}
}

// TestListsOfSEP2640AreSealed follows the cursors of skills and of directories over a door.
func TestListsOfSEP2640AreSealed(t *testing.T) {
	var got string
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		writes(200, jsonType, `{"jsonrpc":"2.0","id":7,"result":{"nextCursor":"`+canary+`"}}`)(w, r)
	})
	next := func(method, params string) string {
		a := f.do("POST", page(method, params))
		var text string
		json.Unmarshal(member(t, a.body, "result", "nextCursor"), &text)
		if !strings.HasPrefix(text, "mc1.") {
			t.Fatalf("%s: %+v", method, a)
		}
		return `"cursor":"` + text + `"`
	}
	if a := f.do("POST", page("resources/directory/read", "")); a.status != 400 {
		t.Errorf("a directory without a URI: %+v", a)
	}
	skills, files := next("skills/list", ""), next("resources/directory/read", `"uri":"file:///a/"`)
	for _, s := range []struct {
		user, method, params string
		good                 bool
	}{
		{"alice", "skills/list", skills, true}, {"bob", "skills/list", skills, false}, {"alice", "tools/list", skills, false},
		{"alice", "resources/directory/read", `"uri":"file:///a/",` + files, true},
		{"bob", "resources/directory/read", `"uri":"file:///a/",` + files, false},
		{"alice", "resources/directory/read", `"uri":"file:///b/",` + files, false},
		{"alice", "resources/directory/read", files, false},
		{"alice", "resources/directory/read", `"uri":"file:///a/",` + skills, false},
		{"alice", "skills/list", `"cursor":"` + canary + `"`, false},
	} {
		got = ""
		a := f.do("POST", page(s.method, s.params), "X-User", s.user)
		if strings.Contains(got, canary) != s.good || got != "" != s.good || strings.Contains(a.body, `"error"`) == s.good {
			t.Errorf("%s %s %s: the server got %q, the client %+v", s.user, s.method, s.params, got, a)
		}
	}
}

func TestANullInPlaceOfAStateReachesTheServerAsNone(t *testing.T) {
	var got []byte
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		writes(200, jsonType, doneMessage)(w, r)
	})
	if a := f.do("POST", carriers[0].call(`,"requestState":null`)); a.body != doneMessage || string(got) != callMessage {
		t.Errorf("the server got %s, the client %+v", got, a)
	}
}

func TestAClientThatDeclaresNothingIsAskedAll(t *testing.T) {
	f := newFront(t, writes(200, jsonType, askingMessage))
	for _, meta := range []string{"null", "{}", `{"x":1}`} {
		if a := f.do("POST", carriers[0].call(`,"_meta":`+meta)); !strings.Contains(a.body, `"requestState":"ms1.`) {
			t.Errorf("%s: %+v", meta, a)
		}
	}
}

func TestAnAnswerMayHaveTextsThatLookLikeNull(t *testing.T) {
	r := plainRig(t)
	given := state(r.begin(carriers[0], "", "", `{"q":`+form+`}`))
	for content, kept := range map[string]bool{
		`"\"n"`: true, `"\\"`: true, `"null"`: true, `"\\\"null"`: true, `["\"",null]`: false, `["\\",null]`: false,
	} {
		_, got := r.forwarded(carriers[0].call(given + `,"inputResponses":{"q":{"action":"accept","content":{"a":` + content + `}}}`))
		if strings.Contains(got, "inputResponses") != kept {
			t.Errorf("%s: the server got %s", content, got)
		}
	}
}

// hostile are texts that a client may have put into what a server returns.
var hostile = []string{
	"requestState", `"requestState"`, `"requestState":"x"`, `","requestState":"x`, `\","requestState\":\"x`,
	`request\u0053tate`,
	`\u0022requestState\u0022:1`, `inputRequests`, `"inputRequests":{}`, `}},"result":{"requestState":"x"`,
	`nextCursor`, `"nextCursor"`,
	`resultType`, `input_required`, `"resultType":"input_required"`, `\`, `"`, `\\"`, "\u2028", "<>&", "\x00", "State",
	"Cursor\"", `{"a":1}`,
	"requestStat\xe9", "requeſtState", "a", "",
}

// hostileValue returns a random value as a server could build it from a client's texts.
func hostileValue(r *rand.Rand, depth int) any {
	text := func() (s string) {
		for range 1 + r.IntN(2) {
			s += hostile[r.IntN(len(hostile))]
		}
		return s
	}
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, hostileValue(r, depth-1))
		}
		return list
	case n < 3 && depth > 0:
		object := map[string]any{}
		for range r.IntN(3) {
			object[text()] = hostileValue(r, depth-1)
		}
		return object
	case n == 3:
		return r.Float64()
	}
	return text()
}

// A result that encoding/json wrote, with texts of the client in it, must never pass unread if it has a state, a
// question
// or a cursor for whoever reads JSON. What passes unread must pass the full scan as it is.
func TestAnAnswerThatPassesUnreadHasNothingToSeal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fast := newFront(t, unused(t)).engine
	full := newRig(t, tripseal.Config{}, wire.Config{}).engine
	alice, ctx := tripseal.User("alice"), t.Context()
	unread, guarded := 0, 0
	for range 20_000 {
		request := []string{callMessage, carriers[1].call(""), page("tools/list", ""), page("tools/own", "")}[random.IntN(4)]
		result := map[string]any{}
		for _, name := range []string{"content", "structuredContent", "tools", "_meta"} {
			if random.IntN(2) == 0 {
				result[name] = hostileValue(random, 3)
			}
		}
		if random.IntN(4) == 0 {
			result[[]string{"requestState", "inputRequests", "nextCursor", "resultType"}[random.IntN(4)]] =
				[]any{"input_required", "x", map[string]any{}, nil}[random.IntN(4)]
		}
		var out strings.Builder
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(random.IntN(2) == 0)
		type envelope struct {
			JSONRPC string `json:"jsonrpc"`
			ID      int    `json:"id"`
			Result  any    `json:"result"`
		}
		if err := encoder.Encode(envelope{"2.0", 7, result}); err != nil {
			t.Fatal(err)
		}
		answer := out.String()
		var read struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(answer), &read); err != nil {
			t.Fatal(err)
		}
		has := read.Result["resultType"] == "input_required"
		for _, name := range []string{"requestState", "inputRequests", "nextCursor"} {
			_, present := read.Result[name]
			has = has || present
		}
		if has {
			guarded++
		}
		if !fast.Open(ctx, request, alice).IsPlainAnswer(answer) {
			continue
		}
		if unread++; has {
			t.Fatalf("passed unread: %s", answer)
		}
		if sealed := full.Open(ctx, request, alice).Seal(ctx, answer); sealed != answer {
			t.Fatalf("the full scan makes of %s: %s", answer, sealed)
		}
		if sealed := fast.Open(ctx, request, alice).Seal(ctx, answer); sealed != answer {
			t.Fatalf("%s becomes %s", answer, sealed)
		}
	}
	if unread < 1000 || guarded < 1000 {
		t.Errorf("only %d answers passed unread, and %d had something to seal", unread, guarded)
	}
}

func TestOnlyTheAnswerToTheCallPassesUnread(t *testing.T) {
	front := newFront(t, unused(t))
	open := func(request string) *wire.Exchange {
		return front.engine.Open(t.Context(), request, tripseal.User("alice"))
	}
	x := open(callMessage)
	for answer, plain := range map[string]bool{
		doneMessage: true, doneMessage + "\n": true,
		strings.Replace(doneMessage, "7", "8", 1):            false,
		strings.Replace(doneMessage, "7", "17", 1):           false,
		strings.Replace(doneMessage, "7", "77", 1):           false,
		strings.Replace(doneMessage, "7", `"7"`, 1):          false,
		strings.Replace(doneMessage, "{", "{ ", 1):           false,
		strings.Replace(doneMessage, "{}}", "{}}}", 1) + " ": false,
		doneMessage[:len(doneMessage)-1]:                     false,
		doneMessage + `{"result":{"requestState":"x"}}`:      false,
		failedMessage:                false,
		askingMessage:                false,
		asking("", `{"q":`+form+`}`): false,
		strings.Replace(asking("", ""), "input", "x_input", 1):   false,
		strings.Replace(doneMessage, "content", "nextCursor", 1): false,
	} {
		if x.IsPlainAnswer(answer) != plain {
			t.Errorf("%s: %v", answer, !plain)
		}
	}
	if x.Seal(t.Context(), doneMessage) != doneMessage || !x.Answered() || x.Seal(t.Context(), doneMessage) != "" ||
		x.IsPlainAnswer(doneMessage) {
		t.Error("a second answer passed")
	}
	if y := open(progress); y.IsPlainAnswer(strings.Replace(doneMessage, "7", "", 1)) {
		t.Error("an answer to a notification passed unread")
	}
}
