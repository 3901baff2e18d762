package tripseal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"

	"github.com/tripseal/tripseal/internal/guard"
)

// ReplayStore remembers which tokens were used, so that each token works only once. Set a store as [Config.Replay].
// Package replay has a store for a single process; the packages replay/redisreplay and replay/pgreplay have stores in
// Redis and in PostgreSQL. Implement a ReplayStore to use another database. There are two kinds more: a [ResultStore]
// can keep the result of the call that spent a token, and a [NonBlockingStore] never waits.
//
// Spend returns true exactly once for each flow and round, whoever calls it, and remembers the use at least until
// use.Until. When in doubt, Spend returns an error, and the token is rejected. If the context has already ended, Spend
// returns an error and records nothing. Spend returns by the context's deadline: a boundary does not wait longer.
// While 2,000 calls of Spend are still running, a boundary rejects single-use tokens without calling Spend. A token
// counts as used even if the handler fails later.
//
// Test your store with the suite sealtest.TestReplayStore.
//
// A boundary calls Spend on another goroutine, so that it can stop waiting. If the store is in memory, that goroutine
// costs more than Spend itself. To avoid this cost, such a store can be a [NonBlockingStore].
type ReplayStore interface {
	// Spend records the use of a token, and returns true if it is the first use of this token. A boundary calls it
	// once for each token that is otherwise accepted.
	Spend(ctx context.Context, use Use) (first bool, err error)
}

// NonBlockingStore is a [ReplayStore] whose Spend cannot block. Its Spend always returns soon, even if the context has
// no deadline. Spend does not wait for a network, a file or another goroutine, and holds its locks only for a short
// time. A boundary calls such a store directly, so [Config.ReplayTimeout] and the limit of 2,000 calls do not apply. If
// it is a [ResultStore], its other methods cannot block either. Implement a NonBlockingStore if your store is in the
// memory of this process.
//
// The suite sealtest.TestReplayStore also checks, as far as a test can, that Spend does not block.
type NonBlockingStore interface {
	ReplayStore
	// NonBlocking returns the store itself, or nil if its Spend can block after all. A wrapper that embeds the store
	// inherits this method. The inherited method returns the embedded store, not the wrapper. So the wrapper counts as
	// a store that can block, unless it has a method NonBlocking of its own. [New] calls NonBlocking once.
	NonBlocking() ReplayStore
}

// cannotBlock reports whether the store says that its Spend cannot block. It returns false if the method NonBlocking
// panics or returns another store.
func cannotBlock(store ReplayStore) (says bool) {
	if s, ok := store.(NonBlockingStore); ok {
		guard.Quietly(func() { says = s.NonBlocking() == store }) // == panics if the store's type is not comparable
	}
	return says
}

// Use is one use of a token, which a [ReplayStore] remembers. Flow and Round identify the token. Only a store reads a
// Use.
type Use struct {
	Flow   [16]byte  // the id of the token's flow
	Round  int       // the number of the token in its flow
	Issued time.Time // when the token was sealed; a store that started later cannot know whether the token was used
	Until  time.Time // the store remembers the use at least until this time
	Owner  [16]byte  // the same for all tokens of one user at one boundary; zero means no user
}

const (
	errStoreSilent = plainError("the store did not answer in time")
	errStoreBusy   = plainError("too many tokens are waiting for the store")
)

// maxSpending limits how many goroutines wait for a store that does not return.
const maxSpending = 2000

// spend marks the token as used in the replay store. It fails if the token was used before. spend waits for the store
// for at most Config.ReplayTimeout, unless the store says that it cannot block.
func (b *Boundary) spend(ctx context.Context, round *Round) *failure {
	use := Use{
		Flow:   round.claims.Flow,
		Round:  round.claims.Round,
		Issued: time.UnixMilli(round.claims.Issued),
		Until:  time.UnixMilli(round.claims.Expires).Add(2 * clockSkew),
		Owner:  b.ownerID(round.binding.User),
	}
	if b.spendDirectly {
		return b.callStore(ctx, use)
	}
	if b.spending.Add(1) > maxSpending {
		b.spending.Add(-1)
		return call(func() error { return errStoreBusy }, ReasonStoreFailed)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(caller, b.config.ReplayTimeout)
	defer cancel()
	done := make(chan *failure, 1) // buffered, because nobody reads a result that comes too late
	go func() {
		defer b.spending.Add(-1)
		done <- b.callStore(ctx, use)
	}()
	select {
	case <-ctx.Done():
		return call(func() error { return cmp.Or(caller.Err(), error(errStoreSilent)) }, ReasonStoreFailed)
	case fail := <-done:
		return fail
	}
}

func (b *Boundary) callStore(ctx context.Context, use Use) *failure {
	return call(func() error {
		first, err := b.config.Replay.Spend(ctx, use)
		if err == nil && !first {
			return ReasonReplayed
		}
		return err
	}, ReasonStoreFailed, ReasonReplayed)
}

// ownerID returns an id for a user. A user always has the same id at this boundary, and a different id at every other
// boundary. The id is zero if the user's name is "".
func (b *Boundary) ownerID(user string) (id [16]byte) {
	if user == "" {
		return id
	}
	var room [128]byte // on the stack, and enough for most names
	sum := sha256.Sum256(append(append(room[:0], b.ownerSalt[:]...), user...))
	return [16]byte(sum[:])
}
