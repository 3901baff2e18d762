package httpcarrier

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripseal/tripseal/cmd/tripseal/internal/identity"
)

// slowClients are connections that announce a long message, and send little of it.
type slowClients struct {
	*front
	connections []net.Conn
	refused     atomic.Int64 // how many were answered with 503, because the budget had no bytes left
}

// connect opens n connections. Over each of them it sends the first half of a message; the parameter
// bytes is the length of that half.
func (s *slowClients) connect(n, bytes int) {
	s.t.Helper()
	address := strings.TrimPrefix(strings.TrimSuffix(s.url, "/mcp"), "http://")
	head := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, 2*bytes, callMessage[:1])
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			s.t.Fatal(err)
		}
		s.connections = append(s.connections, conn)
		io.WriteString(conn, head+strings.Repeat(" ", bytes-1))
		go func() {
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return // the test has closed the connection
			}
			if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
				s.t.Errorf("a slow client gets %s", res.Status)
			}
			s.refused.Add(1)
		}()
	}
}

// sendByte sends one byte over each connection. It ignores errors, because the proxy may have closed
// a connection whose request it refused.
func (s *slowClients) sendByte() {
	for _, conn := range s.connections {
		conn.Write([]byte(" "))
	}
}

func (s *slowClients) close() {
	for _, conn := range s.connections {
		conn.Close()
	}
}

// await waits until number() == want.
func (s *slowClients) await(what string, number func() int64, want int64) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); number() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: %d, want %d", what, number(), want)
		}
	}
}

// watch checks until the end of the test that no more bytes are used than the budget allows.
func (s *slowClients) watch() {
	b, done := &s.handler.budget, make(chan bool)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			if used := b.used.Load(); used > b.limit {
				s.t.Errorf("%d bytes are used, and %d are allowed", used, b.limit)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	s.t.Cleanup(func() {
		close(done)
		<-ended
	})
}

func manyClients() int {
	if raceEnabled || testing.Short() {
		return 200
	}
	return 2000
}

func TestSlowClientsHoldLittleAndStopNobody(t *testing.T) {
	n := manyClients()
	s := &slowClients{front: newFront(t, writes(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`))}
	s.watch()
	defer s.close()
	s.connect(n, 100)
	s.await("bytes in use", s.handler.budget.used.Load, int64(n)*4<<10)
	for range 3 {
		s.sendByte()
		if got := s.do("POST", callMessage); got.status != 200 || got.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("an honest client gets %d: %s", got.status, got.body)
		}
	}
	// A client can get its answer before the proxy gives the bytes of the request back to the budget.
	s.await("bytes in use", s.handler.budget.used.Load, int64(n)*4<<10)
	if refused := s.refused.Load(); refused > 0 {
		t.Errorf("%d slow clients were refused", refused)
	}
}

func TestSlowClientsGetNoMoreThanTheBudget(t *testing.T) {
	const message, held = 64 << 10, 8 << 10 // the proxy holds a buffer of 8 KiB for a client that has sent 5 KiB
	n := manyClients()
	fit := int64(n / 4)
	s := &slowClients{front: newFront(t, writes(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`), func(c *Config) {
		c.MaxRequest, c.MaxAnswer, c.Budget = message, message, fit*held
	})}
	s.watch()
	defer s.close()
	s.connect(n, 5<<10)
	s.await("clients that are held or refused", func() int64 { return s.handler.budget.used.Load()/held + s.refused.Load() }, int64(n))
	for range 3 {
		s.sendByte()
	}
	if used := s.handler.budget.used.Load(); used == 0 || used > fit*held {
		t.Errorf("%d bytes are in use", used)
	}
	s.close()
	s.await("bytes in use", s.handler.budget.used.Load, 0)
	if got := s.do("POST", callMessage); got.status != 200 {
		t.Errorf("after the slow clients an honest one gets %d: %s", got.status, got.body)
	}
}

// A client that is refused before its message was read must not keep its connection by
// sending the rest slowly.
func TestTheRestOfARefusedMessageHasADeadline(t *testing.T) {
	f := newFront(t, unused(t), func(c *Config) {
		c.Identity, _ = identity.FromHeader("X-User", nil)
	})
	for status, change := range map[int]func(r *http.Request){
		http.StatusUnauthorized:     func(*http.Request) {},
		http.StatusForbidden:        func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		http.StatusNotFound:         func(r *http.Request) { r.URL.Path = "/other" },
		http.StatusMethodNotAllowed: func(r *http.Request) { r.Method = http.MethodPut },
		http.StatusBadRequest:       func(r *http.Request) { r.Method = http.MethodGet },
	} {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(callMessage))
		r.Header.Set("Content-Type", "application/json")
		change(r)
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		f.handler.ServeHTTP(w, r)
		if w.Code != status || w.read.IsZero() {
			t.Errorf("%d, want %d; the deadline is %v", w.Code, status, w.read)
		}
	}
}

// deadlineRecorder records the read deadline that a handler sets.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (w *deadlineRecorder) SetReadDeadline(t time.Time) error {
	w.read = t
	return nil
}
