package mcpseal

import (
	"context"
	"time"
)

// Open begins a round. An empty token is a first round and always opens. Any
// other must be one that this policy sealed, unchanged, for this request, user
// and service, in time; otherwise the error is a *[RejectError], or a
// *[ParamsError] where the arguments cannot be digested.
func (b *Boundary) Open(ctx context.Context, request Request, token string) (Round, error) {
	round := Round{
		boundary: b,
		binding: Binding{
			Method:    request.Method,
			Target:    request.Target,
			Arguments: request.Arguments,
			Audience:  b.config.Audience,
		},
		caller: request.Principal,
	}
	round.binding.digests.audience, round.binding.digests.audienceKnown = b.audience, true
	if token == "" {
		return round, nil
	}
	start := b.startEvent()
	format, fail := b.check(ctx, &round, token)
	if fail != nil {
		return Round{}, b.rejected(ctx, start, &round, format, token, fail)
	}
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
	claims, fail := format.openGuarded(ctx, &round.binding, token)
	if fail != nil {
		return format, fail
	}
	round.claims = claims
	round.unpinned = format.carries&ClaimQuestions == 0
	// 4. In time, and within the flow's limits.
	if reason := b.checkTime(format, &claims); reason != "" {
		return format, failed(reason)
	}
	if len(claims.State) > b.config.MaxState {
		return format, failed(ReasonTooLarge)
	}
	// 5. Last, because it spends the token: not used before.
	if b.singleUse(&round.binding) && format.carries&ClaimSingleUse != 0 {
		return format, b.claim(ctx, round)
	}
	return format, nil
}

// checkTime states what is accepted, so that a nonsense number is not.
func (b *Boundary) checkTime(format *acceptedFormat, c *Claims) Reason {
	now := time.Now().UnixMilli()
	if !(now < c.Expires) {
		return ReasonExpired
	}
	if !(c.Issued <= now+clockSkew.Milliseconds()) {
		return ReasonFromTheFuture
	}
	if format.carries&ClaimFlow == 0 {
		return ""
	}
	if !(b.config.MaxFlow == NoLimit || now < c.FlowStart+b.config.MaxFlow.Milliseconds()) {
		return ReasonFlowExpired
	}
	if !(1 <= c.Round && c.Round <= b.config.MaxRounds) {
		return ReasonTooManyRounds
	}
	return ""
}

// openGuarded opens the token and drops claims that the format cannot prove.
func (f *acceptedFormat) openGuarded(ctx context.Context, binding *Binding, token string) (claims Claims, fail *failure) {
	fail = guard(func() (err error) {
		if native, ok := f.Format.(*recordFormat); ok {
			// Called directly, it leaves the binding on the caller's stack.
			claims, err = native.Open(ctx, binding, token)
			return err
		}
		onHeap := *binding
		claims, err = f.Format.Open(ctx, &onHeap, token)
		return err
	}, ReasonCodecFailed, formatReasons...)
	if fail != nil {
		return Claims{}, fail
	}
	if f.carries&(ClaimFlow|ClaimSingleUse) == 0 {
		claims.Flow, claims.FlowStart, claims.Round = [16]byte{}, 0, 0
	}
	if f.carries&ClaimQuestions == 0 {
		claims.Questions = nil
	}
	return claims, nil
}

// formatReasons are those that a format may give.
var formatReasons = []Reason{
	ReasonMalformed, ReasonUnknownKey, ReasonForged, ReasonTooLarge, ReasonVersion,
	ReasonRequest, ReasonArguments, ReasonAudience, ReasonPrincipal,
}
