package tripseal

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/tripseal/tripseal/internal/callback"
)

// Round is one request of a flow. [Boundary.Open] returns it, and [Boundary.Seal] reuses
// what Open computed. A Round is not safe for concurrent use, and a copy is independent
// of the original.
type Round struct {
	boundary  *Boundary
	binding   Binding
	digests   digests   // the digests of the binding above
	caller    Principal // tells who is calling; nil after its result was stored in binding.User
	contents            // what the request's token holds; zero on a first round
	arguments []byte    // the digest of the arguments, computed by a format that is not native; nil until it is known
	waived    ClaimSet  // the claims that the operator waived for the token's format
	expires   int64     // the expiry of the last token that this round sealed, in Unix milliseconds; 0 if it sealed none
	named     bool      // true if a token says that it was sealed for this target
	opened    bool      // true if the request's token was accepted
}

// contents is what a token holds.
type contents struct {
	claims    Claims
	questions questionList
	sealed    [digestSize]byte // the digest of the arguments, from a native token
}

// String returns the round's number in a short text, without state, user or arguments. So
// printing a round is safe.
func (r Round) String() string { return "tripseal.Round(" + strconv.Itoa(r.claims.Round) + ")" }

// Format writes what String returns, so that no verb of package fmt shows the state.
func (r Round) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) }

// LogValue returns what String returns, so that slog shows no state either.
func (r Round) LogValue() slog.Value { return slog.StringValue(r.String()) }

// State returns what the handler wrote in the previous round, and true. It returns false
// if the handler wrote no state, if this is a first round, or if package elicit wrote the
// state. Pass the state to the handler in place of the token.
func (r *Round) State() (state string, ok bool) {
	if r.claims.Elicit {
		return "", false
	}
	return r.claims.State, r.claims.HasState
}

// Elicit returns what package elicit wrote in the previous round, and true. No handler may get this
// state, nor the answers that came with it: State and Accepts return nothing of them. An adapter
// passes both to elicit.Arrive.
func (r *Round) Elicit() (state string, ok bool) {
	if !r.claims.Elicit {
		return "", false
	}
	return r.claims.State, true
}

// First reports whether this is a first round: the request brought no token, or its token
// was rejected and [Config.AskAgain] applied. On a first round nothing was asked before,
// so an adapter usually drops the answers.
func (r *Round) First() bool { return !r.opened }

// Questions returns the questions that the previous round asked. It also returns true if this list
// is known to be complete. It returns false, and no questions, if the operator waived
// [ClaimQuestions] because the token's format cannot carry questions. Use Questions to see what was
// asked; to check an answer, call [Round.Accepts].
func (r *Round) Questions() (questions []Question, pinned bool) {
	return slices.Collect(r.questions.inOrder), r.waived&ClaimQuestions == 0
}

// Asked yields the same questions as Questions, but makes no slice of them. Use it where
// a call must not allocate:
//
//	for question := range round.Asked
func (r *Round) Asked(yield func(Question) bool) { r.questions.inOrder(yield) }

// Waived returns the claims that the operator waived because the token's format cannot carry them.
// It is zero on a first round. For an unsealed format, such as compat.Plaintext, the result has
// neither [ClaimElicit] nor [ClaimSingleUse], even if the operator waived them. An adapter calls
// Waived to find out what it must check itself.
func (r *Round) Waived() ClaimSet { return r.waived }

// Expires returns the expiry of the last token that this round sealed, or the zero
// time if it sealed none. An adapter that waits for an answer during the call stops
// waiting at that time.
func (r *Round) Expires() (at time.Time) {
	if r.expires != 0 {
		at = time.UnixMilli(r.expires)
	}
	return at
}

// FlowEnds returns when the round's flow ends by [Config.MaxFlow], or the zero time if nothing was asked in the flow yet,
// or there is no limit. An adapter that asks during the call waits for no answer beyond that.
func (r *Round) FlowEnds() (at time.Time) {
	if b := r.boundary; b != nil && r.claims.Flow != [16]byte{} && b.config.MaxFlow != NoLimit {
		at = time.UnixMilli(r.claims.FlowStart).Add(b.config.MaxFlow)
	}
	return at
}

// identify calls the function r.caller, unless that was done already, and keeps the user that it
// returns.
func (r *Round) identify(ctx context.Context) *failure {
	if r.caller == nil {
		return nil
	}
	user, cause := callback.Identify(ctx, r.caller)
	if cause != nil {
		return failedWith(ReasonPrincipalFailed, cause)
	}
	r.binding.User, r.caller = user, nil
	return nil
}

// Request is a request that carries a token, or whose result will carry one. An adapter
// makes one for each request, and passes it to [Boundary.Open].
type Request struct {
	// Method is the method's name in the protocol: tools/call, prompts/get or
	// resources/read.
	Method string
	// Target is the tool's or prompt's name, or the resource's URI.
	Target string
	// Arguments is the JSON text of params.arguments as it arrived. If the arguments include a
	// cursor, leave the cursor out. Nil and null mean {}. If the request has a token, Open digests
	// the arguments and Seal uses that digest. On a first round Seal reads the arguments, so they
	// must not change until Seal returns: give Open a copy if a handler can change these bytes.
	Arguments []byte
	// Principal tells who is calling; nil means that there is no user. The boundary calls it when
	// it opens or seals a token: once a round, or twice if a token was rejected and
	// [Config.AskAgain] is set. On a first round it is called in Seal, after the handler has run.
	// It must still return the same user at that time.
	Principal Principal
}

// Principal returns the name of the verified user that is calling, or "" for no user. A
// name has at most 4096 bytes and always means the same user. If the principal fails,
// panics or returns a longer name, the boundary does not open or seal the token. An
// adapter makes a Principal for each request, from what its SDK knows about the caller.
type Principal func(ctx context.Context) (string, error)

// User returns a principal for a user that is already known. If id is empty, the principal returns
// an error: a caller who has signed in must not count as nobody. Use this principal if the user was
// verified before the request reached the adapter.
func User(id string) Principal {
	return func(context.Context) (string, error) {
		if id == "" {
			return "", errEmptyUser
		}
		return id, nil
	}
}

const errEmptyUser = plainError("the user's id is empty")
