package proxycmd

import (
	"bufio"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// startLimited starts a server that allows three connections, and returns its address.
func startLimited(t *testing.T, handler http.HandlerFunc, secure *tls.Config) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	server := newServer(handler, 3, slog.New(slog.DiscardHandler))
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return address
}

// held is a connection of a client.
type held struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func hold(t *testing.T, address string, secure *tls.Config) held {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	return held{t, conn, bufio.NewReader(conn)}
}

func (h held) ask() {
	h.t.Helper()
	if _, err := io.WriteString(h, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		h.t.Error(err)
	}
}

// answered reports whether the answer to a request comes.
func (h held) answered() bool {
	res, err := http.ReadResponse(h.in, nil)
	if err != nil {
		return false
	}
	io.Copy(io.Discard, res.Body)
	return res.StatusCode == http.StatusOK
}

func TestAConnectionThatOnlyWaitsGivesWayToANewOne(t *testing.T) {
	t.Parallel() // it waits until new connections count as idle
	withCertificate := httptest.NewTLSServer(nil)
	withCertificate.Close()
	ok := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }
	for _, secure := range []*tls.Config{nil, {InsecureSkipVerify: true, Certificates: withCertificate.TLS.Certificates}} {
		address := startLimited(t, ok, secure)
		for range 3 {
			hold(t, address, nil) // says nothing
		}
		h := hold(t, address, secure)
		if h.ask(); !h.answered() {
			t.Error("a connection gets no answer because others say nothing")
		}
	}
}

// pretended is a connection that only remembers whether it was closed.
type pretended struct {
	net.Conn
	closed bool
}

func (p *pretended) Close() error {
	p.closed = true
	return nil
}

func TestTheConnectionThatIsIdleForLongestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConnections(3)
		var all [6]pretended
		state := func(i int, to http.ConnState) {
			time.Sleep(time.Millisecond)
			c.track(&all[i], to)
		}
		expect := func(closed string) {
			t.Helper()
			got := ""
			for i := range all {
				if all[i].closed {
					got += strconv.Itoa(i)
				}
			}
			if got != closed {
				t.Errorf("the connections %q were closed, not %q", got, closed)
			}
		}
		for i := range 3 {
			state(i, http.StateNew)
			state(i, http.StateActive)
		}
		state(1, http.StateIdle)
		state(0, http.StateIdle)
		expect("")
		state(3, http.StateNew)
		expect("1")
		for _, late := range []http.ConnState{http.StateActive, http.StateIdle} {
			state(1, late) // it was closed, so it takes no place
		}
		state(4, http.StateNew)
		expect("01")
		start := time.Now()
		state(5, http.StateNew) // waits until 3 counts as idle, because 2 works and 4 is newer
		if expect("013"); time.Since(start) < newness/2 {
			t.Error("a new connection was closed at once")
		}
		state(4, http.StateClosed)
		state(3, http.StateNew)
		expect("013")
	})
}

func TestConnectionsThatWorkAreNotClosedForOthers(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan bool, 4), make(chan bool)
	address := startLimited(t, func(http.ResponseWriter, *http.Request) {
		arrived <- true
		<-release
	}, nil)
	var all []held
	for range 4 {
		h := hold(t, address, nil)
		h.ask()
		all = append(all, h)
	}
	for range 3 {
		<-arrived
	}
	select {
	case <-arrived:
		t.Error("there are more connections than allowed")
	case <-time.After(2 * newness):
	}
	close(release)
	for _, h := range all {
		if !h.answered() {
			t.Error("a connection was closed while it worked, or waited for one")
		}
	}
}
