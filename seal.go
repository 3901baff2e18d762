package tripseal

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tripseal/tripseal/internal/strictjson"
	"github.com/tripseal/tripseal/internal/whose"
)

// Seal returns the token to send in place of the state. Call it when a handler returns a result that asks questions,
// and pass these questions. A nil state means that the handler wrote none. Seal refuses whatever Open would refuse.
// The error is a [*SealError], or another one if this is a first round and the request's arguments are malformed.
func (b *Boundary) Seal(ctx context.Context, round *Round, state *string, questions ...Question) (string, error) {
	start := b.startEvent()
	format := &b.formats[0]
	var stateSize int
	if state != nil {
		stateSize = len(*state)
	}
	token, fail := b.mint(ctx, round, format, state, questions)
	if fail != nil {
		return "", b.notSealed(ctx, start, round, format, stateSize, fail)
	}
	if b.config.Observer != nil {
		event := b.event(OpSeal, start, round, format, token)
		event.StateBytes = stateSize
		event.Round++
		b.observe(ctx, event)
	}
	return token, nil
}

// AskNow begins the next round of a flow without a token, for a client that is asked while its call runs and so holds
// nothing. It refuses whatever Seal would refuse, and the observer gets the event of a seal. An adapter calls AskNow
// before it asks, and [Round.Answered] when the answers are there.
func (b *Boundary) AskNow(ctx context.Context, round *Round, state string, questions ...Question) error {
	start := b.startEvent()
	format := &b.formats[0]
	claims, fail := b.next(ctx, round, format, &state, questions)
	if fail != nil {
		return b.notSealed(ctx, start, round, format, len(state), fail)
	}
	round.claims = claims
	if b.config.Observer != nil {
		b.observe(ctx, b.event(OpSeal, start, round, format, ""))
	}
	return nil
}

// mint makes the claims of the next token and returns the sealed token.
func (b *Boundary) mint(
	ctx context.Context, round *Round, format *acceptedFormat, state *string, questions []Question,
) (string, *failure) {
	// Do steps 1 to 3.
	claims, fail := b.next(ctx, round, format, state, questions)
	if fail != nil {
		return "", fail
	}
	// 4. Bind the token to the arguments.
	if fail := b.bindArguments(round); fail != nil {
		return "", fail
	}
	// 5. Seal the claims into a token.
	if claims.Elicit && format.carries&ClaimElicit == 0 { // the operator waived the claim
		claims.State = whose.Mark + claims.State
	}
	token, fail := format.seal(ctx, round, &claims)
	if fail != nil {
		return "", fail
	}
	if format.record == nil && (token == "" || b.formatOf(token) != format) {
		return "", failedBecause(ReasonCodecFailed, errNotItsToken)
	}
	if len(token) > b.config.MaxToken {
		return "", failedBecause(ReasonTooLarge,
			"the token has %d bytes, Config.MaxToken is %d", len(token), b.config.MaxToken)
	}
	return token, nil
}

// next returns the claims of the round's next token.
func (b *Boundary) next(
	ctx context.Context, round *Round, format *acceptedFormat, state *string, questions []Question,
) (claims Claims, fail *failure) {
	// 1. Do the checks that cost nothing, and find out whose state it is.
	if round == nil || round.boundary != b {
		return claims, failedBecause(ReasonMisuse, "the Round does not come from a successful Open of this boundary")
	}
	elicited, demanded := false, b.demanded(&round.binding)
	if state != nil {
		var written string
		if written, elicited = whose.Verify(*state); elicited {
			state, demanded = &written, demanded|ClaimElicit
		}
	}
	if state != nil && len(*state) > b.config.MaxState {
		return claims, failedBecause(ReasonTooLarge,
			"the state has %d bytes, Config.MaxState is %d", len(*state), b.config.MaxState)
	}
	if !wellFormed(questions) {
		return claims, failedBecause(ReasonBadQuestions,
			"%d questions: at most %d, each with a Kind and with a different key of at most %d bytes",
			len(questions), MaxQuestions, MaxQuestionKey)
	}
	if missing := format.missing(demanded); missing != 0 {
		return claims, lacking(missing)
	}
	// 2. Find out who is calling.
	if fail := round.identify(ctx); fail != nil {
		return claims, fail
	}
	if round.binding.User == "" && b.config.RequireUser {
		return claims, failed(ReasonUser)
	}
	// 3. Make the claims.
	claims, reason := b.nextClaims(round, questions)
	if reason != "" {
		return claims, failed(reason)
	}
	if state != nil {
		claims.State, claims.HasState, claims.Elicit = *state, true, elicited
	}
	return claims, nil
}

