package replay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// SingleProcess is a store in the memory of one process.
type SingleProcess struct {
	config Config
	start  time.Time

	warned atomic.Bool

	mu   sync.Mutex // guards what follows
	used uses

	oldest int64 // tokens issued before this time are refused; in Unix milliseconds
	offset int64 // how far the wall clock was ahead of the monotonic one at the last call

	// forgotten is the latest expiry among the uses that were removed. A token that
	// expires then or earlier may have been used, so it is refused. It can only be valid
	// if the wall clock was set back since.
	forgotten int64
}

var (
	// ErrFull refuses a token because the store is full.
	ErrFull error = plain.Error("the store of used tokens is full: raise replay.Config.Capacity, or lower the boundary's TTL")
	// ErrOwnerFull refuses a token because its user already holds a tenth of the
	// store.
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
	// budget is how many expired uses one sweep removes, so that no request has to wait
	// for the removal of all that expired since the last one.
	budget = 64
	// maxSweeps is how often a call that finds no room sweeps before it refuses.
	maxSweeps = 32
)

// NewSingleProcess returns an empty store. It sleeps for a millisecond, so that a token
// that is issued next, dated in milliseconds, is newer than the store.
func NewSingleProcess(config Config) (*SingleProcess, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	before := time.Now()
	time.Sleep(time.Millisecond) // so that tokens issued from now on are newer than before
	s := newSingleProcess(config, time.Now())
	s.oldest = before.UnixMilli() + 1
	return s, nil
}

func newSingleProcess(config Config, start time.Time) *SingleProcess {
	return &SingleProcess{config: config, start: start, used: newUses(), oldest: start.UnixMilli()}
}

// Spend implements [mcpseal.ReplayStore].
func (s *SingleProcess) Spend(ctx context.Context, use mcpseal.Use) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return s.spend(ctx, s.now(), use)
}

func (s *SingleProcess) spend(ctx context.Context, now moment, use mcpseal.Use) (first bool, err error) {
	first, changed, level, err := s.decide(ctx, now, use)
	if changed {
		s.report(level)
	}
	return first, err
}

// decide spends the token if it may. first and err are what Spend returns; changed
// reports whether the level changed.
func (s *SingleProcess) decide(ctx context.Context, now moment, use mcpseal.Use) (first, changed bool, level Level, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, false, level, err // the caller gave up during the wait for the lock
	}
	s.watch(now)
	// 1. Refuse a use that makes no sense.
	until := -floorSeconds(s.start.Round(0).Sub(use.Until)) // rounded up
	due := now.running + 1 + until - now.wall               // one more, because now is rounded down
	switch {
	case use.Round < 0 || use.Round > maxRound:
		return false, false, level, errBadRound
	case until <= now.wall:
		return false, false, level, errExpired
	case until >= never || due >= never:
		return false, false, level, errTooFar
	}
	// 2. Remove some of what has expired, and more of it if there is no room.
	before := s.used.len()
	more := s.sweep(now)
	c := s.used.newEntry(&use, until)
	first, err = s.maySpend(c, use.Issued)
	for n := 0; n < maxSweeps && more && (err == ErrFull || err == ErrOwnerFull); n++ {
		more = s.sweep(now)
		first, err = s.maySpend(c, use.Issued)
	}
	// 3. Remember the token.
	if first {
		s.used.add(c, due)
	}
	return first, first || s.used.len() != before, s.level(), err
}

// maySpend returns what Spend returns for a token: first is true if it may be spent now.
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

// sweep removes some expired uses, and reports whether any are left.
func (s *SingleProcess) sweep(now moment) (more bool) {
	return s.used.expire(now, budget, func(c entry) { s.forgotten = max(s.forgotten, int64(c.until)) })
}

var _ mcpseal.ReplayStore = (*SingleProcess)(nil)
