package compat_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/sealtest"
)

const everything = tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser |
	tripseal.ClaimQuestions | tripseal.ClaimFlow | tripseal.ClaimSingleUse | tripseal.ClaimElicit

func newRing(t *testing.T) *tripseal.Ring {
	t.Helper()
	ring, err := tripseal.NewRing(tripseal.GenerateKey())
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// plaintextOf returns the plaintext format for the tool deploy, in a process that starts now. The
// parameter left is how long the format lasts.
func plaintextOf(t *testing.T, left time.Duration) tripseal.Format {
	t.Helper()
	now := time.Now()
	return must2(t)(compat.NewPlaintext([]string{"deploy"}, now.Add(left), now))
}

// firstRollOut and secondRollOut are the two configs of docs/migration.md.
func firstRollOut(format tripseal.Format, waive tripseal.ClaimSet, ring *tripseal.Ring) tripseal.Config {
	return tripseal.Config{Format: format, Waive: waive, AlsoOpen: []tripseal.Accepted{{Format: tripseal.NativeFormat(ring)}}}
}

func secondRollOut(format tripseal.Format, waive tripseal.ClaimSet, ring *tripseal.Ring) tripseal.Config {
	return tripseal.Config{Keys: ring, AlsoOpen: []tripseal.Accepted{{Format: format, Waive: waive}}}
}

func TestAnOwnFormatWithoutAPrefixPassesTheSuite(t *testing.T) {
	sealtest.TestFormat(t, ownFormat{secret})
}

func TestPlaintextNeedsToolsAndADateThatIsNear(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		tools []string
		until time.Time
		want  string
	}{
		"no tools":        {nil, now.Add(time.Hour), "name the tools"},
		"a nameless tool": {[]string{"deploy", ""}, now.Add(time.Hour), "name the tools"},
		"no date":         {[]string{"deploy"}, time.Time{}, "name the date"},
		"a day too late":  {[]string{"deploy"}, now.Add(48 * time.Hour), "at most 24h0m0s after the start of the process"},
		"the year 9999":   {[]string{"deploy"}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "at most 24h0m0s"},
	} {
		if format, err := compat.Plaintext(c.tools, c.until); format != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := compat.Plaintext([]string{"deploy"}, now.Add(-time.Hour)); err != nil {
		t.Errorf("a process that starts again after the date: %v", err)
	}
}

// TestPlaintextEndsADayAfterTheProcessStarted checks that the longest time for unsealed states, 24
// hours, begins when the process starts, not when the format is made.
func TestPlaintextEndsADayAfterTheProcessStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, tools := time.Now(), []string{"deploy"}
		if _, err := compat.NewPlaintext(tools, started.Add(24*time.Hour), started); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Hour)
		if _, err := compat.NewPlaintext(tools, started.Add(24*time.Hour), started); err != nil {
			t.Error(err)
		}
		if _, err := compat.NewPlaintext(tools, started.Add(24*time.Hour+time.Second), started); err == nil {
			t.Error("24 hours begin again with every format")
		}
	})
}

func TestPlaintextIsOverAtItsDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring, plaintext := newRing(t), plaintextOf(t, time.Hour)
		first, second := newBoundary(t, firstRollOut(plaintext, everything, ring)), newBoundary(t, secondRollOut(plaintext, everything, ring))
		time.Sleep(time.Hour - time.Millisecond)
		old, native := seal(t, first, "", "step=1"), seal(t, second, "", "step=1")
		opens(t, first, old, "step=1")
		opens(t, second, old, "step=1")
		time.Sleep(time.Millisecond)
		rejects(t, first, old, tripseal.ReasonExpired)
		rejects(t, second, old, tripseal.ReasonExpired)
		round := opens(t, first, native, "step=1")
		var failed *tripseal.SealError
		state := "step=2"
		if token, err := first.Seal(t.Context(), &round, &state); token != "" || !errors.As(err, &failed) || !strings.Contains(failed.Cause().Error(), "is over") {
			t.Errorf("Seal = %q, %v", token, err)
		}
		opens(t, second, seal(t, second, native, "step=2"), "step=2")
	})
}

