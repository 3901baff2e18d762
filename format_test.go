package tripseal_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

const allClaims tripseal.ClaimSet = 1<<8 - 1

// TestAFormatThatLacksAClaimNeedsAWaiver checks that New refuses a format that lacks a claim,
// unless the claim is waived. This holds for ClaimUser even if calls need no user. Without this
// claim, a user's token would open for every caller.
func TestAFormatThatLacksAClaimNeedsAWaiver(t *testing.T) {
	store := storeFunc(func(context.Context, tripseal.Use) (bool, error) { return true, nil })
	demanded := tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser | tripseal.ClaimQuestions | tripseal.ClaimFlow
	for _, c := range []struct {
		name   string
		config tripseal.Config
		need   tripseal.ClaimSet
	}{
		{"the default policy", tripseal.Config{}, demanded},
		{"single use", tripseal.Config{Replay: store}, demanded | tripseal.ClaimSingleUse},
		{"no limit of rounds", tripseal.Config{MaxRounds: tripseal.NoLimit}, demanded},
		{"no limit of time", tripseal.Config{MaxFlow: tripseal.NoLimit}, demanded},
		{"no flow limits", tripseal.Config{MaxFlow: tripseal.NoLimit, MaxRounds: tripseal.NoLimit}, demanded &^ tripseal.ClaimFlow},
	} {
		t.Run(c.name, func(t *testing.T) {
			for claim := tripseal.ClaimSet(1); claim < allClaims; claim <<= 1 {
				opening, sealing := c.config, c.config
				opening.AlsoOpen = []tripseal.Accepted{{Format: readable{}, Waive: allClaims &^ claim}}
				sealing.Format, sealing.Waive = readable{}, allClaims&^claim
				for where, config := range map[string]tripseal.Config{"Config.AlsoOpen": opening, "Config.Waive": sealing} {
					if config.Audience = "deploy.example.com"; config.Format == nil {
						config.Keys = newRing(t, newKey(t))
					}
					config.Logger = slog.New(slog.DiscardHandler)
					_, err := tripseal.New(config)
					if c.need&claim == 0 {
						if err != nil {
							t.Errorf("%s without %s: %v", where, claim, err)
						}
						continue
					}
					if err == nil || !strings.Contains(err.Error(), "cannot carry "+claim.String()+";") || !strings.Contains(err.Error(), where) {
						t.Errorf("%s without %s: %v", where, claim, err)
					}
				}
			}
		})
	}
}

// TestAToolThatWorksOnceNeedsATokenThatCan checks that a single-use tool refuses a token that
// cannot carry the claim of single use. Other tools accept that token.
func TestAToolThatWorksOnceNeedsATokenThatCan(t *testing.T) {
	store := storeFunc(func(context.Context, tripseal.Use) (bool, error) { return true, nil })
	s := newService(t, tripseal.Config{
		Replay: store, ReplayTools: []string{"deploy"},
		AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims &^ tripseal.ClaimSingleUse}},
	})
	s.reject(t, deploy(), "plain.hush", tripseal.ReasonClaimMissing)
	if logged := s.book.last(t)["claims"]; logged != "single use" {
		t.Errorf("the log names %v", logged)
	}
	other := deploy()
	other.Target = "other"
	s.accept(t, other, "plain.hush")

	s = newService(t, tripseal.Config{
		Replay: store, ReplayTools: []string{"deploy"}, Format: readable{}, Waive: allClaims &^ tripseal.ClaimSingleUse,
	})
	round, _ := s.Open(t.Context(), deploy(), "")
	state := step
	token, err := s.Seal(t.Context(), &round, &state)
	s.notSealed(t, token, err, tripseal.ReasonClaimMissing)
	round, _ = s.Open(t.Context(), other, "")
	if token, err = s.Seal(t.Context(), &round, &state); err != nil {
		t.Errorf("another tool: %q, %v", token, err)
	}
}

func TestClaimsThatAFormatCannotProveAreDropped(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims}}})
	round := s.accept(t, deploy(), "plain.hush")
	if questions := slices.Collect(round.Asked); !round.Accepts("any", confirm.Kind) || questions != nil || round.Number() != 0 {
		t.Errorf("%v, or not every answer, round %d", questions, round.Number())
	}
	// The next token is native, and begins a new flow.
	state := step
	token, err := s.Seal(ctx, &round, &state, confirm)
	if err != nil || !strings.HasPrefix(token, "ms1.") {
		t.Fatalf("%.10q, %v", token, err)
	}
	round = s.accept(t, deploy(), token)
	if questions := slices.Collect(round.Asked); round.Accepts("any", confirm.Kind) || len(questions) != 1 || round.Number() != 1 {
		t.Errorf("%v, or every answer, round %d", questions, round.Number())
	}
}