// bindArguments computes the digest of the arguments on a first round. A later round keeps the digest that Open
// computed.
func (b *Boundary) bindArguments(round *Round) *failure {
	sealing := &b.formats[0]
	if sealing.record != nil && round.digests.plainKnown || round.arguments != nil {
		return nil
	}
	if len(round.binding.Arguments) > b.config.MaxArguments {
		return undigested(strictjson.Whole("longer than Config.MaxArguments"))
	}
	return sealing.digestArguments(round)
}

const errNotItsToken = "the format sealed a token that it could not open: " +
	"an empty one, one without its prefix, or one that begins with the prefix of another format"

// seal returns the token for these claims. It calls the native format directly, so that the round, the claims and the
// questions stay on the caller's stack. Other formats get copies.
func (f *acceptedFormat) seal(ctx context.Context, round *Round, claims *Claims) (token string, fail *failure) {
	if f.record != nil {
		return f.record.seal(ctx, &round.binding, &round.digests, claims)
	}
	onHeap := struct {
		binding Binding
		claims  Claims
	}{round.binding, Claims{
		claims.Issued, claims.Expires, claims.Flow, claims.FlowStart, claims.Round,
		slices.Clone(claims.Questions), slices.Clone(round.arguments), strings.Clone(claims.State), claims.HasState,
		claims.Elicit,
	}}
	onHeap.binding.Arguments = nil // the handler may have changed the arguments since they were digested
	fail = callFormat(func() (err error) {
		token, err = f.Format.Seal(ctx, &onHeap.binding, &onHeap.claims)
		return err
	})
	return token, fail
}

// nextClaims returns the claims of the round's next token, or the reason why the flow cannot continue.
func (b *Boundary) nextClaims(round *Round, questions []Question) (c Claims, reason Reason) {
	now := time.Now().UnixMilli()
	if round.claims.Flow == [16]byte{} {
		rand.Read(round.claims.Flow[:]) // never fails
		round.claims.FlowStart = now
	}
	c.Flow, c.Round, c.Questions = round.claims.Flow, round.claims.Round+1, questions
	c.FlowStart = min(round.claims.FlowStart, now) // later than now if the flow began on a replica whose clock is ahead
	if !(1 <= c.Round && c.Round <= b.config.MaxRounds) {
		return Claims{}, ReasonTooManyRounds
	}
	ttl := b.config.TTL
	for i := range questions {
		if questions[i].Kind == KindURL && b.config.URLTTL != 0 {
			ttl = b.config.URLTTL
		}
	}
	c.Issued, c.Expires = now, now+ttl.Milliseconds()
	if b.config.MaxFlow != NoLimit {
		c.Expires = min(c.Expires, c.FlowStart+b.config.MaxFlow.Milliseconds())
	}
	if !(c.Issued < c.Expires) {
		return Claims{}, ReasonFlowExpired
	}
	return c, ""
}

// EncodeState returns a value as JSON, to be used as a state. It refuses a value whose JSON comes back from
// [DecodeState] changed, such as an integer beyond 2^53 in a field of type any. What JSON leaves out by itself, such
// as unexported fields, is lost. Use EncodeState if a handler keeps a Go value and calls [Boundary.Seal] itself; with
// an adapter, use its function SetState.
func EncodeState(value any) (string, error) {
	if value == nil {
		return "null", nil
	}
	// Encode through a pointer, because DecodeState uses the methods of the pointer type too.
	pointer, back := reflect.New(reflect.TypeOf(value)), reflect.New(reflect.TypeOf(value))
	pointer.Elem().Set(reflect.ValueOf(value))
	text, err := json.Marshal(pointer.Interface())
	if err != nil {
		return "", fmt.Errorf("tripseal: the state cannot be written as JSON: %w", err)
	}
	if !decodeStrictly(text, back.Interface()) {
		return "", fmt.Errorf("tripseal: a state of type %T cannot be read back from its JSON", value)
	}
	if again, err := json.Marshal(back.Interface()); err != nil || !bytes.Equal(again, text) {
		return "", fmt.Errorf("tripseal: a state of type %T would come back from its JSON as another value: "+
			"give numbers fields of their own types, and keep bytes in a []byte", value)
	}
	return string(text), nil
}

// DecodeState decodes a state that [EncodeState] encoded. It refuses a state with members that T does not have, or
// with members of other types than in T. The error quotes nothing from the state. Use DecodeState after
// [Boundary.Open]; with an adapter, use its function State.
func DecodeState[T any](state string) (T, error) {
	var value, none T
	if !decodeStrictly([]byte(state), &value) {
		return none, fmt.Errorf("tripseal: the state is not a %T", none)
	}
	return value, nil
}

func decodeStrictly(text []byte, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if decoder.Decode(into) != nil {
		return false
	}
	_, err := decoder.Token()
	return err == io.EOF
}
