package tripseal_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
)

// bare is a format without a prefix. It records the tokens that it opens. Its token for a state is
// the state itself.
type bare struct {
	carries tripseal.ClaimSet
	opened  *[]string
}

func (bare) Prefix() string               { return "" }
func (f bare) Carries() tripseal.ClaimSet { return f.carries }
func (bare) Digest(*tripseal.Binding) ([]byte, error) {
	return []byte("arguments"), nil
}
func (bare) Seal(_ context.Context, _ *tripseal.Binding, c *tripseal.Claims) (string, error) {
	return c.State, nil
}
func (f bare) Open(_ context.Context, _ *tripseal.Binding, token string) (tripseal.Claims, error) {
	if f.opened != nil {
		*f.opened = append(*f.opened, token)
	}
	now := time.Now().UnixMilli()
	return tripseal.Claims{
		Issued: now, Expires: now + 1000, State: token, HasState: true, Arguments: []byte("arguments"),
		Flow: [16]byte{1}, FlowStart: now, Round: 1,
	}, nil
}

func TestAFormatWithoutAPrefixGetsOnlyTokensWithNoKnownPrefix(t *testing.T) {
	var seen []string
	old := bare{allClaims, &seen}
	keys := newRing(t, newKey(t))
	also := []tripseal.Accepted{{Format: readable{}, Waive: allClaims}}
	for name, config := range map[string]tripseal.Config{
		"opening":             {Keys: keys, AlsoOpen: append(also, tripseal.Accepted{Format: old})},
		"opening, listed 1st": {Keys: keys, AlsoOpen: append([]tripseal.Accepted{{Format: old}}, also...)},
		"sealing":             {Format: old, AlsoOpen: append(also, tripseal.Accepted{Format: tripseal.NativeFormat(keys)})},
		"without native":      {Format: old, AlsoOpen: also},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, config)
			native := newService(t, tripseal.Config{Keys: keys}).first(t, deploy(), step)
			forged, cut := native[:40]+"AAAA"+native[44:], native[:len(native)-1]
			seen = nil
			want := tripseal.ReasonForged
			if name == "without native" {
				want = tripseal.ReasonMalformed
			} else {
				s.accept(t, deploy(), native)
			}
			s.reject(t, deploy(), forged, want)
			for _, token := range []string{cut, "ms1.", "ms1.hush", "mc1.hush", "mc1." + native[4:], "mh1.hush", "mh1." + native[4:]} {
				if _, err := s.Open(t.Context(), deploy(), token); err == nil {
					t.Errorf("%.8q opens", token)
				}
			}
			s.accept(t, deploy(), "plain.hush")
			if len(seen) != 0 {
				t.Fatalf("the format without a prefix was asked to open %.8q", seen)
			}
			for _, token := range []string{"hush", "ms1", "MS1.hush", " ms1.hush", "v1.hush", ".", "plain"} {
				round := s.accept(t, deploy(), token)
				if state, _ := round.State(); state != token {
					t.Errorf("%q opens as %q", token, state)
				}
				if event := s.book.lastEvent(t); event.Format != "unprefixed" {
					t.Errorf("the observer saw the format %q", event.Format)
				}
			}
			if len(seen) != 7 {
				t.Errorf("it was asked to open %d tokens, want 7", len(seen))
			}
		})
	}
}

func TestTwoFormatsWithoutAPrefixAreRefused(t *testing.T) {
	old := bare{carries: allClaims}
	for name, config := range map[string]tripseal.Config{
		"sealing and opening": {Format: old, AlsoOpen: []tripseal.Accepted{{Format: old}}},
		"opening twice":       {Keys: newRing(t, newKey(t)), AlsoOpen: []tripseal.Accepted{{Format: old}, {Format: readable{}, Waive: allClaims}, {Format: old}}},
	} {
		config.Audience, config.Logger = "a", slog.New(slog.DiscardHandler)
		if _, err := tripseal.New(config); err == nil || !strings.Contains(err.Error(), "two formats without a prefix") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestATokenThatWouldNotComeBackIsNotSealed checks that a token is not sealed if it is empty, or if
// it begins with the prefix of another format.
func TestATokenThatWouldNotComeBackIsNotSealed(t *testing.T) {
	s := newService(t, tripseal.Config{
		Format:   bare{carries: allClaims},
		AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(newRing(t, newKey(t)))}, {Format: readable{}, Waive: allClaims}},
	})
	alone := newService(t, tripseal.Config{Format: bare{carries: allClaims}})
	seal := func(s service, state string) (string, error) {
		round, _ := s.Open(t.Context(), deploy(), "")
		return s.Seal(t.Context(), &round, &state)
	}
	for _, state := range []string{"", "ms1.hush", "mc1.hush", "mh1.hush", "plain.hush"} {
		token, err := seal(s, state)
		s.notSealed(t, token, err, tripseal.ReasonCodecFailed)
	}
	for _, state := range []string{"", "ms1.hush", "mc1.hush", "mh1.hush"} {
		token, err := seal(alone, state)
		alone.notSealed(t, token, err, tripseal.ReasonCodecFailed)
	}
	if logged := alone.book.last(t); logged["format"] != "unprefixed" {
		t.Errorf("the log says %v", logged)
	}
	for _, state := range []string{"hush", "ms1", "ms2.hush"} {
		token, err := seal(s, state)
		if err != nil {
			t.Fatalf("%q: %v", state, err)
		}
		s.accept(t, deploy(), token)
	}
}

