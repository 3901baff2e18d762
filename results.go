package tripseal

import (
	"context"
	"time"
)

// ResultStore is a [ReplayStore] that can also keep the result of the call that spent a token. A
// client that lost the answer sends the same token again, and gets the kept result; the handler
// never runs a second time. The boundary calls
//
//   - Begin once for each token that is otherwise accepted, and again to wait for a running call,
//   - Renew regularly while the handler runs, so that the lease does not end,
//   - End exactly once for each call that was the first, also if its handler failed.
//
// A token counts as used for Spend once it has begun, and the other way round. What a ResultStore
// promises of a use, it promises at least until use.Until. When in doubt, a method returns an
// error and the handler does not run. Test your store with the suite sealtest.TestReplayStore.
type ResultStore interface {
	ReplayStore
	// Begin marks the token as used by this call, or says what became of the call that used it.
	// An error means that the handler must not run.
	Begin(ctx context.Context, use Use, claim Claim) (Begun, error)
	// Renew makes the lease last for claim.Lease from now. If the call does not hold the lease,
	// Renew changes nothing and returns an error.
	Renew(ctx context.Context, use Use, claim Claim) error
	// End ends the call. If the call does not hold the lease, End changes nothing and returns an
	// error; but it returns nil if the call has already ended with a result. After an error,
	// nobody may see the result.
	End(ctx context.Context, use Use, claim Claim, end End) error
}

// Claim is what one call says about itself to a [ResultStore].
type Claim struct {
	// Call is the random id of this call. It is the same in Begin, Renew and End. A Begin that is
	// sent again with the same id counts as one, so a store's client may resend a command.
	Call [16]byte
	// Tag tells the same answers from others. It is keyed, so a store cannot guess the answers.
	Tag [32]byte
	// Lease is how long the call counts as running after Begin or Renew. If it ends without a
	// result, the process has probably died.
	Lease time.Duration
	// Repeat means that the handler may run again if an earlier call was lost.
	Repeat bool
}

// CallState says what became of the call that used a token. The zero value means nothing: the
// handler must not run.
type CallState uint8

const (
	CallFirst   CallState = iota + 1 // this call uses the token and holds the lease: run the handler
	CallRunning                      // another call holds the lease
	CallDone                         // the call has ended, and Begun.Result is its result
	CallOther                        // the token was used with another tag, or by Spend
	CallLost                         // the lease ended without a result; only Claim.Repeat can make another call the first
	CallNotKept                      // the call has ended, but its result is not kept, or is no longer kept
)

// Begun is what [ResultStore] Begin returns.
type Begun struct {
	State  CallState
	Result []byte // for CallDone, the bytes that End was given; the caller must not change them
}

// End says how a call ended.
type End struct {
	// Result is the result, sealed: a store reads nothing in it. A store may have no room for a
	// result, or it may be too large; then the call still ends, and others get CallNotKept.
	Result []byte
	// Keep is how long the result is kept, but never longer than the use. 0 keeps no result.
	Keep time.Duration
	// GiveBack means that the call never reached its handler: the token works again.
	GiveBack bool
}

type callKey struct{}

type heldCall struct {
	use   Use
	claim Claim
}

// WithCall returns a context that tells the call to the store's own code in a handler: see
// package replay/pgreplay, whose transactions end with the result of the call. Only code that
// calls Begin needs it.
func WithCall(ctx context.Context, use Use, claim Claim) context.Context {
	return context.WithValue(ctx, callKey{}, heldCall{use, claim})
}

// CallFrom returns the call that a context belongs to. It returns false if the store of the
// boundary keeps no results, or if the request's context does not reach the handler.
func CallFrom(ctx context.Context) (use Use, claim Claim, ok bool) {
	c, ok := ctx.Value(callKey{}).(heldCall)
	return c.use, c.claim, ok
}