// TestAClockThatIsSetBackDoesNotProlongPlaintext sets back the wall clock or the monotonic clock.
// By the other clock, unsealed states must still stop working in time.
func TestAClockThatIsSetBackDoesNotProlongPlaintext(t *testing.T) {
	for name, back := range map[string][2]time.Duration{"wall": {time.Hour, 0}, "monotonic": {0, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plaintext := plaintextOf(t, time.Hour)
				compat.SetClocksBack(plaintext, back[0], back[1])
				boundary := newBoundary(t, secondRollOut(plaintext, everything, newRing(t)))
				opens(t, boundary, "step=1", "step=1")
				time.Sleep(time.Hour)
				rejects(t, boundary, "step=1", tripseal.ReasonExpired)
				if token, err := plaintext.Seal(t.Context(), &tripseal.Binding{Method: "tools/call", Target: "deploy"}, &tripseal.Claims{State: "step=1"}); err == nil {
					t.Errorf("sealed as %q", token)
				}
			})
		})
	}
}

// TestPlaintextServesOnlyItsTools checks that unsealed states work only in calls of the given
// tools, not for other tools, prompts or resources.
func TestPlaintextServesOnlyItsTools(t *testing.T) {
	ring, plaintext := newRing(t), plaintextOf(t, time.Hour)
	for name, config := range map[string]tripseal.Config{
		"first": firstRollOut(plaintext, everything, ring), "second": secondRollOut(plaintext, everything, ring),
	} {
		boundary := newBoundary(t, config)
		opens(t, boundary, "step=1", "step=1")
		for _, other := range []tripseal.Request{
			{Method: "tools/call", Target: "destroy"}, {Method: "tools/call", Target: "Deploy"}, {Method: "tools/call"},
			{Method: "prompts/get", Target: "deploy"}, {Method: "resources/read", Target: "deploy"},
		} {
			if _, err := boundary.Open(t.Context(), other, "step=1"); reasonOf(err) != tripseal.ReasonRequest {
				t.Errorf("%s: %s of %q: %v", name, other.Method, other.Target, reasonOf(err))
			}
			round, _ := boundary.Open(t.Context(), other, "")
			state := "step=1"
			if token, err := boundary.Seal(t.Context(), &round, &state); name == "first" && (err == nil || token != "") {
				t.Errorf("%s of %q is sealed as %q", other.Method, other.Target, token)
			}
		}
	}
	// A later change of the caller's slice has no effect.
	tools := []string{"deploy"}
	copied := must2(t)(compat.NewPlaintext(tools, time.Now().Add(time.Hour), time.Now()))
	tools[0] = "destroy"
	opens(t, newBoundary(t, firstRollOut(copied, everything, ring)), "step=1", "step=1")
}

func TestPlaintextNeedsEveryWaiverByName(t *testing.T) {
	ring, plaintext := newRing(t), plaintextOf(t, time.Hour)
	for claim := tripseal.ClaimRequest; claim <= tripseal.ClaimElicit; claim <<= 1 {
		for name, config := range map[string]tripseal.Config{
			"first": firstRollOut(plaintext, everything&^claim, ring), "second": secondRollOut(plaintext, everything&^claim, ring),
		} {
			config.Audience, config.Logger = "test", sealtest.Logger(t)
			if _, err := tripseal.New(config); err == nil || !strings.Contains(err.Error(), "cannot carry "+claim.String()+";") {
				t.Errorf("the %s roll-out without a waiver of %s: %v", name, claim, err)
			}
		}
	}
}

func TestPlaintextNeverWorksOnce(t *testing.T) {
	ring, plaintext := newRing(t), plaintextOf(t, time.Hour)
	for name, tools := range map[string][]string{"every request": nil, "its tool": {"deploy"}} {
		for _, config := range []tripseal.Config{firstRollOut(plaintext, everything, ring), secondRollOut(plaintext, everything, ring)} {
			config.Audience, config.Logger, config.Replay, config.ReplayTools = "test", sealtest.Logger(t), &store{}, tools
			if _, err := tripseal.New(config); err == nil || !strings.Contains(err.Error(), "cannot work only once") {
				t.Errorf("single use for %s: %v", name, err)
			}
		}
	}
	config := secondRollOut(plaintext, everything, ring)
	config.Replay, config.ReplayTools = &store{}, []string{"destroy"}
	opens(t, newBoundary(t, config), "step=1", "step=1")
}

