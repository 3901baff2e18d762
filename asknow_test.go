package tripseal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripseal/tripseal"
	"github.com/tripseal/tripseal/sealtest"
)

// TestARoundWithoutATokenIsHeldToTheSameLimits asks clients during their calls, as an adapter does for clients of older
// revisions.
func TestARoundWithoutATokenIsHeldToTheSameLimits(t *testing.T) {
	question := tripseal.Question{Key: "q", Kind: tripseal.KindForm}
	for name, c := range map[string]struct {
		config    tripseal.Config
		user      string
		state     string
		questions []tripseal.Question
		rounds    int // how many are asked before the one that fails
		want      tripseal.Reason
	}{
		"a third of two rounds":  {config: tripseal.Config{MaxRounds: 2}, user: "alice", rounds: 2, want: tripseal.ReasonTooManyRounds},
		"nobody":                 {config: tripseal.Config{RequireUser: true}, want: tripseal.ReasonUser},
		"a state that is long":   {config: tripseal.Config{MaxState: 10}, state: strings.Repeat("x", 11), want: tripseal.ReasonTooLarge},
		"two questions of a key": {questions: []tripseal.Question{question, question}, want: tripseal.ReasonBadQuestions},
	} {
		t.Run(name, func(t *testing.T) {
			var events sealtest.Events
			c.config.Observer = events.Observe
			boundary := sealtest.BoundaryWith(t, c.config)
			round, err := boundary.Open(t.Context(), tripseal.Request{
				Method: "tools/call", Target: "t", Principal: func(context.Context) (string, error) { return c.user, nil },
			}, "")
			if err != nil {
				t.Fatal(err)
			}
			for n := range c.rounds {
				if err := boundary.AskNow(t.Context(), &round, "step", question); err != nil {
					t.Fatalf("round %d: %v", n, err)
				}
				round.Answered(t.Context())
			}
			if c.questions == nil {
				c.questions = []tripseal.Question{question}
			}
			var failed *tripseal.SealError
			if err := boundary.AskNow(t.Context(), &round, c.state, c.questions...); !errors.As(err, &failed) || failed.Reason != c.want {
				t.Errorf("%v", err)
			}
			seals, opens := 0, 0
			for _, e := range events.All() {
				switch {
				case e.Op == tripseal.OpSeal && e.Reason == "":
					seals++
				case e.Op == tripseal.OpOpen && e.Reason == "":
					opens++
				}
			}
			if seals != c.rounds || opens != c.rounds {
				t.Errorf("%d rounds are %d seals and %d opens", c.rounds, seals, opens)
			}
		})
	}
}

func TestAFlowWithoutTokensEndsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boundary := sealtest.BoundaryWith(t, tripseal.Config{MaxFlow: time.Hour})
		round, _ := boundary.Open(t.Context(), tripseal.Request{Method: "tools/call", Target: "t"}, "")
		question := tripseal.Question{Key: "q", Kind: tripseal.KindForm}
		for minutes := range 8 {
			if err := boundary.AskNow(t.Context(), &round, "", question); (err == nil) != (minutes < 6) {
				t.Errorf("after %d minutes: %v", 10*minutes, err)
			}
			time.Sleep(10 * time.Minute)
		}
	})
}