// The type open is a format that does not seal its states, as its method Unsealed says.
type open struct {
	bare
	tools []string
}

var ends = time.Now().Add(time.Hour)

func (o open) Unsealed() ([]string, time.Time) { return o.tools, ends }

func TestAnUnsealedFormatIsRefusedWhereItMustNotGo(t *testing.T) {
	store := storeFunc(func(context.Context, tripseal.Use) (bool, error) { return true, nil })
	keys := newRing(t, newKey(t))
	plain := open{tools: []string{"deploy"}}
	native := tripseal.Accepted{Format: tripseal.NativeFormat(keys)}
	for name, c := range map[string]struct {
		config tripseal.Config
		want   string
	}{
		"single use for everything": {tripseal.Config{Keys: keys, Replay: store, AlsoOpen: []tripseal.Accepted{{Format: plain, Waive: allClaims}}}, "cannot work only once"},
		"single use for its tool":   {tripseal.Config{Keys: keys, Replay: store, ReplayTools: []string{"other", "deploy"}, AlsoOpen: []tripseal.Accepted{{Format: plain, Waive: allClaims}}}, "cannot work only once"},
		"single use, sealing":       {tripseal.Config{Format: plain, Waive: allClaims, Replay: store, AlsoOpen: []tripseal.Accepted{native}}, "cannot work only once"},
		"nothing else":              {tripseal.Config{Format: plain, Waive: allClaims}, "add NativeFormat(keys)"},
		"a claim":                   {tripseal.Config{Keys: keys, AlsoOpen: []tripseal.Accepted{{Format: open{bare: bare{carries: tripseal.ClaimUser}}, Waive: allClaims &^ tripseal.ClaimUser}}}, "cannot carry user"},
	} {
		c.config.Audience, c.config.Logger = "a", slog.New(slog.DiscardHandler)
		if _, err := tripseal.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for claim := tripseal.ClaimSet(1); claim < allClaims; claim <<= 1 {
		for name, config := range map[string]tripseal.Config{
			"sealing": {Format: plain, Waive: allClaims &^ claim, AlsoOpen: []tripseal.Accepted{native}},
			"opening": {Keys: keys, AlsoOpen: []tripseal.Accepted{{Format: plain, Waive: allClaims &^ claim}}},
		} {
			config.Audience, config.Logger = "a", slog.New(slog.DiscardHandler)
			config.MaxFlow, config.MaxRounds = tripseal.NoLimit, tripseal.NoLimit // so the config demands few claims
			if _, err := tripseal.New(config); err == nil || !strings.Contains(err.Error(), "cannot carry "+claim.String()+";") {
				t.Errorf("%s without a waiver of %s: %v", name, claim, err)
			}
		}
	}
}

// TestAWaiverNeverGrantsAnUnsealedFormatSingleUseOrElicit waives all claims for an unsealed
// format. For ClaimSingleUse and ClaimElicit, the waiver must have no effect: the boundary must
// report them as missing, and the round must not report them as waived. The test also presents a
// state for a tool that is not among the format's tools: the state must be rejected.
func TestAWaiverNeverGrantsAnUnsealedFormatSingleUseOrWording(t *testing.T) {
	store := storeFunc(func(context.Context, tripseal.Use) (bool, error) { return true, nil })
	never := tripseal.ClaimSingleUse | tripseal.ClaimElicit
	keys := newRing(t, newKey(t))
	s := newService(t, tripseal.Config{
		Keys: keys, Replay: store, ReplayTools: []string{"deploy"},
		AlsoOpen: []tripseal.Accepted{{Format: open{tools: []string{"other"}}, Waive: allClaims}},
	})
	s.reject(t, deploy(), "hush", tripseal.ReasonClaimMissing)
	other := deploy()
	other.Target = "other"
	round := s.accept(t, other, "hush")
	if round.Waived() != allClaims&^never {
		t.Errorf("waived for an unsealed state: %v", round.Waived())
	}
}

func TestAnUnsealedFormatIsSaidOutLoud(t *testing.T) {
	s := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: open{tools: []string{"deploy", "book\n"}}, Waive: allClaims}}})
	logged := s.book.last(t)
	until, err := time.Parse(time.RFC3339, logged["until"].(string))
	if message, _ := logged["msg"].(string); logged["level"] != "WARN" || !strings.Contains(message, "not protected") ||
		fmt.Sprint(logged["tools"]) != `[deploy "book\n"]` || err != nil || !until.Equal(ends) || logged["sealing"] != false {
		t.Errorf("the log says %v", logged)
	}
}
