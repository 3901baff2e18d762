package replay

import (
	"context"
	"crypto/subtle"
	"math"
	"sync"
	"time"

	"github.com/tripseal/tripseal"
)

// SingleProcess is a [tripseal.ResultStore] in the memory of one process. Set it as
// tripseal.Config.Replay if exactly one process opens the tokens.
type SingleProcess struct {
	config Config
	start  time.Time

	mu        sync.Mutex // guards everything below, and is held only for a short time
	uses      map[token]entry
	owners    map[[16]byte]*owner
	due       map[int64][]deadline // by the second of the monotonic clock in which they are due
	next      int64                // the first second that may have deadlines
	bytes     int                  // how many bytes all results take
	oldest    int64                // tokens issued before this time are refused; in Unix milliseconds
	offset    int64                // how many seconds the wall clock was ahead of the monotonic clock at the last call
	forgotten int64                // the latest expiry of the uses that were removed; a token that ends no later may have been used
	warned    bool                 // true if the log got a warning since the level was low
	warning   bool                 // true while the log gets a warning
}

const (
	// ErrFull means that a token was refused because the store is full.
	ErrFull = tripseal.PlainError("the store of used tokens is full: raise replay.Config.Capacity, or lower the boundary's TTL")
	// ErrOwnerFull means that a token was refused because tokens of its user, at the same
	// boundary, already fill a tenth of the store.
	ErrOwnerFull = tripseal.PlainError("this user holds a tenth of the store of used tokens: " +
		"limit how many calls a user can make, or raise replay.Config.Capacity")

	errTooOld = tripseal.PlainError("the token is older than the store of used tokens, and the store cannot know " +
		"whether this token was used: the user starts over; normal just after a start, or after the clock was set")
	errSetBack = tripseal.PlainError("the clock was set back, and the store of used tokens may have forgotten this one: " +
		"restart the process once the clock is right")
	errExpired  = tripseal.PlainError("the token has expired")
	errTooFar   = tripseal.PlainError("the token lasts longer than the store of used tokens can count")
	errBadRound = tripseal.PlainError("the token's round is not a number that a token can have")
	errNotHeld  = tripseal.PlainError("the call does not hold the lease of its token")
)

// NewSingleProcess returns an empty store. It sleeps for a millisecond, because dates are in
// milliseconds. So every token that is issued after NewSingleProcess has returned has a later date
// than the store. Call NewSingleProcess once, when the server starts.
func NewSingleProcess(config Config) (*SingleProcess, error) {
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	called := time.Now()
	time.Sleep(time.Millisecond)
	s := newSingleProcess(config, time.Now())
	s.oldest = called.UnixMilli() + 1
	return s, nil
}

func newSingleProcess(config Config, start time.Time) *SingleProcess {
	return &SingleProcess{
		config: config, start: start, oldest: start.UnixMilli(),
		uses: make(map[token]entry), owners: make(map[[16]byte]*owner), due: make(map[int64][]deadline),
	}
}

// NonBlocking returns s: see [tripseal.NonBlockingStore].
func (s *SingleProcess) NonBlocking() tripseal.ReplayStore { return s }

// Spend spends a token: see [tripseal.ReplayStore].
func (s *SingleProcess) Spend(ctx context.Context, use tripseal.Use) (first bool, err error) {
	begun, err := s.begin(ctx, s.now(), use, nil)
	return begun.State == tripseal.CallFirst, err
}

// Begin uses a token for a call: see [tripseal.ResultStore].
func (s *SingleProcess) Begin(ctx context.Context, use tripseal.Use, claim tripseal.Claim) (tripseal.Begun, error) {
	return s.begin(ctx, s.now(), use, &claim)
}

// begin uses a token for a call, or for Spend if there is no claim.
func (s *SingleProcess) begin(ctx context.Context, now moment, use tripseal.Use, claim *tripseal.Claim) (tripseal.Begun, error) {
	until := -floorSeconds(s.start.Round(0).Sub(use.Until)) // the token's expiry in seconds since the store started, rounded up
	for {                                                   // if there is no room, remove expired uses and try again
		begun, more, err := s.decide(ctx, now, &use, until, claim)
		if !more || err != ErrFull && err != ErrOwnerFull {
			return begun, err
		}
	}
}

