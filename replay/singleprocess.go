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
	oldest time.Time // what a token may be dated
	seed   maphash.Seed
	held   atomic.Int64
	swept  atomic.Int64 // the second in which expired claims were last looked for
	warned atomic.Bool
	owners owners
	shards [shards]shard

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
		"the user starts over; normal just after a start, or the clock was set back")
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
	s := &SingleProcess{config: config, start: start, oldest: start.Truncate(time.Millisecond), seed: maphash.MakeSeed()}
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
	return s.claim(s.now(), use)
}

func (s *SingleProcess) claim(now moment, use mcpseal.Use) (first bool, err error) {
	// 1. What makes no sense, or cannot be known.
	switch {
	case use.Round < 0 || use.Round > maxRound:
		return false, errBadRound
	case use.Issued.Before(s.oldest):
		return false, errTooOld
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

	// 2. Once a second, what is over.
	freed := false
	if last := s.swept.Load(); last < now.running && s.swept.CompareAndSwap(last, now.running) {
		freed = s.sweep(now)
	}
	// 3. The token itself; if there is no room, again once all that is over is
	// gone, whoever removes it.
	if first, err = s.take(t, c); err != nil {
		freed = s.sweep(now) || freed
		first, err = s.take(t, c)
	}
	if first || freed {
		s.report()
	}
	return first, err
}

// take claims a token. All of it happens under the lock of the token's shard.
func (s *SingleProcess) take(t token, c claim) (first bool, err error) {
	sh := &s.shards[maphash.Comparable(s.seed, t)>>(64-shardBits)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.claims.find(t) >= 0 {
		return false, nil
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

// sweep removes what is over, waits for others that do, and says whether it
// removed anything.
func (s *SingleProcess) sweep(now moment) (any bool) {
	for i := range s.shards {
		sh := &s.shards[i]
		if int64(sh.due.Load()) > now.running {
			continue
		}
		sh.mu.Lock()
		sh.expire(now, func(c claim) {
			s.owners.giveBack(c.owner)
			s.held.Add(-1)
			s.forget(int64(c.until))
			any = true
		})
		sh.mu.Unlock()
	}
	return any
}

func (s *SingleProcess) forget(until int64) {
	for {
		latest := s.forgotten.Load()
		if until <= latest || s.forgotten.CompareAndSwap(latest, until) {
			return
		}
	}
}

var _ mcpseal.ReplayStore = (*SingleProcess)(nil)
