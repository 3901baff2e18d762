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
	s := &SingleProcess{config: config, seed: maphash.MakeSeed()}
	s.owners.init(maphash.MakeSeed(), max(1, config.Capacity/10))
	for i := range s.shards {
		s.shards[i].claims.seed = s.seed
		s.shards[i].due.Store(never)
	}
	s.start = nextMillisecond()
	s.oldest = s.start.Truncate(time.Millisecond)
	return s, nil
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
	due := now.running + 1 + until - now.wall
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
	// 3. The token itself; if there is no room, again after one more look for it.
	if first, err = s.take(t, c); err != nil && s.sweep(now) {
		freed = true
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

// sweep removes what is over, and says whether there was anything.
func (s *SingleProcess) sweep(now moment) (any bool) {
	for i := range s.shards {
		sh := &s.shards[i]
		if int64(sh.due.Load()) > now.running {
			continue
		}
		sh.mu.Lock()
		sh.expire(now, func(owner ownerID) {
			s.owners.giveBack(owner)
			s.held.Add(-1)
			any = true
		})
		sh.mu.Unlock()
	}
	return any
}

var _ mcpseal.ReplayStore = (*SingleProcess)(nil)