func TestWaiversAreLogged(t *testing.T) {
	s := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims &^ tripseal.ClaimSingleUse}}})
	if logged := s.book.last(t); logged["claims"] != "request, arguments, audience, user, questions, flow, elicit" || logged["format"] != "plain." {
		t.Errorf("the log says %v", logged)
	}
}

func TestAForeignFormatSealsWithWaivers(t *testing.T) {
	ctx := context.Background()
	keys := newRing(t, newKey(t))
	s := newService(t, tripseal.Config{
		Format: readable{}, Waive: allClaims,
		AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(keys)}},
	})
	round, _ := s.Open(ctx, deploy(), "")
	state := step
	token, err := s.Seal(ctx, &round, &state)
	if err != nil || token != "plain."+step {
		t.Fatalf("%q, %v", token, err)
	}
	s.accept(t, deploy(), token)
	// Native tokens carry all claims. The service must open them too.
	native := newService(t, tripseal.Config{Keys: keys})
	s.accept(t, deploy(), native.first(t, deploy(), step))
}

// spy is a format that fails the test if its method Open is called.
type spy struct {
	readable
	t *testing.T
}

func (s spy) Prefix() string { return "spy." }
func (s spy) Open(context.Context, *tripseal.Binding, string) (tripseal.Claims, error) {
	s.t.Error("a token was tried against a second format")
	return tripseal.Claims{}, nil
}

func TestNoTokenIsTriedAgainstASecondFormat(t *testing.T) {
	s := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: spy{t: t}, Waive: allClaims}}})
	token := s.first(t, deploy(), step)
	s.accept(t, deploy(), token)
	s.reject(t, deploy(), token[:40]+"AAAA"+token[44:], tripseal.ReasonForged)
	s.reject(t, deploy(), "other."+token, tripseal.ReasonMalformed)
	s.reject(t, deploy(), "spy", tripseal.ReasonMalformed)
}

// nonsense is a format that opens every token with the same claims, which no honest token has.
type nonsense struct {
	readable
	claims tripseal.Claims
}

func (nonsense) Prefix() string             { return "odd." }
func (nonsense) Carries() tripseal.ClaimSet { return allClaims }
func (n nonsense) Open(context.Context, *tripseal.Binding, string) (tripseal.Claims, error) {
	return n.claims, nil
}

func TestNonsenseClaimsFailTheComparison(t *testing.T) {
	now := time.Now().UnixMilli()
	honest := tripseal.Claims{Arguments: []byte("arguments"), Issued: now, Expires: now + 60_000, FlowStart: now, Round: 1, Flow: [16]byte{1}, State: "hush", HasState: true}
	for name, c := range map[string]struct {
		change func(*tripseal.Claims)
		want   tripseal.Reason
	}{
		"no expiry":        {func(c *tripseal.Claims) { c.Expires = 0 }, tripseal.ReasonExpired},
		"negative expiry":  {func(c *tripseal.Claims) { c.Expires = -1 << 63 }, tripseal.ReasonExpired},
		"issued far ahead": {func(c *tripseal.Claims) { c.Issued = 1<<63 - 1 }, tripseal.ReasonFromTheFuture},
		"no flow start":    {func(c *tripseal.Claims) { c.FlowStart = 0 }, tripseal.ReasonFlowExpired},
		"flow from ahead":  {func(c *tripseal.Claims) { c.FlowStart = 1<<63 - 1 }, tripseal.ReasonFromTheFuture},
		"twin questions":   {func(c *tripseal.Claims) { c.Questions = []tripseal.Question{confirm, confirm} }, tripseal.ReasonMalformed},
		"unknown kind":     {func(c *tripseal.Claims) { c.Questions = []tripseal.Question{{Key: "a", Kind: 9}} }, tripseal.ReasonMalformed},
		"too many":         {func(c *tripseal.Claims) { c.Questions = make([]tripseal.Question, 100_000) }, tripseal.ReasonMalformed},
		"65 questions": {func(c *tripseal.Claims) {
			for i := range tripseal.MaxQuestions + 1 {
				c.Questions = append(c.Questions, tripseal.Question{Key: strconv.Itoa(i), Kind: tripseal.KindForm})
			}
		}, tripseal.ReasonMalformed},
		"other arguments": {func(c *tripseal.Claims) { c.Arguments = []byte("argumentz") }, tripseal.ReasonArguments},
		"a ghost state":   {func(c *tripseal.Claims) { c.HasState = false }, tripseal.ReasonMalformed},
		"round 0":         {func(c *tripseal.Claims) { c.Round = 0 }, tripseal.ReasonTooManyRounds},
		"round -1":        {func(c *tripseal.Claims) { c.Round = -1 }, tripseal.ReasonTooManyRounds},
		"round 1<<30":     {func(c *tripseal.Claims) { c.Round = 1 << 30 }, tripseal.ReasonTooManyRounds},
		"huge state":      {func(c *tripseal.Claims) { c.State = strings.Repeat("hush", 5000) }, tripseal.ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			format := nonsense{claims: honest}
			newService(t, tripseal.Config{Format: format}).accept(t, deploy(), "odd.x")
			c.change(&format.claims)
			newService(t, tripseal.Config{Format: format}).reject(t, deploy(), "odd.x", c.want)
		})
	}
}

