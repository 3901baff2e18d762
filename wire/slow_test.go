package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/wire"
)

// The tests of this file wait for the clock, so they run side by side, after all others.

// dial opens a connection to the door that takes few bytes at once, and sends the head of a POST and the given part of
// its body.
func (f *front) dial(length int, part string, headers ...string) net.Conn {
	f.t.Helper()
	address := strings.TrimPrefix(strings.TrimSuffix(f.url, "/mcp"), "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(conn,
		"POST /mcp HTTP/1.1\r\nHost: %s\r\nX-User: mallory\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s\r\n%s",
		address, jsonType, length, strings.Join(headers, ""), part)
	return conn
}

// smallBuffers makes the door notice soon that a client does not read.
func smallBuffers(s *setup) {
	s.connect = func(c net.Conn) { c.(*net.TCPConn).SetWriteBuffer(4 << 10) }
}

// honest calls the door until it gets its answer. Each refusal must be one that tells the client to come back.
func (f *front) honest(want string) {
	f.t.Helper()
	await(f.t, "an honest client gets its answer", func() bool {
		a := f.do("POST", callMessage)
		if a.status != 200 && a.status != 503 || a.status == 200 && (a.body != want || a.err != nil) {
			f.t.Fatalf("%+v", a)
		}
		return a.status == 200
	})
}

func TestSlowSendersDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	f := newFront(t, writes(200, jsonType, doneMessage), func(s *setup) {
		s.options.MaxRequest, s.options.MaxAnswer, s.options.Budget = 64<<10, 64<<10, 1<<20
		s.options.ClientTimeout = time.Hour // so only the budget cuts clients off
	})
	var refused atomic.Int64
	for range 64 {
		conn := f.dial(64<<10-1, "{"+strings.Repeat(" ", 40<<10)) // it holds twice this length and two bytes
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && res.StatusCode != 503 && res.StatusCode != 408 {
				t.Errorf("a slow client gets %s", res.Status)
			}
			refused.Add(1)
		}()
	}
	// Of the 64, eight fit. They send no more, and hold the whole budget.
	await(t, "the budget is used up", func() bool {
		return wire.BudgetUsed(f.handler) > 1<<20-8<<10 ||
			refused.Load() > 0
	})
	for range 20 {
		f.honest(doneMessage)
	}
	if used := wire.BudgetUsed(f.handler); used > 1<<20 {
		t.Errorf("%d bytes are in use", used)
	}
}

func TestSlowReadersDoNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	long := strings.Replace(doneMessage, "[]", `["`+strings.Repeat("x", 600<<10)+`"]`, 1)
	for kind, c := range map[string]struct {
		answer  string
		readers int   // so many answers fit into the budget until their clients have got them, and not one more
		each    int64 // what each of them holds, at least
	}{jsonType: {long, 4, 1190 << 10}, eventType: {event(long), 7, 600 << 10}} {
		f := newFront(t, writes(200, kind, c.answer), smallBuffers, func(s *setup) {
			s.options.MaxRequest, s.options.MaxAnswer, s.options.Budget = 4<<10, 1<<20, 5<<20
			s.options.ClientTimeout = time.Hour
		})
		for n := range c.readers {
			f.dial(len(callMessage), callMessage)
			await(t, "a slow reader holds its answer", func() bool { return wire.BudgetUsed(f.handler) > int64(n+1)*c.each })
		}
		await(t, "an honest client gets its answer", func() bool { return f.do("POST", callMessage).body == c.answer })
	}
}

func TestAClientThatSendsTooSlowlyIsRefused(t *testing.T) {
	t.Parallel()
	f := newFront(t, unused(t), func(s *setup) { s.options.ClientTimeout = 50 * time.Millisecond })
	res, err := http.ReadResponse(bufio.NewReader(f.dial(1000, "{")), nil)
	if err != nil || res.StatusCode != 408 || !res.Close {
		t.Errorf("%+v, %v", res, err)
	}
	// Over HTTP/2 the stream ends, and the connection serves others.
	patiently(t, func(timeout time.Duration) error {
		f := newFront(t, writes(200, jsonType, doneMessage), overHTTP2, func(s *setup) { s.options.ClientTimeout = timeout })
		reader, writer := io.Pipe()
		defer writer.Close()
		r := f.request("POST", "")
		r.Body, r.ContentLength = reader, 1000
		a := f.send(r)
		if b := f.do("POST", callMessage); a.status != 408 || b.body != doneMessage {
			return fmt.Errorf("%+v, then %+v", a, b)
		}
		return nil
	})
}

func TestAStreamHoldsBytesOnlyUntilTheClientHasThem(t *testing.T) {
	t.Parallel()
	long, end := event(strings.Replace(progress, "}", strings.Repeat(" ", 1<<20)+"}", 1)), make(chan bool)
	f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventType)
		io.WriteString(w, long[:len(long)/2])
		io.WriteString(w, long[len(long)/2:])
		<-end
		io.WriteString(w, event(doneMessage))
	})
	defer close(end)
	res, err := f.client.Do(f.request("POST", callMessage))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, len(long))); err != nil {
		t.Fatal(err)
	}
	await(t, "the bytes are given back", func() bool { return wire.BudgetUsed(f.handler) < 128<<10 })
}

