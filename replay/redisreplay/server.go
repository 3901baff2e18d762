package redisreplay

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripseal/tripseal"
)

const (
	// lookEvery is how often the store checks a server's epoch. The store trusts an answer
	// of the server only if the last check began at most lookFresh before the answer.
	lookEvery = 500 * time.Millisecond
	lookFresh = time.Second

	lookTimeout = 2 * time.Second

	errForgot = tripseal.PlainError("Redis may have forgotten whether this token was used: " +
		"the user starts over; normal for a minute after Redis was new, restarted, flushed or failed over")
	errUnknown  = tripseal.PlainError("the answer came from a Redis that the store has not checked")
	errRestless = tripseal.PlainError("the epoch in Redis changes too fast to be read")
	errPanicked = tripseal.PlainError("a hook of the Redis client panicked")
)

// server represents one Redis server that keeps used tokens: the only one, or a node of a cluster.
// A *server is installed as a hook in the client, so it sees every connection and every command.
type server struct {
	store  *Store
	client *redis.Client
	dials  atomic.Int64         // how many connections the client has made so far
	seen   atomic.Pointer[look] // the last successful check of the epoch

	mu      sync.Mutex
	now     *look // the check that is under way, or nil if there is none
	watched bool

	// Only the goroutine that does a check uses the fields key and slot.
	key  string // the key that holds the epoch
	slot int
}

// look is one check of a server's epoch.
type look struct {
	began time.Time
	dials int64 // how many connections the client had made when the check began

	done   chan struct{} // closed when the fields below are set and the check is done
	err    error
	report report
	epoch  epoch
	from   time.Time // tokens issued before this time are refused
}

// This method returns true if the check is still valid for an answer of the server. The parameter
// answerTime is when the server answered. The parameter dials is how many connections the client
// had made until that time. The check is not valid if the client has made a connection since the
// check began: that connection may lead to a server that was restarted, or to another server.
func (l *look) covers(dials int64, answerTime time.Time) bool {
	if l == nil || l.dials < dials {
		return false
	}
	// The check must be fresh by two clocks: the monotonic clock stops while the machine
	// sleeps, and the wall clock can be set.
	age, asleep := answerTime.Sub(l.began), answerTime.Round(0).Sub(l.began.Round(0))
	return age <= 0 || age <= lookFresh && asleep <= lookFresh
}

// confirm is called after the server has accepted a token as unused. It returns an error if
// the server may have forgotten an earlier use of the token. It sends commands to the server
// only if the connection may be new or the last check is too old.
func (s *server) confirm(ctx context.Context, issued time.Time) error {
	l, dials, now := s.seen.Load(), s.dials.Load(), time.Now()
	if !l.covers(dials, now) {
		var err error
		if l, err = s.look(ctx, dials, now); err != nil {
			return err
		}
	}
	if issued.Before(l.from) {
		return errForgot
	}
	return nil
}

// look waits for a check of the epoch, and returns this check. If no check is under way, look
// starts one. The check is valid for the answer that the parameters describe: see [look.covers].
// Concurrent callers share the same check.
func (s *server) look(ctx context.Context, dials int64, answerTime time.Time) (*look, error) {
	for {
		s.mu.Lock()
		l := s.now
		if l == nil {
			l = &look{began: time.Now(), dials: s.dials.Load(), done: make(chan struct{})}
			s.now = l
			go s.run(l)
		}
		s.mu.Unlock()
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, explain(ctx.Err())
		}
		if l.covers(dials, answerTime) {
			return l, l.err
		}
	}
}

func (s *server) run(l *look) {
	defer func() {
		if recover() != nil {
			l.err = errPanicked
		}
		if l.err == nil {
			s.seen.Store(l)
		}
		s.mu.Lock()
		s.now = nil
		if l.err == nil && !s.watched {
			s.watched = true
			go s.watch()
		}
		s.mu.Unlock()
		close(l.done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	if err := s.settle(ctx, l); err != nil {
		l.err = explain(err)
	}
}

// watch checks the server's epoch regularly until the client is closed, and less often
// while the server is down.
func (s *server) watch() {
	for wait := lookEvery; ; {
		time.Sleep(wait)
		if s.store.refused.Load() {
			return
		}
		_, err := s.look(context.Background(), 0, time.Now())
		switch {
		case err == nil:
			wait = lookEvery
		case errors.Is(err, redis.ErrClosed):
			s.store.forget(s.client)
			return
		default:
			wait = min(2*wait, 4*lookEvery)
		}
	}
}

// DialHook counts each connection when it is made, before anything is sent on it.
func (s *server) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			s.dials.Add(1)
		}
		return conn, err
	}
}

// ProcessHook notes, in each command of this store, which server answers the command.
func (s *server) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.answer(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook does what ProcessHook does, for commands in a pipeline. A cluster
// client sends a pipeline when it follows an ASK redirect to another node.
func (s *server) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s.answer(cmd)
		}
		return next(ctx, cmds)
	}
}

func (s *server) answer(cmd redis.Cmder) {
	if c, ok := cmd.(*command); ok && c.store == s.store {
		c.by = s
	}
}