// undigested is a format that cannot digest arguments, or whose Open fails but returns claims.
type undigested struct {
	nonsense
	digest, open error
}

func (f undigested) Digest(*tripseal.Binding) ([]byte, error) { return nil, f.digest }
func (f undigested) Open(context.Context, *tripseal.Binding, string) (tripseal.Claims, error) {
	return f.claims, f.open
}

func TestAFormatWithoutADigestOpensNothing(t *testing.T) {
	now := time.Now().UnixMilli()
	claims := tripseal.Claims{Issued: now, Expires: now + 60_000, FlowStart: now, Round: 1, Flow: [16]byte{1}}
	for _, digest := range []error{nil, errors.New("hush")} {
		s := newService(t, tripseal.Config{Format: undigested{nonsense{claims: claims}, digest, nil}})
		s.reject(t, deploy(), "odd.x", tripseal.ReasonCodecFailed)
	}
}

func TestClaimsBesideAnErrorDoNotCount(t *testing.T) {
	claims := tripseal.Claims{Expires: 1, Round: 1, Flow: [16]byte{1}, State: "hush", HasState: true}
	s := newService(t, tripseal.Config{Format: undigested{nonsense{claims: claims}, nil, tripseal.ReasonForged}})
	s.reject(t, deploy(), "odd.x", tripseal.ReasonForged)
	if e := s.book.lastEvent(t); e.Flow != "" || e.Round != 0 {
		t.Errorf("the observer saw the flow of a token that is not genuine: %+v", e)
	}
}

// named is a format without flows. Its tokens have a name, so single use still works for them.
type named struct{ readable }

func (named) Prefix() string             { return "named." }
func (named) Carries() tripseal.ClaimSet { return allClaims &^ tripseal.ClaimFlow }
func (named) Open(context.Context, *tripseal.Binding, string) (tripseal.Claims, error) {
	return tripseal.Claims{Expires: time.Now().UnixMilli() + 1000, Flow: [16]byte{7}, Round: 1 << 20, FlowStart: 5, Arguments: []byte("arguments")}, nil
}

func TestSingleUseWithoutAFlow(t *testing.T) {
	s := newService(t, tripseal.Config{
		Replay:   &mapStore{},
		AlsoOpen: []tripseal.Accepted{{Format: named{}, Waive: tripseal.ClaimFlow}},
	})
	round := s.accept(t, deploy(), "named.x")
	s.reject(t, deploy(), "named.x", tripseal.ReasonReplayed)
	state := step
	token, err := s.Seal(context.Background(), &round, &state)
	if err != nil {
		t.Fatal(err)
	}
	if next := s.accept(t, deploy(), token); next.Number() != 1 {
		t.Errorf("the native flow begins with round %d", next.Number())
	}
}

// meddling is a format that changes the binding before it calls the native format.
type meddling struct{ tripseal.Format }

func (f meddling) Prefix() string { return f.Format.Prefix() }
func (f meddling) Seal(ctx context.Context, b *tripseal.Binding, c *tripseal.Claims) (string, error) {
	b.Audience = "elsewhere"
	return f.Format.Seal(ctx, b, c)
}

func TestAFormatMayWrapAnother(t *testing.T) {
	keys := newRing(t, newKey(t))
	wrapped := newService(t, tripseal.Config{Format: meddling{tripseal.NativeFormat(keys)}})
	native := newService(t, tripseal.Config{Keys: keys})
	native.reject(t, deploy(), wrapped.first(t, deploy(), step), tripseal.ReasonAudience)
	// If a binding is changed and used again, the changed values count.
	ctx := context.Background()
	format := tripseal.NativeFormat(keys)
	binding := tripseal.Binding{Method: "tools/call", Target: "deploy", User: "hush-alice"}
	now := time.Now().UnixMilli()
	token, err := format.Seal(ctx, &binding, &tripseal.Claims{Issued: now, Expires: now + 1000, FlowStart: now, Round: 1, Arguments: make([]byte, 16)})
	if err != nil {
		t.Fatal(err)
	}
	binding.User, binding.Target = "hush-mallory", "destroy"
	if _, err := format.Open(ctx, &binding, token); err == nil {
		t.Error("a binding that was changed still opens")
	}
}
