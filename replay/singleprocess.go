package replay

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/mcpseal/mcpseal"
	"github.com/mcpseal/mcpseal/internal/plain"
)

// SingleProcess is a store in the memory of one process.
type SingleProcess struct {
	config Config
	start  time.Time
	seed   maphash.Seed
	held   atomic.Int64
	turn   atomic.Uint32 // the shard at which the next sweep begins
	warned atomic.Bool
	owners owners
	shards [shards]shard

	oldest atomic.Int64 // what a token may be dated, in Unix milliseconds
	offset atomic.Int64 // how far the wall clock was last seen ahead of the running one

	// forgotten is the latest that a claim that was removed lasted. The wall
	// clock was past it then; where it is not any more, it was set back, and
	// tokens that last no longer may have been used.
	forgotten atomic.Int64
}

var (
	// ErrFull is why a token is refused when the store is full.
	ErrFull error = plain.Error("the store of used tokens is full: raise replay.Config.Capacity, or lower the boundary's TTL")
	// ErrOwnerFull is why a token is refused to a user who holds a tenth of the
	// store.
	ErrOwnerFull error = plain.Error("this user holds a tenth of the store of used tokens: " +
		"limit how many calls a user can make, or raise replay.Config.Capacity")
)

const (
	errTooOld = plain.Error("the token is older than the store of used tokens, which cannot know whether it was used: " +
		"the user starts over; normal just after a start, or the clock was set")
	errSetBack = plain.Error("the clock was set back, and the store of used tokens may have forgotten this one: " +
		"restart the process once the clock is right")
	errOver     = plain.Error("the token is over")
	errTooFar   = plain.Error("the token lasts longer than the store of used tokens can count")
	errBadRound = plain.Error("the token's round is not a number that a token can have")
)

const maxRound = 1<<16 - 1

// NewSingleProcess returns an empty store. It takes a millisecond: tokens that
// were issued before are refused, and times are told apart by that much.
func NewSingleProcess(config Config) (*SingleProcess, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	return newSingleProcess(config, nextMillisecond()), nil
}

func newSingleProcess(config Config, start time.Time) *SingleProcess {
	s := &SingleProcess{config: config, start: start, seed: maphash.MakeSeed()}
	s.oldest.Store(start.UnixMilli())
	s.owners.init(maphash.MakeSeed(), max(1, config.Capacity/10))
	for i := range s.shards {
		s.shards[i].claims.seed = s.seed
		s.shards[i].due.Store(never)
	}
	return s
}

// Claim implements [mcpseal.ReplayStore].
func (s *SingleProcess) Claim(ctx context.Context, use mcpseal.Use) (first bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return s.claim(ctx, s.now(), use)
}

func (s *SingleProcess) claim(ctx context.Context, now moment, use mcpseal.Use) (first bool, err error) {
	s.watch(now)
	// 1. What makes no sense.
	if use.Round < 0 || use.Round > maxRound {
		return false, errBadRound
	}
	until := -floorSeconds(s.start.Round(0).Sub(use.Until)) // rounded up
	due := now.running + 1 + until - now.wall               // now is rounded down
	switch {
	case until <= now.wall:
		return false, errOver
	case until >= never || due >= never:
		return false, errTooFar
	}
	t := token{use.Flow, uint32(use.Round)}
	c := claim{due: uint32(due), until: uint32(max(until, 0)), owner: shorten(use.Owner)}

	// 2. Some of what is over.
	freed, _ := s.sweep(now)
	// 3. The token itself; if there is no room, again once more of what is over is
	// gone, whoever removes it.
	first, err = s.take(ctx, t, c, use.Issued)
	for n, more := 0, true; n < maxSweeps && more && (err == ErrFull || err == ErrOwnerFull); n++ {
		var any bool
		any, more = s.sweep(now)
		freed = freed || any
		first, err = s.take(ctx, t, c, use.Issued)
	}
	if first || freed {
		s.report()
	}
	return first, err
}

// take claims a token. All of it happens under the lock of the token's shard.
func (s *SingleProcess) take(ctx context.Context, t token, c claim, issued time.Time) (first bool, err error) {
	sh := &s.shards[maphash.Comparable(s.seed, t)>>(64-shardBits)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err // the caller gave up while this waited
	}
	if sh.claims.find(t) >= 0 {
		return false, nil
	}
	if issued.UnixMilli() < s.oldest.Load() {
		return false, errTooOld
	}
	if int64(c.until) <= s.forgotten.Load() {
		return false, errSetBack
	}
	if !s.owners.take(c.owner) {
		return false, ErrOwnerFull
	}
	if !s.takeRoom() {
		s.owners.giveBack(c.owner)
		return false, ErrFull
	}
	sh.push(t, c)
	return true, nil
}

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

var _ mcpseal.ReplayStore = (*SingleProcess)(nil)
