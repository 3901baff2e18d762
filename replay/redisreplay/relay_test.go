package redisreplay_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// relay passes connections on to a server. A test can make it lead to another server,
// delay or drop what the server sends, and keep connections when the server is gone.
type relay struct {
	addr          string
	losesAnswerTo func(command []byte) bool // if it returns true, the relay drops the answer and hangs up

	mu    sync.Mutex
	to    string
	delay time.Duration
	keeps bool                  // true if clients stay connected when the server is gone
	held  bool                  // true if everything that the server sends is dropped
	conns map[net.Conn]net.Conn // maps the connection of a client to the connection to the server
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: listener.Addr().String(), to: to, conns: map[net.Conn]net.Conn{}}
	t.Cleanup(func() { listener.Close(); r.cut() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(near)
		}
	}()
	return r
}

func (r *relay) serve(near net.Conn) {
	far, err := r.dial(nil)
	if err != nil {
		near.Close()
		return
	}
	r.mu.Lock()
	r.conns[near] = far
	r.mu.Unlock()
	hangUp := func() {
		near.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		if far := r.conns[near]; far != nil {
			far.Close()
			delete(r.conns, near)
		}
	}
	lost := make(chan struct{})
	go func() {
		defer hangUp()
		buffer := make([]byte, 64<<10)
		for {
			n, err := near.Read(buffer)
			if err != nil {
				return
			}
			if r.losesAnswerTo != nil && r.losesAnswerTo(buffer[:n]) {
				close(lost)
			}
			r.mu.Lock()
			far, keeps := r.conns[near], r.keeps
			r.mu.Unlock()
			if far == nil {
				return
			}
			if _, err := far.Write(buffer[:n]); err != nil && !keeps {
				return
			}
		}
	}()
	// A goroutine passes on what the server sends, in order and after the delay. Meanwhile
	// the loop below goes on reading.
	type piece struct {
		due  time.Time
		data []byte
	}
	late := make(chan piece, 1<<16)
	defer close(late)
	go func() {
		defer hangUp()
		for p := range late {
			time.Sleep(time.Until(p.due))
			r.mu.Lock()
			held := r.held
			r.mu.Unlock()
			if held {
				continue
			}
			if _, err := near.Write(p.data); err != nil {
				return
			}
		}
	}()
	for {
		data := make([]byte, 16<<10)
		n, err := far.Read(data)
		if err != nil {
			if far, err = r.dial(near); err != nil {
				return
			}
			continue
		}
		select {
		case <-lost:
			hangUp()
			return
		default:
		}
		r.mu.Lock()
		delay := r.delay
		r.mu.Unlock()
		select {
		case late <- piece{time.Now().Add(delay), data[:n]}:
		default: // too much is waiting to be passed on
			hangUp()
			return
		}
	}
}

// dial connects to the server for a client. For a new client, the argument is nil, and dial tries
// once. For a client that has lost its server, the argument is the connection of the client. In
// this case dial tries for up to 20 seconds, but stops as soon as r.keeps is false or the client
// has gone.
func (r *relay) dial(near net.Conn) (net.Conn, error) {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		to, again := r.to, near == nil || r.keeps && r.conns[near] != nil
		r.mu.Unlock()
		if !again {
			return nil, net.ErrClosed
		}
		far, err := net.Dial("tcp", to)
		if near == nil || err == nil || time.Now().After(deadline) {
			if near != nil && err == nil {
				r.mu.Lock()
				r.conns[near] = far
				r.mu.Unlock()
			}
			return far, err
		}
	}
}

// lead makes the relay connect to another server from now on.
func (r *relay) lead(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
}

func (r *relay) slow(delay time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = delay
}

func (r *relay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = true
}

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for near, far := range r.conns {
		near.Close()
		far.Close()
		delete(r.conns, near)
	}
}