func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	for kind, body := range map[string]string{jsonType: "", eventType: ": " + strings.Repeat("x", 2000) + "\n\n"} {
		ended, gone := make(chan bool), make(chan bool)
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			if w.Header().Set("Content-Type", kind); body == "" {
				long := strings.Replace(doneMessage, "[]", `["`+strings.Repeat("x", 2<<20)+`"]`, 1)
				w.Header().Set("Content-Length", fmt.Sprint(len(long)))
				io.WriteString(w, long)
			}
			for body != "" { // small events: each fits into a buffer of package http
				if _, err := io.WriteString(w, body); err != nil {
					break
				}
			}
			<-r.Context().Done()
			if _, err := io.WriteString(w, "x"); err == nil {
				t.Errorf("%s: the server does not learn that the client is gone", kind)
			}
			close(gone)
		}, smallBuffers, func(s *setup) {
			s.options.ClientTimeout = 100 * time.Millisecond
			s.outside = closesAtEnd(ended)
		})
		f.dial(len(callMessage), callMessage)
		for _, c := range []chan bool{gone, ended} {
			select {
			case <-c:
			case <-time.After(time.Minute):
				t.Fatalf("%s: the client holds the server", kind)
			}
		}
	}
}

// patiently runs a test that a slow machine may fail with a short timeout, with longer and longer ones.
func patiently(t *testing.T, try func(timeout time.Duration) error) {
	t.Helper()
	var err error
	for timeout := 100 * time.Millisecond; timeout < 10*time.Second; timeout *= 4 {
		if err = try(timeout); err == nil {
			return
		}
	}
	t.Error(err)
}

// Each piece of an answer has its own time, also if the server writes several in the time of one, or none for long.
func TestAStreamMayLastLongerThanTheClientTimeout(t *testing.T) {
	t.Parallel()
	for way, change := range inProcess {
		patiently(t, func(timeout time.Duration) error {
			f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", eventType)
				for _, pause := range []time.Duration{1, 1, 1, 1, 1, 1, 8} {
					io.WriteString(w, event(progress))
					time.Sleep(pause * timeout / 4)
				}
				io.WriteString(w, event(doneMessage))
				time.Sleep(2 * timeout) // the end of the answer must get through, too
			}, change, func(s *setup) { s.options.ClientTimeout = timeout })
			if a := f.do("POST", callMessage); a.err != nil || a.body != strings.Repeat(event(progress), 7)+event(doneMessage) {
				return fmt.Errorf("%s: %+v", way, a)
			}
			return nil
		})
	}
}

func TestDeadlinesEndWithTheirRequest(t *testing.T) {
	t.Parallel()
	for way, change := range inProcess {
		for name, request := range map[string]func(*front) answered{
			"answered": func(f *front) answered { return f.do("POST", callMessage) },
			"refused":  func(f *front) answered { return f.do("POST", "{") },
			"missing":  func(f *front) answered { return f.do("POST", callMessage, "Mcp-Session-Id", "x") },
		} {
			patiently(t, func(timeout time.Duration) error {
				var peers []string
				f := newFront(t, writes(200, jsonType, doneMessage), change, func(s *setup) {
					s.options.ClientTimeout = timeout
					s.outside = func(h http.Handler) http.Handler {
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if peers = append(peers, r.RemoteAddr); r.URL.Path != "/slow" {
								h.ServeHTTP(w, r)
								return
							}
							io.WriteString(w, "begun ")
							time.Sleep(2 * timeout)
							body, err := io.ReadAll(r.Body)
							fmt.Fprint(w, string(body), err)
						})
					}
				})
				if a := request(f); a.err != nil {
					return a.err
				}
				f.url = strings.Replace(f.url, "/mcp", "/slow", 1)
				if a := f.do("POST", "here"); a.body != "begun here<nil>" || peers[0] != peers[1] {
					return fmt.Errorf("%s, %s: %+v %v", way, name, a, peers)
				}
				return nil
			})
		}
	}
}

// deadlines records the deadlines that a door sets, and how much time a write had at least.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write time.Time
	least       time.Duration
}

func (d *deadlines) Write(p []byte) (int, error) {
	d.least = min(d.least, time.Until(d.write))
	return d.ResponseRecorder.Write(p)
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = t; return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// A client that is refused before its message was read must not keep its connection by sending the rest slowly, and no
// client by not reading the last bytes of an answer.
func TestWhatIsLeftOfARequestHasADeadline(t *testing.T) {
	t.Parallel()
	engine := newRig(t, tripseal.Config{}, wire.Config{}).engine
	door := engine.Handler(writes(200, jsonType, doneMessage), wire.Options{AllowAnonymous: true})
	for status, change := range map[int]func(r *http.Request){
		200: func(*http.Request) {},
		400: func(r *http.Request) { r.Method = http.MethodGet },
		405: func(r *http.Request) { r.Method = http.MethodPut },
		413: func(r *http.Request) { r.ContentLength = 1 << 40 },
		415: func(r *http.Request) { r.Header.Del("Content-Type") },
	} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(callMessage))
		r.Header.Set("Content-Type", jsonType)
		change(r)
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		door.ServeHTTP(w, r)
		if w.Code != status || w.read.IsZero() != (status == 200) || w.write.IsZero() {
			t.Errorf("%d, want %d; the deadlines are %v and %v", w.Code, status, w.read, w.write)
		}
	}
}

