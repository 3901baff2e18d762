package replay

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripseal/tripseal"
)

// SingleProcess is a [tripseal.ReplayStore] in the memory of one process. Set it as
// tripseal.Config.Replay if exactly one process opens the tokens.
type SingleProcess struct {
	config Config
	start  time.Time
	seed   maphash.Seed

	warned  atomic.Bool
	warning sync.Mutex // held while the log gets a warning

	leaps  sync.Mutex   // held while the two fields below change
	oldest atomic.Int64 // tokens issued before this time are refused; in Unix milliseconds
	offset atomic.Int64 // how many seconds the wall clock was ahead of the monotonic clock at the last call

	owners owners
	shards []shard

	_    [64]byte     // so that counting does not slow down other cores that read the fields above
	held atomic.Int64 // how many used tokens the store remembers
}

// shard is a part of the store. The hash of a token decides to which shard the token
// belongs. Each shard has its own lock, so that two calls seldom wait for each other.
type shard struct {
	mu   sync.Mutex // guards the fields below; locked before a mutex in SingleProcess.owners
	used usedTokens

	// forgotten is the latest expiry among the uses that were removed. A token with this
	// expiry or an earlier one may have been used, so it is refused. Such a token can arrive
	// only after the wall clock was set back.
	forgotten int64
	_         [64]byte // so that no two shards share a cache line
}

var (
	// ErrFull means that a token was refused because the store is full.
	ErrFull error = tripseal.PlainError("the store of used tokens is full: raise replay.Config.Capacity, or lower the boundary's TTL")
	// ErrOwnerFull means that a token was refused because tokens of its user, at the same
	// boundary, already fill a tenth of the store.
	ErrOwnerFull error = tripseal.PlainError("this user holds a tenth of the store of used tokens: " +
		"limit how many calls a user can make, or raise replay.Config.Capacity")
)

const (
	errTooOld = tripseal.PlainError("the token is older than the store of used tokens, and the store cannot know whether this token was used: " +
		"the user starts over; normal just after a start, or after the clock was set")
	errSetBack = tripseal.PlainError("the clock was set back, and the store of used tokens may have forgotten this one: " +
		"restart the process once the clock is right")
	errExpired  = tripseal.PlainError("the token has expired")
	errTooFar   = tripseal.PlainError("the token lasts longer than the store of used tokens can count")
	errBadRound = tripseal.PlainError("the token's round is not a number that a token can have")
)

const (
	maxRound = 1<<16 - 1
	// maxSwept is the largest number of expired uses that one sweep removes, so that no request has
	// to wait until all of them are removed.
	maxSwept = 64
	// shards is the number of shards. A call that finds no room sweeps all of them before it
	// refuses the token.
	shards = 32
)

// NewSingleProcess returns an empty store. It sleeps for a millisecond, because dates are in
// milliseconds. So every token that is issued after NewSingleProcess has returned has a later date
// than the store. Call NewSingleProcess once, when the server starts.
func NewSingleProcess(config Config) (*SingleProcess, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	called := time.Now()
	time.Sleep(time.Millisecond) // so that every token issued after this line has a later date than the time above
	s := newSingleProcess(config, time.Now(), shards)
	s.oldest.Store(called.UnixMilli() + 1)
	return s, nil
}

func newSingleProcess(config Config, start time.Time, shards int) *SingleProcess {
	s := &SingleProcess{config: config, start: start, seed: maphash.MakeSeed(), shards: make([]shard, shards)}
	s.oldest.Store(start.UnixMilli())
	return s
}

// Spend spends a token: see [tripseal.ReplayStore]. A boundary calls Spend for each token
// that is otherwise accepted.
func (s *SingleProcess) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return s.spend(ctx, s.now(), use)
}

// NonBlocking returns s, or nil if the store has an observer: see [tripseal.NonBlockingStore].
// Spend calls the observer, which may block. Without an observer, Spend waits only for the
// log: at most one second, and only when it writes a warning.
func (s *SingleProcess) NonBlocking() tripseal.ReplayStore {
	if s.config.Observer != nil {
		return nil
	}
	return s
}

func (s *SingleProcess) spend(ctx context.Context, now moment, use tripseal.Use) (first bool, err error) {
	until := -floorSeconds(s.start.Round(0).Sub(use.Until)) // the token's expiry in seconds since the store started, rounded up
	due := now.running + 1 + until - now.wall               // one second more, because now.running and now.wall are rounded down
	s.watch(now)
	// 1. Refuse a use that makes no sense.
	switch {
	case use.Round < 0 || use.Round > maxRound:
		return false, errBadRound
	case until <= now.wall:
		return false, errExpired
	case until >= never:
		return false, errTooFar
	}
	// 2. Spend the token. If there is no room, remove expired uses everywhere and try again.
	token, entry := s.newEntry(&use, until)
	first, removed, err := s.decide(ctx, now, token, entry, due, use.Issued)
	for more := true; more && (err == ErrFull || err == ErrOwnerFull); {
		var swept, removedToo int
		swept, more = s.sweepAll(now)
		first, removedToo, err = s.decide(ctx, now, token, entry, due, use.Issued)
		removed += swept + removedToo
	}
	if first || removed > 0 {
		s.report(now)
	}
	return first, err
}

// decide spends the token if that is allowed, and returns what Spend returns. It also sweeps the
// token's shard, and returns how many expired uses the sweep removed.
func (s *SingleProcess) decide(ctx context.Context, now moment, t token, e entry, due int64, issued time.Time) (first bool, removed int, err error) {
	shard := &s.shards[uint64(t)%uint64(len(s.shards))]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, 0, err // the caller gave up while this call waited for the lock
	}
	removed, _ = s.sweepLocked(shard, now)
	switch _, used := shard.used.entries[t]; {
	case used:
		return false, removed, nil
	case issued.UnixMilli() < s.oldest.Load():
		return false, removed, errTooOld
	case int64(e.until) <= shard.forgotten:
		return false, removed, errSetBack
	case !s.owners.take(e.owner, max(1, s.config.Capacity/10)):
		return false, removed, ErrOwnerFull
	case !s.takeRoom():
		s.owners.release(e.owner)
		return false, removed, ErrFull
	}
	shard.used.add(t, e, due)
	return true, removed, nil
}

// takeRoom counts one more use, or returns false if the store is full.
func (s *SingleProcess) takeRoom() bool {
	for {
		held := s.held.Load()
		if held >= int64(s.config.Capacity) {
			return false
		}
		if s.held.CompareAndSwap(held, held+1) {
			return true
		}
	}
}

// sweepAll removes some expired uses of each shard. It returns how many it removed, and true
// if any are left.
func (s *SingleProcess) sweepAll(now moment) (removed int, more bool) {
	for i := range s.shards {
		n, left := s.sweep(&s.shards[i], now)
		removed, more = removed+n, more || left
	}
	return removed, more
}

// sweep does the same as sweepAll, for one shard.
func (s *SingleProcess) sweep(shard *shard, now moment) (removed int, more bool) {
	shard.mu.Lock()
	defer shard.mu.Unlock()
	return s.sweepLocked(shard, now)
}

// sweepLocked does what sweep does. The caller holds the shard's lock.
func (s *SingleProcess) sweepLocked(shard *shard, now moment) (removed int, more bool) {
	more = shard.used.expire(now, maxSwept, func(e entry) {
		shard.forgotten = max(shard.forgotten, int64(e.until))
		s.owners.release(e.owner)
		s.held.Add(-1)
		removed++
	})
	return removed, more
}

var _ tripseal.NonBlockingStore = (*SingleProcess)(nil)
