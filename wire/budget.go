package wire

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// budget limits how many bytes the messages of all requests together use in memory. If too few are left, it first takes
// them from whoever holds bytes and makes a door wait: a client that sends its message slowly, or takes its answer
// slowly. So slow clients cannot lock the others out.
type budget struct {
	limit int64

	mu      sync.Mutex
	used    int64
	waiting map[*share]struct{} // the shares that wait for their clients
	freed   chan struct{}       // closed when bytes are given back; nil if nobody waits for them
}

func newBudget(limit int64) *budget {
	return &budget{limit: limit, waiting: map[*share]struct{}{}}
}

const (
	// patience is how long a client may hold bytes, at any speed.
	patience = time.Second
	// step is how many bytes a client must send or take before they count, so that single bytes do not.
	step = 16 << 10
	// reclaiming is how long a request waits for the bytes of a slow client.
	reclaiming = 2 * time.Second
)

// reclaim ends the wait for the slowest clients that have kept a door waiting for longer than patience allows, until n
// bytes are there for the share s, or will be soon. It returns false if that cannot be.
func (b *budget) reclaim(s *share, n int64) bool {
	soon, later := b.limit-b.used, int64(0)
	var slow []*share
	for w := range b.waiting {
		switch {
		case w.cut:
			soon += w.held
			continue
		case time.Since(w.since) > patience && w.held > 0:
			slow = append(slow, w)
		}
		if w != s {
			later += w.held
		}
	}
	if soon+later < n {
		return false
	}
	slices.SortFunc(slow, func(x, y *share) int { return x.last.Compare(y.last) })
	for _, w := range slow {
		if soon >= n || s.cut {
			break
		}
		w.cut = true
		w.end()
		soon += w.held
		b.wake() // it may wait for bytes itself
	}
	return !s.cut
}

// wake lets everybody who waits for bytes look again.
func (b *budget) wake() {
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// share is the part of a budget that one message holds. Only one goroutine at a time may make it larger.
type share struct {
	of *budget

	// The rest is guarded by of.mu.
	held  int64
	end   func()    // ends the wait for the client
	since time.Time // when the wait began
	last  time.Time // when the client had sent or taken a step more: the slowest client is the one with the earliest time
	moved int       // how many bytes it has sent or taken since then
	cut   bool      // true if the wait was ended
}

// resize changes the size of the share to n bytes. If the budget has too few bytes left, and cannot have them from slow
// clients, or if the share's own client is the slowest, it changes nothing and returns false.
func (s *share) resize(n int) bool {
	b, deadline := s.of, time.Now().Add(reclaiming)
	b.mu.Lock()
	defer b.mu.Unlock()
	more := int64(n) - s.held
	for more > b.limit-b.used {
		if s.cut || int64(n) > b.limit || !b.reclaim(s, more) || time.Now().After(deadline) {
			return false
		}
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-time.After(patience / 8): // by then, other clients can have become slow
		}
		b.mu.Lock()
	}
	b.used += more
	if s.held = int64(n); more < 0 {
		b.wake()
	}
	return true
}

func (s *share) release() { s.resize(0) }

// wait says that the share waits for its client from now on, until resume. The function end ends the wait early.
func (s *share) wait(end func()) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	now := time.Now()
	s.end, s.since, s.last, s.moved = end, now, now, 0
	s.of.waiting[s] = struct{}{}
}

func (s *share) resume() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.waiting, s)
}

// progress says that the client has sent or taken n bytes. It returns false if the wait for the client was ended.
func (s *share) progress(n int) bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.moved += n; s.moved >= step {
		s.last, s.moved = time.Now(), 0
	}
	return !s.cut
}

var (
	errTooLong  = errors.New("the message is too long")
	errNoBudget = errors.New("too many bytes are in flight")
)

// leastShare and mostExpected are how many bytes are allocated before a message arrives: for one of unknown length, and
// at most.
const (
	leastShare   = 1 << 10
	mostExpected = 128 << 10
)

// chunkSize is the size of the largest buffer that a door keeps while nothing is in it, in bytes.
const chunkSize = 32 << 10

// collected collects the bytes of one message.
type collected struct {
	text  []byte
	limit int
	share *share // it holds twice the room of the text, because the engine copies what it reads
}

// expect makes room for a message whose likely length is n, or -1. But a peer uses little of the budget if it announces
// a long message and does not send it: the room grows with the bytes that arrive.
func (m *collected) expect(n int64) error {
	if n < 0 {
		n = leastShare
	}
	return m.grow(int(min(n, mostExpected, int64(m.limit))) + 1) // one more shows whether the message goes on
}

// grow makes room for n more bytes.
func (m *collected) grow(n int) error {
	need := len(m.text) + n
	if need <= cap(m.text) {
		return nil
	}
	size := max(need, min(2*cap(m.text), m.limit+1))
	if !m.share.resize(2 * size) {
		return errNoBudget
	}
	m.text = append(make([]byte, 0, size), m.text...)
	return nil
}

// add adds bytes at the end of the message.
func (m *collected) add(p []byte) error {
	if len(m.text)+len(p) > m.limit {
		return errTooLong
	}
	err := m.grow(len(p))
	if err == nil {
		m.text = append(m.text, p...)
	}
	return err
}

// readWhole reads a message up to its end. The parameter expected is its likely length, or -1.
func (m *collected) readWhole(from io.Reader, expected int64) error {
	err := m.expect(expected)
	for err == nil {
		var n int
		n, err = from.Read(m.text[len(m.text):cap(m.text)])
		m.text = m.text[:len(m.text)+n]
		m.share.progress(n)
		switch {
		case len(m.text) > m.limit:
			return errTooLong
		case err == io.EOF:
			return nil
		case err == nil:
			err = m.grow(1)
		}
	}
	return err
}
