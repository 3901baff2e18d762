package tripseal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tripseal/tripseal"
)

func TestQuestionsComeBack(t *testing.T) {
	s := newService(t, tripseal.Config{})
	asked := []tripseal.Question{
		{Key: "confirm", Kind: tripseal.KindForm},
		{Key: "login", Kind: tripseal.KindURL},
		{Key: "", Kind: tripseal.KindSampling},
		{Key: strings.Repeat("k", 128), Kind: tripseal.KindRoots},
		{Key: "bin\x00\xffary", Kind: tripseal.KindForm},
	}
	round := s.accept(t, deploy(), s.first(t, deploy(), step, asked...))
	if got := slices.Collect(round.Asked); !slices.Equal(got, asked) {
		t.Errorf("%v came back as %v", asked, got)
	}
	for q := range round.Asked {
		if q != asked[0] {
			t.Error("a loop over the questions cannot be left")
		}
		break
	}
	if state, ok := round.State(); !ok || state != step {
		t.Errorf("the state beside them came back as %q", state)
	}
	if !round.Accepts("confirm", tripseal.KindForm) {
		t.Error("the round changed through the slice it returned")
	}
}

// TestAnswersAreAcceptedByKeyAndKind gives every kind of answer to every kind of question.
func TestAnswersAreAcceptedByKeyAndKind(t *testing.T) {
	s := newService(t, tripseal.Config{AlsoOpen: []tripseal.Accepted{{Format: readable{}, Waive: allClaims}}})
	kinds := []tripseal.Kind{tripseal.KindForm, tripseal.KindURL, tripseal.KindSampling, tripseal.KindRoots}
	elicits := func(k tripseal.Kind) bool { return k == tripseal.KindForm || k == tripseal.KindURL }
	for _, asked := range kinds {
		round := s.accept(t, deploy(), s.first(t, deploy(), step, tripseal.Question{Key: "q", Kind: asked}))
		for _, answer := range append(kinds, 0, 99) {
			if want := asked == answer || elicits(asked) && elicits(answer); round.Accepts("q", answer) != want {
				t.Errorf("an answer of kind %d to a question of kind %d is accepted: %v", answer, asked, !want)
			}
			if round.Accepts("other", answer) || round.Accepts("", answer) || round.Accepts("Q", answer) {
				t.Error("an answer is accepted that nobody asked for")
			}
		}
	}
	first, err := s.Open(context.Background(), deploy(), "")
	if err != nil || first.Accepts("q", tripseal.KindForm) || first.Accepts("", 0) {
		t.Errorf("a first round accepts an answer, %v", err)
	}
	waived := s.accept(t, deploy(), "plain.hush")
	if !waived.Accepts("q", tripseal.KindForm) || !waived.Accepts("other", 0) {
		t.Error("questions were waived, and an answer is refused")
	}
}

func TestPinsAreThoseOfTheLastRound(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{})
	round := s.accept(t, deploy(), s.first(t, deploy(), step, confirm))
	state := step
	token, err := s.Seal(ctx, &round, &state, tripseal.Question{Key: "region", Kind: tripseal.KindForm})
	if err != nil {
		t.Fatal(err)
	}
	round = s.accept(t, deploy(), token)
	if round.Accepts("confirm", tripseal.KindForm) {
		t.Error("a question of an earlier round is still pinned")
	}
	if !round.Accepts("region", tripseal.KindForm) {
		t.Error("the question of the last round is not pinned")
	}
}

func TestBadQuestionsAreNotSealed(t *testing.T) {
	ctx := context.Background()
	s := newService(t, tripseal.Config{})
	many := make([]tripseal.Question, 65)
	for i := range many {
		many[i] = tripseal.Question{Key: fmt.Sprint(i), Kind: tripseal.KindForm}
	}
	state := step
	for name, questions := range map[string][]tripseal.Question{
		"too many":     many,
		"long key":     {{Key: strings.Repeat("k", 129), Kind: tripseal.KindForm}},
		"no kind":      {{Key: "a"}},
		"unknown kind": {{Key: "a", Kind: 5}},
		"kind 129":     {{Key: "a", Kind: 129}},
		"one key":      {confirm, {Key: "confirm", Kind: tripseal.KindURL}},
	} {
		round, _ := s.Open(ctx, deploy(), "")
		token, err := s.Seal(ctx, &round, &state, questions...)
		t.Run(name, func(t *testing.T) { s.notSealed(t, token, err, tripseal.ReasonBadQuestions) })
	}
	s.accept(t, deploy(), s.first(t, deploy(), step, many[:64]...))
}
