package redisreplay_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// relay is a way to a server that a test controls: it can lead elsewhere, and be
// slow.
type relay struct {
	addr          string
	losesAnswerTo func(command []byte) bool // and hangs up

	mu    sync.Mutex
	to    string
	delay time.Duration
	keeps bool                  // its clients' connections when the server is gone
	held  bool                  // nothing that the server sends arrives any more
	conns map[net.Conn]net.Conn // of clients, and where they lead
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
	// What the server sends arrives later, in order, without holding up the rest.
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
		default: // so slow that nobody takes it any more
			hangUp()
			return
		}
	}
}

// dial connects to the server, once more for a client whose connection is kept.
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

// lead sends those who connect from now on elsewhere.
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

// cut hangs up on all.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for near, far := range r.conns {
		near.Close()
		far.Close()
		delete(r.conns, near)
	}
}
