package elicit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/compat"
	"github.com/tripseal/tripseal/elicit"
	"github.com/tripseal/tripseal/internal/whose"
)

// pythonService seals with the format of the Python SDK, which cannot say whose state a token holds.
func pythonService(t *testing.T, alsoWaived tripseal.ClaimSet) *service {
	return newService(t, func(c *tripseal.Config) {
		format, err := compat.Python([][]byte{[]byte("0123456789abcdef0123456789abcdef")}, compat.PythonOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Keys, c.Format, c.MaxFlow, c.MaxRounds = nil, format, tripseal.NoLimit, tripseal.NoLimit
		c.Waive = tripseal.ClaimQuestions | alsoWaived
	})
}

func TestAFormatThatCannotSayWhoseStateItHoldsNeedsAWaiverByName(t *testing.T) {
	h := asks("a", "A?", "b", "B?")
	s := pythonService(t, 0)
	s.expect(s.round(h, "", nil), internal, "")
	s = pythonService(t, tripseal.ClaimElicit)
	got, _ := s.finish(h, func(elicit.Question) string { return form("x") })
	s.expect(got, "a=accept:x,b=accept:x", "")
	// Where questions are not sealed either, an answer still counts only for its key, its kind and its wording.
	first := s.round(h, "", nil)
	s.expect(s.round(h, first.token, answers{"a": `{"roots":[]}`, "b": form("forged")}), "ASKS [a]", "")
	s.expect(s.round(asks("a", "Another?"), first.token, answers{"a": form("x")}), "ASKS [a]", "")
	round, err := s.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, first.token)
	if err != nil || round.Accepts("a", tripseal.KindForm) || strings.Contains(first.token, whose.Mark) {
		t.Errorf("a handler without elicit gets the answer; %v", err)
	}
}

// TestAnUnsealedStateIsNoStateOfElicit waives all claims, and sends a state that nobody has sealed.
func TestAnUnsealedStateIsNoStateOfElicit(t *testing.T) {
	everything := tripseal.ClaimRequest | tripseal.ClaimArguments | tripseal.ClaimAudience | tripseal.ClaimUser | tripseal.ClaimQuestions |
		tripseal.ClaimFlow | tripseal.ClaimSingleUse | tripseal.ClaimElicit
	plain, err := compat.Plaintext([]string{"t"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	h := asks("a", "A?", "b", "B?")
	s := newService(t, func(c *tripseal.Config) { c.AlsoOpen = []tripseal.Accepted{{Format: plain, Waive: everything}} })
	second := s.round(h, s.round(h, "", nil).token, answers{"a": form("x")})
	round, err := s.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, second.token)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := round.Elicit()
	for _, forged := range []string{state, whose.Mark + state, whose.Sign(state)} {
		s.expect(s.round(h, forged, answers{"b": form("y")}), "ASKS [a]", "")
	}
	unsealed := newService(t, func(c *tripseal.Config) {
		c.Format, c.Waive, c.AlsoOpen = plain, everything, []tripseal.Accepted{{Format: tripseal.NativeFormat(c.Keys)}}
		c.Keys = nil
	})
	unsealed.expect(unsealed.round(h, "", nil), internal, "")
}

func TestOnlyAStateIsReadAsOne(t *testing.T) {
	s := newService(t)
	asked := s.round(asks("a", "A?"), "", nil)
	round, err := s.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, asked.token)
	if err != nil {
		t.Fatal(err)
	}
	state, _ := round.Elicit()
	if again, ok := elicit.Reads(state); !ok || again != state {
		t.Errorf("%q is read as %q", state, again)
	}
	for _, text := range []string{"", "1:1", state + "0:", state[:len(state)-1], "1:11:01:00:9:999999999", "1:11:01:00:2:-1", "99999999999999999999:", " " + state} {
		if _, ok := elicit.Reads(text); ok {
			t.Errorf("%q is read as a state", text)
		}
	}
}
