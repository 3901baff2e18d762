package replay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// SingleProcess is a [mcpseal.ReplayStore] in the memory of one process. Set it as
// mcpseal.Config.Replay if exactly one process opens the tokens.
type SingleProcess struct {
	config Config
	start  time.Time

	warned  atomic.Bool
	warning sync.Mutex // held while the log gets a warning

	mu   sync.Mutex // guards all fields below
	used uses       // its seed never changes, so reading it needs no lock

	oldest int64 // tokens issued before this time are refused; in Unix milliseconds
	offset int64 // how many seconds the wall clock was ahead of the monotonic clock at the last call

	// forgotten is the latest expiry among the uses that were removed. A token with this
	// expiry or an earlier one may have been used, so it is refused. Such a token can arrive
	// only after the wall clock was set back.
	forgotten int64
}

var (
	// ErrFull means that a token was refused because the store is full.
	ErrFull error = plain.Error("the store of used tokens is full: raise replay.Config.Capacity, or lower the boundary's TTL")
	// ErrOwnerFull means that a token was refused because tokens of its user already fill
	// a tenth of the store.
	ErrOwnerFull error = plain.Error("this user holds a tenth of the store of used tokens: " +
		"limit how many calls a user can make, or raise replay.Config.Capacity")
)

const (
	errTooOld = plain.Error("the token is older than the store of used tokens, which cannot know whether it was used: " +
		"the user starts over; normal just after a start, or the clock was set")
	errSetBack = plain.Error("the clock was set back, and the store of used tokens may have forgotten this one: " +
		"restart the process once the clock is right")
	errExpired  = plain.Error("the token has expired")
	errTooFar   = plain.Error("the token lasts longer than the store of used tokens can count")
	errBadRound = plain.Error("the token's round is not a number that a token can have")
)

const (
	maxRound = 1<<16 - 1
	// budget is how many expired uses one sweep removes at most, so that no request has to
	// wait until all of them are removed.
	budget = 64
	// maxSweeps is how many more sweeps a call makes if there is no room, before it refuses
	// the token.
	maxSweeps = 32
)

// NewSingleProcess returns an empty store. It sleeps for a millisecond, so that a token that
// is issued after the call has a later date than the store: dates are in milliseconds.
// Call NewSingleProcess once, when the server starts.
func NewSingleProcess(config Config) (*SingleProcess, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	before := time.Now()
	time.Sleep(time.Millisecond) // so that tokens issued from now on have a date after the time in the variable before
	s := newSingleProcess(config, time.Now())
	s.oldest = before.UnixMilli() + 1
	return s, nil
}

func newSingleProcess(config Config, start time.Time) *SingleProcess {
	return &SingleProcess{config: config, start: start, used: newUses(), oldest: start.UnixMilli()}
}

// Spend spends a token: see [mcpseal.ReplayStore]. A boundary calls Spend for each token
// that is otherwise accepted.
func (s *SingleProcess) Spend(ctx context.Context, use mcpseal.Use) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return s.spend(ctx, s.now(), use)
}

// NonBlocking returns s, because Spend cannot block: see [mcpseal.NonBlockingStore]. If the
// store has an observer, NonBlocking returns nil, because Spend calls the observer, which may
// block. Spend also writes a warning to the log, but waits for the log for a second at most.
func (s *SingleProcess) NonBlocking() mcpseal.ReplayStore {
	if s.config.Observer != nil {
		return nil
	}
	return s
}

func (s *SingleProcess) spend(ctx context.Context, now moment, use mcpseal.Use) (first bool, err error) {
	first, changed, level, err := s.decide(ctx, now, use)
	if changed {
		s.report(level)
	}
	return first, err
}

// decide spends the token if that is allowed. first and err are what Spend returns. changed
// is true if the store's level changed, and level is the new level.
func (s *SingleProcess) decide(ctx context.Context, now moment, use mcpseal.Use) (first, changed bool, level Level, err error) {
	until := -floorSeconds(s.start.Round(0).Sub(use.Until)) // the token's expiry in seconds since the store started, rounded up
	due := now.running + 1 + until - now.wall               // one second more, because now is rounded down
	c := s.used.newEntry(&use, until)                       // before the lock, because its two hashes take long
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, false, level, err // the caller gave up while this call waited for the lock
	}
	s.watch(now)
	// 1. Refuse a use that makes no sense.
	switch {
	case use.Round < 0 || use.Round > maxRound:
		return false, false, level, errBadRound
	case until <= now.wall:
		return false, false, level, errExpired
	case until >= never || due >= never:
		return false, false, level, errTooFar
	}
	// 2. Remove some expired uses, and more of them if there is no room.
	before := s.used.len()
	more := s.sweep(now)
	first, err = s.maySpend(c, use.Issued)
	for n := 0; n < maxSweeps && more && (err == ErrFull || err == ErrOwnerFull); n++ {
		more = s.sweep(now)
		first, err = s.maySpend(c, use.Issued)
	}
	// 3. Remember the token if it was not used before.
	if first {
		s.used.add(c, due)
	}
	return first, first || s.used.len() != before, s.level(), err
}

// maySpend decides whether a token may be spent now, and returns what Spend returns for it.
func (s *SingleProcess) maySpend(c entry, issued time.Time) (first bool, err error) {
	switch {
	case s.used.has(c.token):
		return false, nil
	case issued.UnixMilli() < s.oldest:
		return false, errTooOld
	case int64(c.until) <= s.forgotten:
		return false, errSetBack
	case s.used.heldBy(c.owner) >= max(1, s.config.Capacity/10):
		return false, ErrOwnerFull
	case s.used.len() >= s.config.Capacity:
		return false, ErrFull
	}
	return true, nil
}

// sweep removes some expired uses, and reports whether any expired uses are left.
func (s *SingleProcess) sweep(now moment) (more bool) {
	return s.used.expire(now, budget, func(c entry) { s.forgotten = max(s.forgotten, int64(c.until)) })
}

var _ mcpseal.NonBlockingStore = (*SingleProcess)(nil)
