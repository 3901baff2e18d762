package tripseal

import (
	"context"
	"crypto/subtle"
	"strings"
	"time"

	"github.com/tripseal/tripseal/internal/native"
	"github.com/tripseal/tripseal/internal/whose"
)

// Open begins a round: call it for every request that can carry a state, before its handler runs. An empty token means
// a first round and is always accepted. Any other token must be unchanged, not expired and within the limits of the
// config, and must have been sealed for this request, user and service. Otherwise the error is a [*RejectError],
// whatever is wrong. For the tokens that [Config.AskAgain] chooses, Open returns a first round instead of the error.
func (b *Boundary) Open(ctx context.Context, request Request, token string) (round Round, err error) {
	round.begin(b, &request)
	if token == "" {
		return round, nil
	}
	start := b.startEvent()
	format, fail := b.check(ctx, &round, token)
	if fail != nil {
		err = b.rejected(ctx, start, &round, format, token, fail)
		round = Round{}
		if b.config.AskAgain == AskAgainAlways || fail.merelyOld {
			round.begin(b, &request) // start again as a first round, without anything from the token
			err = nil
		}
		return round, err
	}
	round.opened = true
	if b.config.Observer != nil {
		e := b.event(OpOpen, start, &round, format, token)
		if !round.named {
			e.Target = TargetUnknown
		}
		b.observe(ctx, e)
	}
	return round, nil
}

// begin makes r the first round of this request. It sets the fields one by one instead of copying a Round, because a
// Round is large.
func (r *Round) begin(b *Boundary, request *Request) {
	r.boundary, r.caller = b, request.Principal
	r.binding.Method, r.binding.Target = request.Method, request.Target
	r.binding.Arguments, r.binding.Audience = request.Arguments, b.config.Audience
	r.digests.audience, r.digests.audienceKnown = b.audience, true
}

// check opens the token into the round. It returns the format of the token (nil if the token belongs to no format) and
// why the token is rejected (nil if it is accepted).
func (b *Boundary) check(ctx context.Context, round *Round, token string) (*acceptedFormat, *failure) {
	// 1. Do the checks that cost nothing.
	if len(token) > b.config.MaxToken {
		return nil, failed(ReasonTooLarge)
	}
	if n := len(round.binding.Arguments); n > b.config.MaxArguments {
		return nil, failedBecause(ReasonTooLarge,
			"the arguments have %d bytes, Config.MaxArguments is %d", n, b.config.MaxArguments)
	}
	format := b.formatOf(token)
	if format == nil {
		return nil, failed(ReasonMalformed)
	}
	if missing := format.missing(b.demanded(&round.binding)); missing != 0 {
		return format, lacking(missing)
	}
	// 2. Find out who is calling.
	if fail := round.identify(ctx); fail != nil {
		return format, fail
	}
	if round.binding.User == "" && b.config.RequireUser {
		return format, failed(ReasonUser)
	}
	// 3. Check that the token is genuine, and bound to this method, target, service and user.
	if fail := format.open(ctx, round, token); fail != nil {
		return format, fail
	}
	// 4. Check that the token has not expired, and that its flow is within the limits.
	now, hasFlow := time.Now().UnixMilli(), format.carries&ClaimFlow != 0
	if reason := timeReason(now, &round.claims, hasFlow, b.config.MaxFlow, b.config.MaxRounds); reason != "" {
		fail := failed(reason)
		fail.merelyOld = b.config.AskAgain == AskAgainIfExpired && (reason == ReasonExpired || reason == ReasonFlowExpired) &&
			format.waives == 0 && b.checkArguments(round, format) == nil
		return format, fail
	}
	if len(round.claims.State) > b.config.MaxState {
		return format, failed(ReasonTooLarge)
	}
	// 5. Check that the token is for these arguments. The checks above come first, so that
	// no digest is computed for a bad token.
	if fail := b.checkArguments(round, format); fail != nil {
		return format, fail
	}
	// 6. Check that the token was not used before. This comes last, because it marks the
	// token as used.
	if b.singleUse(&round.binding) && format.carries&ClaimSingleUse != 0 {
		if fail := b.spend(ctx, round); fail != nil {
			return format, fail
		}
	}
	round.claims.Arguments = nil
	if format.carries&ClaimFlow == 0 {
		round.claims.Flow, round.claims.FlowStart, round.claims.Round = [16]byte{}, 0, 0
	}
	return format, nil
}

