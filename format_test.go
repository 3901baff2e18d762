package mcpseal_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mcpseal/mcpseal"
)

const allClaims mcpseal.ClaimSet = 1<<8 - 1

// TestAFormatThatLacksAClaimNeedsAWaiver checks that New refuses a format that lacks a claim,
// unless the claim is waived. This holds for ClaimUser even if calls need no user. Without this
// claim, a user's token would open for every caller.
func TestAFormatThatLacksAClaimNeedsAWaiver(t *testing.T) {
	store := storeFunc(func(context.Context, mcpseal.Use) (bool, error) { return true, nil })
	demanded := mcpseal.ClaimRequest | mcpseal.ClaimArguments | mcpseal.ClaimAudience | mcpseal.ClaimUser | mcpseal.ClaimQuestions | mcpseal.ClaimFlow
	for _, c := range []struct {
		name   string
		config mcpseal.Config
		need   mcpseal.ClaimSet
	}{
		{"the default policy", mcpseal.Config{}, demanded},
		{"single use", mcpseal.Config{Replay: store}, demanded | mcpseal.ClaimSingleUse},
		{"no flow limits", mcpseal.Config{MaxFlow: mcpseal.NoLimit, MaxRounds: mcpseal.NoLimit}, demanded &^ mcpseal.ClaimFlow},
	} {
		t.Run(c.name, func(t *testing.T) {
			for claim := mcpseal.ClaimSet(1); claim < allClaims; claim <<= 1 {
				opening, sealing := c.config, c.config
				opening.AlsoOpen = []mcpseal.Accepted{{Format: readable{}, Waive: allClaims &^ claim}}
				sealing.Format, sealing.Waive = readable{}, allClaims&^claim
				for where, config := range map[string]mcpseal.Config{"Config.AlsoOpen": opening, "Config.Waive": sealing} {
					if config.Audience = "deploy.example.com"; config.Format == nil {
						config.Keys = newRing(t, newKey(t))
					}
					config.Logger = slog.New(slog.DiscardHandler)
					_, err := mcpseal.New(config)
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
	store := storeFunc(func(context.Context, mcpseal.Use) (bool, error) { return true, nil })
	s := newService(t, mcpseal.Config{
		Replay: store, ReplayTools: []string{"deploy"},
		AlsoOpen: []mcpseal.Accepted{{Format: readable{}, Waive: allClaims &^ mcpseal.ClaimSingleUse}},
	})
	s.reject(t, deploy(), "plain.hush", mcpseal.ReasonClaimMissing)
	if logged := s.book.last(t)["claims"]; logged != "single use" {
		t.Errorf("the log names %v", logged)
	}
	other := deploy()
	other.Target = "other"
	s.accept(t, other, "plain.hush")
}

func TestClaimsThatAFormatCannotProveAreDropped(t *testing.T) {
	ctx := context.Background()
	s := newService(t, mcpseal.Config{AlsoOpen: []mcpseal.Accepted{{Format: readable{}, Waive: allClaims}}})
	round := s.accept(t, deploy(), "plain.hush")
	if questions, pinned := round.Questions(); pinned || questions != nil || round.Number() != 0 {
		t.Errorf("%v, pinned %v, round %d", questions, pinned, round.Number())
	}
	// The next token is native, and begins a new flow.
	state := step
	token, err := s.Seal(ctx, &round, &state, confirm)
	if err != nil || !strings.HasPrefix(token, "ms1.") {
		t.Fatalf("%.10q, %v", token, err)
	}
	round = s.accept(t, deploy(), token)
	if questions, pinned := round.Questions(); !pinned || len(questions) != 1 || round.Number() != 1 {
		t.Errorf("%v, pinned %v, round %d", questions, pinned, round.Number())
	}
}

func TestWaiversAreLogged(t *testing.T) {
	s := newService(t, mcpseal.Config{AlsoOpen: []mcpseal.Accepted{{Format: readable{}, Waive: allClaims &^ mcpseal.ClaimSingleUse}}})
	if logged := s.book.last(t); logged["claims"] != "request, arguments, audience, user, questions, flow, wording" || logged["format"] != "plain." {
		t.Errorf("the log says %v", logged)
	}
}

func TestAForeignFormatSealsWithWaivers(t *testing.T) {
	ctx := context.Background()
	keys := newRing(t, newKey(t))
	s := newService(t, mcpseal.Config{
		Format: readable{}, Waive: allClaims,
		AlsoOpen: []mcpseal.Accepted{{Format: mcpseal.NativeFormat(keys)}},
	})
	round, _ := s.Open(ctx, deploy(), "")
	state := step
	token, err := s.Seal(ctx, &round, &state)
	if err != nil || token != "plain."+step {
		t.Fatalf("%q, %v", token, err)
	}
	s.accept(t, deploy(), token)
	// Native tokens carry all claims. The service must open them too.
	native := newService(t, mcpseal.Config{Keys: keys})
	s.accept(t, deploy(), native.first(t, deploy(), step))
}

// spy is a format that fails the test if its method Open is called.
type spy struct {
	readable
	t *testing.T
}

func (s spy) Prefix() string { return "spy." }
func (s spy) Open(context.Context, *mcpseal.Binding, string) (mcpseal.Claims, error) {
	s.t.Error("a token was tried against a second format")
	return mcpseal.Claims{}, nil
}

func TestNoTokenIsTriedAgainstASecondFormat(t *testing.T) {
	s := newService(t, mcpseal.Config{AlsoOpen: []mcpseal.Accepted{{Format: spy{t: t}, Waive: allClaims}}})
	token := s.first(t, deploy(), step)
	s.accept(t, deploy(), token)
	s.reject(t, deploy(), token[:40]+"AAAA"+token[44:], mcpseal.ReasonForged)
	s.reject(t, deploy(), "other."+token, mcpseal.ReasonMalformed)
	s.reject(t, deploy(), "spy", mcpseal.ReasonMalformed)
}

// nonsense is a format that opens every token with the same claims, which no honest token has.
type nonsense struct {
	readable
	claims mcpseal.Claims
}

func (nonsense) Prefix() string            { return "odd." }
func (nonsense) Carries() mcpseal.ClaimSet { return allClaims }
func (n nonsense) Open(context.Context, *mcpseal.Binding, string) (mcpseal.Claims, error) {
	return n.claims, nil
}

func TestNonsenseClaimsFailTheComparison(t *testing.T) {
	now := time.Now().UnixMilli()
	honest := mcpseal.Claims{Arguments: []byte("arguments"), Issued: now, Expires: now + 60_000, FlowStart: now, Round: 1, Flow: [16]byte{1}, State: "hush", HasState: true}
	for name, c := range map[string]struct {
		change func(*mcpseal.Claims)
		want   mcpseal.Reason
	}{
		"no expiry":        {func(c *mcpseal.Claims) { c.Expires = 0 }, mcpseal.ReasonExpired},
		"negative expiry":  {func(c *mcpseal.Claims) { c.Expires = -1 << 63 }, mcpseal.ReasonExpired},
		"issued far ahead": {func(c *mcpseal.Claims) { c.Issued = 1<<63 - 1 }, mcpseal.ReasonFromTheFuture},
		"no flow start":    {func(c *mcpseal.Claims) { c.FlowStart = 0 }, mcpseal.ReasonFlowExpired},
		"flow from ahead":  {func(c *mcpseal.Claims) { c.FlowStart = 1<<63 - 1 }, mcpseal.ReasonFromTheFuture},
		"twin questions":   {func(c *mcpseal.Claims) { c.Questions = []mcpseal.Question{confirm, confirm} }, mcpseal.ReasonMalformed},
		"unknown kind":     {func(c *mcpseal.Claims) { c.Questions = []mcpseal.Question{{Key: "a", Kind: 9}} }, mcpseal.ReasonMalformed},
		"too many":         {func(c *mcpseal.Claims) { c.Questions = make([]mcpseal.Question, 100_000) }, mcpseal.ReasonMalformed},
		"a ghost state":    {func(c *mcpseal.Claims) { c.HasState = false }, mcpseal.ReasonMalformed},
		"round 0":          {func(c *mcpseal.Claims) { c.Round = 0 }, mcpseal.ReasonTooManyRounds},
		"round -1":         {func(c *mcpseal.Claims) { c.Round = -1 }, mcpseal.ReasonTooManyRounds},
		"round 1<<30":      {func(c *mcpseal.Claims) { c.Round = 1 << 30 }, mcpseal.ReasonTooManyRounds},
		"huge state":       {func(c *mcpseal.Claims) { c.State = strings.Repeat("hush", 5000) }, mcpseal.ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			format := nonsense{claims: honest}
			newService(t, mcpseal.Config{Format: format}).accept(t, deploy(), "odd.x")
			c.change(&format.claims)
			newService(t, mcpseal.Config{Format: format}).reject(t, deploy(), "odd.x", c.want)
		})
	}
}

// named is a format without flows. Its tokens have a name, so single use still works for them.
type named struct{ readable }

func (named) Prefix() string            { return "named." }
func (named) Carries() mcpseal.ClaimSet { return allClaims &^ mcpseal.ClaimFlow }
func (named) Open(context.Context, *mcpseal.Binding, string) (mcpseal.Claims, error) {
	return mcpseal.Claims{Expires: time.Now().UnixMilli() + 1000, Flow: [16]byte{7}, Round: 1 << 20, FlowStart: 5, Arguments: []byte("arguments")}, nil
}

func TestSingleUseWithoutAFlow(t *testing.T) {
	s := newService(t, mcpseal.Config{
		Replay:   &mapStore{},
		AlsoOpen: []mcpseal.Accepted{{Format: named{}, Waive: mcpseal.ClaimFlow}},
	})
	round := s.accept(t, deploy(), "named.x")
	s.reject(t, deploy(), "named.x", mcpseal.ReasonReplayed)
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
type meddling struct{ mcpseal.Format }

func (f meddling) Prefix() string { return f.Format.Prefix() }
func (f meddling) Seal(ctx context.Context, b *mcpseal.Binding, c *mcpseal.Claims) (string, error) {
	b.Audience = "elsewhere"
	return f.Format.Seal(ctx, b, c)
}

func TestAFormatMayWrapAnother(t *testing.T) {
	keys := newRing(t, newKey(t))
	wrapped := newService(t, mcpseal.Config{Format: meddling{mcpseal.NativeFormat(keys)}})
	native := newService(t, mcpseal.Config{Keys: keys})
	native.reject(t, deploy(), wrapped.first(t, deploy(), step), mcpseal.ReasonAudience)
	// If a binding is changed and used again, the changed values count.
	ctx := context.Background()
	format := mcpseal.NativeFormat(keys)
	binding := mcpseal.Binding{Method: "tools/call", Target: "deploy", User: "hush-alice"}
	now := time.Now().UnixMilli()
	token, err := format.Seal(ctx, &binding, &mcpseal.Claims{Issued: now, Expires: now + 1000, FlowStart: now, Round: 1, Arguments: make([]byte, 16)})
	if err != nil {
		t.Fatal(err)
	}
	binding.User, binding.Target = "hush-mallory", "destroy"
	if _, err := format.Open(ctx, &binding, token); err == nil {
		t.Error("a binding that was changed still opens")
	}
}
