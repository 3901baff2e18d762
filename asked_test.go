package mcpseal

import (
	"context"
	"testing"
)

// TestQuestionsTakeNoAllocation: a token with a question takes the one allocation of its
// text, and reading the question takes none.
func TestQuestionsTakeNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools drop what they hold")
	}
	b, err := New(Config{Keys: Ephemeral()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, request := context.Background(), Request{Method: "tools/call", Target: "deploy"}
	asked, state := Question{Key: "confirm", Kind: KindForm}, "step=1"
	round, _ := b.Open(ctx, request, "")
	token, err := b.Seal(ctx, &round, &state, asked)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { b.Seal(ctx, &round, &state, asked) }); n != 1 {
		t.Errorf("%v allocations to seal a question", n)
	}
	if round, err = b.Open(ctx, request, token); err != nil {
		t.Fatal(err)
	}
	seen := 0
	if n := testing.AllocsPerRun(100, func() {
		for q := range round.Asked {
			if q == asked {
				seen++
			}
		}
	}); n != 0 || seen != 101 { // once to warm up
		t.Errorf("%v allocations to read %d questions", n, seen)
	}
}