// decide uses the token if that is allowed. It returns true if there may be more expired uses.
func (s *SingleProcess) decide(ctx context.Context, now moment, use *tripseal.Use, until int64, claim *tripseal.Claim) (
	begun tripseal.Begun, more bool, err error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return begun, false, err // the caller gave up while this call waited for the lock
	}
	s.watch(now)
	more = s.expire(now)
	id := token{use.Flow, uint16(use.Round)}
	e, known := s.uses[id]
	user := s.owners[use.Owner]
	switch {
	case use.Round < 0 || use.Round > math.MaxUint16:
		return begun, false, errBadRound
	case until <= now.wall:
		return begun, false, errExpired
	case until >= math.MaxUint32:
		return begun, false, errTooFar
	case known && !e.free:
		return e.again(now, claim), more, nil
	case use.Issued.UnixMilli() < s.oldest:
		return begun, more, errTooOld
	case until <= s.forgotten:
		return begun, more, errSetBack
	case !known && user != nil && user.uses >= max(1, s.config.Capacity/10):
		return begun, more, ErrOwnerFull
	case !known && len(s.uses) >= s.config.Capacity:
		return begun, more, ErrFull
	}
	if !known {
		if user == nil && use.Owner != [16]byte{} {
			user = &owner{id: use.Owner}
			s.owners[use.Owner] = user
		}
		s.count(user, 1, 0)
		e = entry{until: uint32(max(until, 0)), owner: user}
		s.schedule(deadline{token: id}, now.running+1+until-now.wall) // one second more, because both clocks are rounded down
	}
	e.free = false
	if claim != nil {
		e.call = &call{id: claim.Call, tag: claim.Tag, ends: now.exact + claim.Lease}
	}
	s.uses[id] = e
	s.notice()
	return tripseal.Begun{State: tripseal.CallFirst}, more, nil
}

// again says what became of the call that used the token. If that call was lost and may be
// repeated, the new call takes its place.
func (e entry) again(now moment, claim *tripseal.Claim) tripseal.Begun {
	c := e.call
	switch {
	case claim == nil || c == nil || subtle.ConstantTimeCompare(c.tag[:], claim.Tag[:]) != 1:
		return tripseal.Begun{State: tripseal.CallOther}
	case c.done && c.result != nil && now.exact < c.ends:
		return tripseal.Begun{State: tripseal.CallDone, Result: c.result}
	case c.done:
		return tripseal.Begun{State: tripseal.CallNotKept}
	case now.exact < c.ends && c.id == claim.Call:
		return tripseal.Begun{State: tripseal.CallFirst} // this Begin was sent again
	case now.exact < c.ends:
		return tripseal.Begun{State: tripseal.CallRunning}
	case !claim.Repeat:
		return tripseal.Begun{State: tripseal.CallLost}
	}
	c.id, c.ends = claim.Call, now.exact+claim.Lease
	return tripseal.Begun{State: tripseal.CallFirst}
}

// Renew makes the lease of a call last longer: see [tripseal.ResultStore].
func (s *SingleProcess) Renew(ctx context.Context, use tripseal.Use, claim tripseal.Claim) error {
	return s.change(ctx, s.now(), use, claim, nil)
}

// End ends a call: see [tripseal.ResultStore].
func (s *SingleProcess) End(ctx context.Context, use tripseal.Use, claim tripseal.Claim, end tripseal.End) error {
	return s.change(ctx, s.now(), use, claim, &end)
}

// change ends a call, or renews its lease if end is nil.
func (s *SingleProcess) change(ctx context.Context, now moment, use tripseal.Use, claim tripseal.Claim, end *tripseal.End) error {
	id := token{use.Flow, uint16(use.Round)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	e := s.uses[id]
	c := e.call
	switch {
	case c == nil || c.id != claim.Call || !c.done && now.exact >= c.ends || c.done && (end == nil || end.GiveBack):
		return errNotHeld
	case c.done: // this End was sent again
	case end == nil:
		c.ends = now.exact + claim.Lease
	case end.GiveBack: // the entry stays, so that a token that is given back again and again leaves no garbage
		e.free, e.call = true, nil
		s.uses[id] = e
	default:
		c.done = true
		s.keep(now, id, e, end.Result, end.Keep)
	}
	return nil
}

var (
	_ tripseal.NonBlockingStore = (*SingleProcess)(nil)
	_ tripseal.ResultStore      = (*SingleProcess)(nil)
)
