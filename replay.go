package mcpseal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"
)

// ReplayStore remembers which tokens were used, so that each works once. Spend
// returns true exactly once for each flow and round, whoever calls it, and
// remembers the use at least until use.Until. When in doubt it returns an error, and
// the token is rejected. If the context has already ended, it returns an error
// and spends nothing. It returns by the context's deadline: a boundary does not
// wait longer, and rejects tokens at once while 2,000 calls have not returned. A
// token stays spent even if the handler fails later.
//
// The suite sealtest.TestReplayStore checks that a store does this.
type ReplayStore interface {
	Spend(ctx context.Context, use Use) (first bool, err error)
}

// Use names one use of a token.
type Use struct {
	Flow   [16]byte
	Round  int
	Issued time.Time // a store that started after this cannot know whether the token was used
	Until  time.Time // the store remembers the use at least until then
	Owner  [16]byte  // the same for all tokens of one user at one boundary; zero means no user
}

const (
	errStoreSilent = plainError("the store did not answer in time")
	errStoreBusy   = plainError("too many tokens are waiting for the store")
)

// maxSpending limits how many goroutines wait for a store that does not return.
const maxSpending = 2000

// spend spends the token. It returns in time even if the store does not.
func (b *Boundary) spend(ctx context.Context, round *Round) *failure {
	use := Use{
		Flow:   round.claims.Flow,
		Round:  round.claims.Round,
		Issued: time.UnixMilli(round.claims.Issued),
		Until:  time.UnixMilli(round.claims.Expires).Add(2 * clockSkew),
		Owner:  b.owner(round.binding.User),
	}
	if b.spending.Add(1) > maxSpending {
		b.spending.Add(-1)
		return guard(func() error { return errStoreBusy }, ReasonStoreFailed)
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(caller, b.config.ReplayTimeout)
	defer cancel()
	done := make(chan *failure, 1) // has room for one, because nobody reads a late result
	go func() {
		defer b.spending.Add(-1)
		done <- guard(func() error {
			first, err := b.config.Replay.Spend(ctx, use)
			if err == nil && !first {
				return ReasonReplayed
			}
			return err
		}, ReasonStoreFailed, ReasonReplayed)
	}()
	select {
	case <-ctx.Done():
		return guard(func() error { return cmp.Or(caller.Err(), error(errStoreSilent)) }, ReasonStoreFailed)
	case fail := <-done:
		return fail
	}
}

// owner returns the same id for all tokens of one user, at this boundary only.
func (b *Boundary) owner(user string) (id [16]byte) {
	if user == "" {
		return id
	}
	h := sha256.New()
	h.Write(b.ownerSalt[:])
	h.Write([]byte(user))
	copy(id[:], h.Sum(nil))
	return id
}