// TestPlaintextKeepsTheLimits checks the limits on sizes. It also checks that plaintext neither
// seals nor opens an empty state, or a state that looks like a token of another format.
func TestPlaintextKeepsTheLimits(t *testing.T) {
	ring, plaintext := newRing(t), plaintextOf(t, time.Hour)
	config := secondRollOut(plaintext, everything, ring)
	config.MaxState, config.MaxToken = 100, 200
	boundary := newBoundary(t, config)
	opens(t, boundary, strings.Repeat("x", 100), strings.Repeat("x", 100))
	rejects(t, boundary, strings.Repeat("x", 101), tripseal.ReasonTooLarge)
	rejects(t, boundary, strings.Repeat("x", 201), tripseal.ReasonTooLarge)
	rejects(t, boundary, "ms1."+strings.Repeat("A", 100), tripseal.ReasonUnknownKey)
	rejects(t, boundary, "mc1.x", tripseal.ReasonMalformed)
	if round, err := boundary.Open(t.Context(), request, ""); err != nil || !round.First() {
		t.Errorf("no state is not a first round: %v", err)
	}
	first := newBoundary(t, firstRollOut(plaintext, everything, ring))
	for _, state := range []string{"", "ms1.x", "mc1.x"} {
		round, _ := first.Open(t.Context(), request, "")
		if token, err := first.Seal(t.Context(), &round, &state); token != "" || err == nil {
			t.Errorf("the state %q is sealed as %q", state, token)
		}
	}
	var failed *tripseal.SealError
	round, _ := first.Open(t.Context(), request, "")
	if token, err := first.Seal(t.Context(), &round, nil); token != "" || !errors.As(err, &failed) || !strings.Contains(failed.Cause().Error(), "must not be empty") {
		t.Errorf("no state is sealed as %q, %v", token, err)
	}
	if _, err := plaintext.Open(t.Context(), &tripseal.Binding{Method: "tools/call", Target: "deploy"}, ""); err == nil {
		t.Error("an empty text opens")
	}
}

// TestEveryAnswerReachesTheHandlerOfAPlaintextState checks what docs/migration.md says. An unsealed
// state does not hold the questions that were asked, so every answer passes. The next token is native
// and holds the questions of its round, so only answers to these questions pass.
func TestEveryAnswerReachesTheHandlerOfAPlaintextState(t *testing.T) {
	boundary := newBoundary(t, secondRollOut(plaintextOf(t, time.Hour), everything, newRing(t)))
	round := opens(t, boundary, "step=1", "step=1")
	if !round.Accepts("whatever", tripseal.KindSampling) {
		t.Error("an answer to a plaintext state is dropped")
	}
	round = opens(t, boundary, seal(t, boundary, "step=1", "step=2"), "step=2")
	if round.Accepts("whatever", tripseal.KindSampling) || !round.Accepts("confirm", tripseal.KindForm) {
		t.Error("the native token does not pin its questions")
	}
}

// TestPlaintextThatIsHiddenFromTheBoundaryServesNothing wraps the plaintext format in a struct that
// embeds the interface Format. The struct lacks the method Unsealed, so the boundary cannot know
// that states are unsealed. The plaintext format then opens and seals nothing.
func TestPlaintextThatIsHiddenFromTheBoundaryServesNothing(t *testing.T) {
	format, err := compat.Plaintext([]string{"deploy"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	hidden := struct{ tripseal.Format }{format}
	if token, err := hidden.Seal(t.Context(), &tripseal.Binding{Method: "tools/call", Target: "deploy"}, &tripseal.Claims{State: "s", HasState: true}); err == nil {
		t.Errorf("sealed %q", token)
	}
	boundary, err := tripseal.New(tripseal.Config{
		Keys: tripseal.Ephemeral(), Audience: "a", Logger: slog.New(slog.DiscardHandler),
		AlsoOpen: []tripseal.Accepted{{Format: hidden, Waive: everything}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = boundary.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "deploy"}, `{"approved":true}`)
	var rejected *tripseal.RejectError
	if !errors.As(err, &rejected) || rejected.Reason != tripseal.ReasonCodecFailed || !strings.Contains(rejected.Cause().Error(), "Unsealed") {
		t.Errorf("%v", err)
	}
}
