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
	held  bool // nothing that the server sends arrives any more
	conns map[net.Conn]bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: listener.Addr().String(), to: to, conns: map[net.Conn]bool{}}
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
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		near.Close()
		return
	}
	r.mu.Lock()
	r.conns[near], r.conns[far] = true, true
	r.mu.Unlock()
	var once sync.Once
	hangUp := func() {
		once.Do(func() {
			near.Close()
			far.Close()
			r.mu.Lock()
			delete(r.conns, near)
			delete(r.conns, far)
			r.mu.Unlock()
		})
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
			if _, err := far.Write(buffer[:n]); err != nil {
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
	defer close(late)
	for {
		data := make([]byte, 16<<10)
		n, err := far.Read(data)
		if err != nil {
			return
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
	for conn := range r.conns {
		conn.Close()
	}
}