func TestEachPieceOfAnAnswerHasItsOwnTime(t *testing.T) {
	for _, timeout := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := &deadlines{ResponseRecorder: httptest.NewRecorder(), least: time.Hour}
			door := newRig(t, tripseal.Config{}, wire.Config{}).engine.Handler(
				http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", eventType)
					for range 20 {
						io.WriteString(w, event(progress))
						time.Sleep(timeout / 10)
					}
				}), wire.Options{AllowAnonymous: true, ClientTimeout: timeout})
			r := httptest.NewRequest("POST", "/", strings.NewReader(callMessage))
			r.Header.Set("Content-Type", jsonType)
			if door.ServeHTTP(w, r); w.least < timeout*3/4 || w.least > timeout {
				t.Errorf("of %v, a write has only %v", timeout, w.least)
			}
		})
	}
}

// brokenFlush is a client whose connection fails when it is flushed.
type brokenFlush struct{ *httptest.ResponseRecorder }

func (brokenFlush) FlushError() error { return errors.New("connection reset") }

func TestAnErrorOfFlushTellsTheServerThatTheClientIsGone(t *testing.T) {
	t.Parallel()
	engine := newRig(t, tripseal.Config{}, wire.Config{}).engine
	door := engine.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventType)
		io.WriteString(w, ": hi\n\n")
		if _, err := io.WriteString(w, ": hi\n\n"); err == nil || r.Context().Err() == nil {
			t.Errorf("%v, %v", err, r.Context().Err())
		}
	}), wire.Options{AllowAnonymous: true})
	r := httptest.NewRequest("POST", "/", strings.NewReader(callMessage))
	r.Header.Set("Content-Type", jsonType)
	w := brokenFlush{httptest.NewRecorder()}
	if door.ServeHTTP(w, r); w.Body.String() != ": hi\n\n" {
		t.Errorf("%q", w.Body)
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

func TestAStreamThatStaysOpenDoesNotHoldTheMessageThatBeganIt(t *testing.T) {
	const streams, length = 32, 1000 << 10
	for way, change := range eachWay {
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			if n, err := io.Copy(io.Discard, r.Body); n < length || err != nil {
				t.Errorf("%s: the server got %d bytes, %v", way, n, err)
			}
			w.Header().Set("Content-Type", eventType)
			io.WriteString(w, ": open\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, change, func(s *setup) {
			s.options.MaxRequest, s.options.MaxAnswer, s.options.Budget = 1<<20, 1<<16, 8<<20
		})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range streams {
			r := f.request("POST", "")
			r.Body = io.NopCloser(io.MultiReader( // the client would keep a text
				strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"x":"`, i)),
				io.LimitReader(endless{}, length), strings.NewReader(`"}}`)))
			res, err := f.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if n, _ := io.ReadFull(res.Body, make([]byte, 8)); res.StatusCode != 200 || n < 8 {
				t.Fatalf("%s: the stream %d: %d", way, i, res.StatusCode)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if used := wire.BudgetUsed(f.handler); used > streams*32<<10 {
			t.Errorf("%s: open streams use %d bytes of the budget", way, used)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > streams*length/2 {
			t.Errorf("%s: open streams hold %d bytes", way, grown)
		}
	}
}

func TestAMessageWhoseIDIsLongCountsUntilItsAnswer(t *testing.T) {
	const length = 1000 << 10
	var f *front
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", length) + `","method":"x"}`,
		`{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("x", length) + `"}`,
	} {
		f = newFront(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if used := wire.BudgetUsed(f.handler); used < 2*length {
				t.Errorf("the message counts %d bytes", used)
			}
			writes(200, jsonType, doneMessage)(w, r)
		})
		f.do("POST", message)
	}
}

// A reverse proxy begins again if its connection was closed before it had written anything.
func TestAServerCanBeginToReadAMessageAgain(t *testing.T) {
	for _, s := range []struct {
		method       string
		length, read int
	}{
		{"x", 100 << 10, 50 << 10}, {"x", 3 << 10, 4 << 10}, {"x", 1, 1 << 10}, {"tools/call", 100 << 10, 200 << 10},
	} {
		message := `{"jsonrpc":"2.0","id":7,"method":"` + s.method + `","params":{"name":"` + strings.Repeat("x", s.length) + `"}}`
		f := newFront(t, func(w http.ResponseWriter, r *http.Request) {
			io.ReadFull(r.Body, make([]byte, s.read))
			again, err := r.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(again); string(text) != message || err != nil {
				t.Errorf("%+v: %d bytes, %v", s, len(text), err)
			}
			writes(200, jsonType, doneMessage)(w, r)
		})
		if a := f.do("POST", message); a.status != 200 {
			t.Errorf("%+v: %+v", s, a)
		}
	}
}
