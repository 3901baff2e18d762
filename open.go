package mcpseal

import (
	"context"
	"time"
)

// Open begins a round. An empty token is a first round and always opens. Any
// other must be one that this policy sealed, unchanged, for this request, user
// and service, in time; otherwise the error is a *[RejectError], or a
// *[ParamsError] where the arguments cannot be digested. [Config.AskAgain]
// makes a first round of a rejection.
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
		if b.config.AskAgain && fail.params == nil {
			round.begin(b, &request) // knows nothing of the token
			err = nil
		}
		return round, err
	}
	round.opened = true
	if b.config.Observer != nil {
		b.observe(ctx, b.event(OpOpen, start, &round, format, token))
	}
	return round, nil
}

// check opens the token into round.
func (b *Boundary) check(ctx context.Context, round *Round, token string) (*acceptedFormat, *failure) {
	// 1. What costs nothing.
	if len(token) > b.config.MaxToken {
		return nil, failed(ReasonTooLarge)
	}
	format := b.formatOf(token)
	if format == nil {
		return nil, failed(ReasonMalformed)
	}
	// 2. Who is calling, and whether tokens of this format can prove enough.
	if fail := round.identify(ctx); fail != nil {
		return format, fail
	}
	if round.binding.Principal == "" && b.config.RequirePrincipal {
		return format, failed(ReasonPrincipal)
	}
	if missing := format.missing(b.demanded(&round.binding)); missing != 0 {
		return format, &failure{reason: ReasonClaimMissing, missing: missing}
	}
	// 3. Genuine, and bound to this request, service and user.
	if fail := format.open(ctx, round, token); fail != nil {
		return format, fail
	}
	// 4. In time, and within the flow's limits.
	now, flows := time.Now().UnixMilli(), format.carries&ClaimFlow != 0
	if reason := timeReason(now, &round.claims, flows, b.config.MaxFlow, b.config.MaxRounds); reason != "" {
		return format, failed(reason)
	}
	if len(round.claims.State) > b.config.MaxState {
		return format, failed(ReasonTooLarge)
	}
	// 5. Last, because it spends the token: not used before.
	if b.singleUse(&round.binding) && format.carries&ClaimSingleUse != 0 {
		if fail := b.claim(ctx, round); fail != nil {
			return format, fail
		}
	}
	if format.carries&ClaimFlow == 0 {
		round.claims.Flow, round.claims.FlowStart, round.claims.Round = [16]byte{}, 0, 0
	}
	return format, nil
}

// timeReason states what is accepted, so that a nonsense number is not. Flows
// says whether the token's format knows of them.
func timeReason(now int64, c *Claims, flows bool, maxFlow time.Duration, maxRounds int) Reason {
	if !(now < c.Expires) {
		return ReasonExpired
	}
	if !(c.Issued <= now+clockSkew.Milliseconds()) {
		return ReasonFromTheFuture
	}
	if !flows {
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

// open opens the token into round and drops claims that the format cannot
// prove.
func (f *acceptedFormat) open(ctx context.Context, round *Round, token string) *failure {
	fail := guard(func() (err error) {
		if native, ok := f.Format.(*recordFormat); ok {
			// Called directly, it leaves the round on the caller's stack.
			round.claims, round.questions, err = native.open(ctx, &round.binding, &round.digests, token)
			return err
		}
		onHeap := round.binding
		round.claims, err = f.Format.Open(ctx, &onHeap, token)
		if err == nil && (!wellFormed(round.claims.Questions) || !round.claims.HasState && round.claims.State != "") {
			return ReasonMalformed
		}
		round.questions = questionList(appendQuestions(nil, round.claims.Questions))
		return err
	}, ReasonCodecFailed, formatReasons...)
	if fail != nil {
		round.claims, round.questions = Claims{}, ""
		return fail
	}
	if f.carries&ClaimQuestions == 0 {
		round.questions, round.unpinned = "", true
	}
	return nil
}

// formatReasons are those that a format may give.
var formatReasons = []Reason{
	ReasonInvalidParams, ReasonMalformed, ReasonUnknownKey, ReasonForged, ReasonTooLarge, ReasonVersion,
	ReasonRequest, ReasonArguments, ReasonAudience, ReasonPrincipal,
}