// checkArguments checks that the token was sealed for the arguments of this round. It stores their digest in the
// round, for a later Seal.
func (b *Boundary) checkArguments(round *Round, format *acceptedFormat) *failure {
	if fail := format.digestArguments(round); fail != nil {
		return fail
	}
	if !format.sameArguments(round) {
		return failed(ReasonArguments)
	}
	if sealing := &b.formats[0]; sealing != format {
		return sealing.digestArguments(round)
	}
	return nil
}

// digestArguments computes the digest of the round's arguments as this format defines it, and keeps that digest in the
// round.
func (f *acceptedFormat) digestArguments(round *Round) *failure {
	return callFormat(func() error {
		if d := &round.digests; f.record != nil {
			if d.plainKnown {
				return nil
			}
			var err error
			d.plain, err = round.binding.ArgumentsDigest()
			d.plainKnown = err == nil
			return err
		}
		onHeap := round.binding
		digest, err := f.Format.Digest(&onHeap)
		if err == nil && len(digest) == 0 && f.carries&ClaimArguments != 0 {
			err = errNoDigest
		}
		if digest == nil {
			digest = []byte{} // not nil, because nil means that the digest is not known yet
		}
		if err == nil {
			round.arguments = digest
		}
		return err
	})
}

const errNoDigest = plainError("the format carries the arguments but has no digest of them")

// sameArguments reports whether the arguments of the request have the digest that the token holds.
func (f *acceptedFormat) sameArguments(round *Round) bool {
	if f.record != nil {
		return native.Same(round.digests.plain[:digestSize], &round.sealed)
	}
	return subtle.ConstantTimeCompare(round.arguments, round.claims.Arguments) == 1
}

// timeReason returns why the token's times or its round are refused, or "" if they are accepted. Each condition has
// the form !(what is accepted), so that everything else is refused. Pass true as hasFlow if the token's format carries
// [ClaimFlow].
func timeReason(now int64, c *Claims, hasFlow bool, maxFlow time.Duration, maxRounds int) Reason {
	if !(now < c.Expires) {
		return ReasonExpired
	}
	if !(c.Issued <= now+clockSkew.Milliseconds()) {
		return ReasonFromTheFuture
	}
	if !hasFlow {
		return ""
	}
	if !(c.FlowStart <= now+clockSkew.Milliseconds()) {
		return ReasonFromTheFuture
	}
	if !(maxFlow == NoLimit || now < c.FlowStart+maxFlow.Milliseconds()) {
		return ReasonFlowExpired
	}
	if !(1 <= c.Round && c.Round <= maxRounds) {
		return ReasonTooManyRounds
	}
	return ""
}

// open opens the token into the round, and removes the claims that the token's format cannot prove.
func (f *acceptedFormat) open(ctx context.Context, round *Round, token string) *failure {
	var fail *failure
	if f.record != nil {
		// A direct call keeps the round on the caller's stack. A call through an interface would move it to the heap.
		fail = f.record.open(ctx, &round.binding, &round.digests, token, &round.contents)
	} else {
		fail = callFormat(func() (err error) {
			onHeap := round.binding
			round.claims, err = f.Format.Open(ctx, &onHeap, token)
			if err != nil {
				return err
			}
			asked := round.claims.Questions
			ok := wellFormed(asked) && (round.claims.HasState || round.claims.State == "")
			if ok {
				round.questions, _, ok = cutQuestions(appendQuestions(nil, asked), len(asked))
			}
			if !ok {
				return ReasonMalformed
			}
			return nil
		})
	}
	if fail != nil {
		round.contents = contents{}
		return fail
	}
	round.waived, round.named = f.waives, f.carries&ClaimRequest != 0
	if f.carries&ClaimQuestions == 0 {
		round.questions = questionList{}
	}
	if f.carries&ClaimElicit == 0 {
		round.claims.Elicit = false
		if f.waives&ClaimElicit != 0 {
			if state, marked := strings.CutPrefix(round.claims.State, whose.Mark); marked {
				round.claims.State, round.claims.Elicit = state, true
			}
		}
	}
	return nil
}
