package sealtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// TestFormat tests a format, with a prefix or without, against the contract of
// [tripseal.Format]. Call it in a test of your own format.
func TestFormat(t *testing.T, format tripseal.Format) {
	ctx := context.Background()
	carries := format.Carries()
	now := time.Now().UnixMilli()
	claims := tripseal.Claims{
		Issued: now, Expires: now + 600_000,
		Flow: [16]byte{1, 2, 3}, FlowStart: now - 5_000, Round: 3,
		Questions: []tripseal.Question{
			{Key: "confirm", Kind: tripseal.KindForm},
			{Key: "", Kind: tripseal.KindURL},
		},
		State: "step=1", HasState: true, Elicit: carries&tripseal.ClaimElicit != 0,
	}
	binding := func() *tripseal.Binding {
		b := &tripseal.Binding{Method: "tools/call", Target: "deploy", Arguments: []byte(`{"region":"eu"}`)}
		if carries&tripseal.ClaimAudience != 0 {
			b.Audience = "service"
		}
		if carries&tripseal.ClaimUser != 0 {
			b.User = "alice"
		}
		return b
	}
	// sealFor seals as a boundary does: it calls Digest first, and passes only the digest
	// of the arguments to Seal. openFor compares the digest after Open.
	sealFor := func(b *tripseal.Binding, c tripseal.Claims) (token string, err error) {
		if c.Arguments, err = format.Digest(b); err != nil {
			return "", fmt.Errorf("the digest: %w", err)
		}
		b.Arguments = nil
		return format.Seal(ctx, b, &c)
	}
	openFor := func(b *tripseal.Binding, token string) (tripseal.Claims, error) {
		c, err := format.Open(ctx, b, token)
		if err != nil {
			return c, err
		}
		digest, err := format.Digest(b)
		if err == nil && !bytes.Equal(digest, c.Arguments) {
			err = errors.New("other arguments")
		}
		return c, err
	}
	seal := func(t *testing.T, c tripseal.Claims) string {
		t.Helper()
		token, err := sealFor(binding(), c)
		if err != nil {
			t.Fatalf("Seal: %v", err)
		}
		return token
	}

	t.Run("RoundTrip", func(t *testing.T) {
		for _, state := range []string{"", "step=1", "\x00", `"quoted\u0000"`, "ünïcödé 🦭", strings.Repeat("x", 10_000)} {
			want := claims
			want.State = state
			got, err := openFor(binding(), seal(t, want))
			if err != nil {
				t.Fatalf("Open: %v", err)
			}
			if got.State != state || !got.HasState {
				t.Errorf("state %.20q came back as %.20q", state, got.State)
			}
			if late := got.Expires - want.Expires; late > 0 || late < -1000 {
				t.Errorf("expiry moved by %d ms", late)
			}
			if carries&tripseal.ClaimQuestions != 0 && !slices.Equal(got.Questions, want.Questions) {
				t.Errorf("questions came back as %v", got.Questions)
			}
			if carries&tripseal.ClaimElicit != 0 && !got.Elicit {
				t.Error("a state of package elicit came back as a state of a handler")
			}
			if carries&(tripseal.ClaimFlow|tripseal.ClaimSingleUse) != 0 && (got.Flow != want.Flow || got.Round != want.Round) {
				t.Errorf("flow and round came back as %x, %d", got.Flow, got.Round)
			}
			if carries&tripseal.ClaimFlow != 0 && got.FlowStart != want.FlowStart {
				t.Errorf("the flow's start moved by %d ms", got.FlowStart-want.FlowStart)
			}
			if late := got.Issued - want.Issued; got.Issued != 0 && (late > 0 || late < -1000) {
				t.Errorf("the time of issue moved by %d ms", late)
			}
		}
	})
	t.Run("NoStateIsNoText", func(t *testing.T) {
		stateless := claims
		stateless.State, stateless.HasState, stateless.Elicit = "", false, false
		if got, err := openFor(binding(), seal(t, stateless)); err != nil || got.State != "" {
			t.Errorf("no state came back as %q, %v", got.State, err)
		}
	})
	t.Run("Concurrent", func(t *testing.T) {
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				mine := claims
				mine.State = strings.Repeat(string(rune('a'+g)), 100+g)
				for range 50 {
					token, err := sealFor(binding(), mine)
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := openFor(binding(), token); err != nil || got.State != mine.State {
						t.Errorf("opened %.10q, %v", got.State, err)
						return
					}
				}
			})
		}
		group.Wait()
	})
	t.Run("PrefixIsItsOwn", func(t *testing.T) {
		token := seal(t, claims)
		if !strings.HasPrefix(token, format.Prefix()) {
			t.Errorf("the token %.20q does not begin with %q", token, format.Prefix())
		}
		for _, purpose := range []tripseal.Purpose{tripseal.PurposeState, tripseal.PurposeCursor, tripseal.PurposeHandle} {
			taken := purpose.Prefix()
			if format.Prefix() == "" && strings.HasPrefix(token, taken) {
				t.Errorf("the format has no prefix, but the token %.20q begins with %q, which is tripseal's own", token, taken)
			}
		}
	})
	t.Run("OnlyOneTextOpens", func(t *testing.T) {
		for _, other := range mutations(seal(t, claims)) {
			got, err := openFor(binding(), other)
			if err == nil {
				t.Fatalf("a changed token opens: %q", other)
			}
			if got.HasState || got.State != "" {
				t.Fatal("Open returned a state together with an error")
			}
		}
	})
	t.Run("BoundAsFarAsItCarries", func(t *testing.T) {
		token := seal(t, claims)
		for _, change := range []struct {
			name  string
			claim tripseal.ClaimSet
			apply func(*tripseal.Binding)
		}{
			{"another method", tripseal.ClaimRequest, func(b *tripseal.Binding) { b.Method = "prompts/get" }},
			{"another target", tripseal.ClaimRequest, func(b *tripseal.Binding) { b.Target = "destroy" }},
			{"other arguments", tripseal.ClaimArguments, func(b *tripseal.Binding) { b.Arguments = []byte(`{"region":"us"}`) }},
			{"no arguments", tripseal.ClaimArguments, func(b *tripseal.Binding) { b.Arguments = nil }},
			{"another audience", tripseal.ClaimAudience, func(b *tripseal.Binding) { b.Audience = "other" }},
			{"no audience", tripseal.ClaimAudience, func(b *tripseal.Binding) { b.Audience = "" }},
			{"another user", tripseal.ClaimUser, func(b *tripseal.Binding) { b.User = "mallory" }},
			{"no user", tripseal.ClaimUser, func(b *tripseal.Binding) { b.User = "" }},
		} {
			if carries&change.claim == 0 {
				continue
			}
			other := binding()
			change.apply(other)
			if _, err := openFor(other, token); err == nil {
				t.Errorf("with %s the token still opens", change.name)
			}
			// Seal with the changed binding, and open with the original one.
			reverse, err := sealFor(other, claims)
			if err != nil {
				t.Fatalf("Seal with %s: %v", change.name, err)
			}
			if _, err := openFor(binding(), reverse); err == nil {
				t.Errorf("a token with %s opens without", change.name)
			}
		}
	})
	t.Run("ArgumentsHaveOneDigest", func(t *testing.T) {
		one, err := format.Digest(binding())
		if err != nil {
			t.Fatalf("Digest: %v", err)
		}
		if again, err := format.Digest(binding()); err != nil || !bytes.Equal(one, again) {
			t.Errorf("the digest of the same arguments differs from call to call")
		}
		if carries&tripseal.ClaimArguments != 0 && len(one) == 0 {
			t.Errorf("the format carries the arguments but has no digest of them")
		}
	})
	t.Run("JunkIsRefused", func(t *testing.T) {
		for _, junk := range []string{"", format.Prefix(), format.Prefix() + ".", format.Prefix() + strings.Repeat("A", 200), "\xff", strings.Repeat(".", 1000)} {
			if _, err := openFor(binding(), junk); err == nil {
				t.Errorf("%.20q opens", junk)
			}
		}
	})
}
