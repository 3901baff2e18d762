package mcpseal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"
)

// ReplayStore remembers which tokens were used, so that each works once. It
// answers true exactly once for each flow and round, whoever asks, and keeps
// that at least until the time given. When in doubt it returns an error: the
// token is then rejected. So it does when the context is over already, and then
// spends nothing. It returns by the context's deadline: a boundary does not wait
// for longer, and rejects tokens at once while it waits for 2,000 answers. A
// token stays spent even if the handler fails later.
//
// The suite sealtest.TestReplayStore holds a store to this.
type ReplayStore interface {
	Spend(ctx context.Context, use Use) (first bool, err error)
}

// Use names one use of a token.
type Use struct {
	Flow   [16]byte
	Round  int
	Issued time.Time // a store that started later cannot know whether it was used
	Until  time.Time // remember it at least so long
	Owner  [16]byte  // the same for all tokens of one user at one boundary; zero means nobody
}

const (
	errStoreSilent = plainError("the store did not answer in time")
	errStoreBusy   = plainError("too many tokens are waiting for the store")
)

// maxSpending bounds the goroutines that a store which never returns can hold.
const maxSpending = 2000

// singleUse reports whether tokens for this request work only once.
func (b *Boundary) singleUse(binding *Binding) bool {
	if b.config.Replay == nil {
		return false
	}
	if len(b.singleUseTools) == 0 {
		return true
	}
	return binding.Method == methodTool && b.singleUseTools[binding.Target]
}

// spend spends the token. It comes back when the store does not.
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
	done := make(chan *failure, 1) // an answer that comes late is for nobody
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

// owner is the same for every token of one user in this process only.
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
