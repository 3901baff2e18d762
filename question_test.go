package mcpseal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpseal/mcpseal"
)

func TestQuestionsComeBack(t *testing.T) {
	s := newService(t, mcpseal.Config{})
	asked := []mcpseal.Question{
		{Key: "confirm", Kind: mcpseal.KindForm},
		{Key: "login", Kind: mcpseal.KindURL, Digest: [16]byte{1, 2, 3}},
		{Key: "", Kind: mcpseal.KindSampling},
		{Key: strings.Repeat("k", 128), Kind: mcpseal.KindRoots, Digest: [16]byte{15: 1}},
		{Key: "bin\x00\xffary", Kind: mcpseal.KindForm},
	}
	round := s.accept(t, deploy(), s.first(t, deploy(), step, asked...))
	got, pinned := round.Questions()
	if !pinned || !slices.Equal(got, asked) {
		t.Errorf("%v came back as %v", asked, got)
	}
	if state, ok := round.State(); !ok || state != step {
		t.Errorf("the state beside them came back as %q", state)
	}
	for _, q := range asked {
		if again, ok := round.Asked(q.Key); !ok || again != q {
			t.Errorf("Asked(%q) = %v, %v", q.Key, again, ok)
		}
	}
	if q, ok := round.Asked("unasked"); ok || q != (mcpseal.Question{}) {
		t.Errorf("a question that was never asked: %v", q)
	}
	if q, _ := round.Asked("login"); q == (mcpseal.Question{Key: "login", Kind: mcpseal.KindURL, Digest: [16]byte{9}}) {
		t.Error("a reworded question passes for the one that was asked")
	}
	got[0].Key = "changed"
	if _, ok := round.Asked("confirm"); !ok {
		t.Error("the round changed through the slice it returned")
	}
}

func TestPinsAreThoseOfTheLastRound(t *testing.T) {
	ctx := context.Background()
	s := newService(t, mcpseal.Config{})
	round := s.accept(t, deploy(), s.first(t, deploy(), step, confirm))
	state := step
	token, err := s.Seal(ctx, &round, &state, mcpseal.Question{Key: "region", Kind: mcpseal.KindForm})
	if err != nil {
		t.Fatal(err)
	}
	round = s.accept(t, deploy(), token)
	if _, ok := round.Asked("confirm"); ok {
		t.Error("a question of an earlier round is still pinned")
	}
	if _, ok := round.Asked("region"); !ok {
		t.Error("the question of the last round is not pinned")
	}
}

func TestBadQuestionsAreNotSealed(t *testing.T) {
	ctx := context.Background()
	s := newService(t, mcpseal.Config{})
	many := make([]mcpseal.Question, 65)
	for i := range many {
		many[i] = mcpseal.Question{Key: fmt.Sprint(i), Kind: mcpseal.KindForm}
	}
	state := step
	for name, questions := range map[string][]mcpseal.Question{
		"too many":     many,
		"long key":     {{Key: strings.Repeat("k", 129), Kind: mcpseal.KindForm}},
		"no kind":      {{Key: "a"}},
		"unknown kind": {{Key: "a", Kind: 5}},
		"kind 129":     {{Key: "a", Kind: 129}},
		"one key":      {confirm, {Key: "confirm", Kind: mcpseal.KindURL}},
	} {
		round, _ := s.Open(ctx, deploy(), "")
		token, err := s.Seal(ctx, &round, &state, questions...)
		t.Run(name, func(t *testing.T) { s.notSealed(t, token, err, mcpseal.ReasonBadQuestions) })
	}
	s.accept(t, deploy(), s.first(t, deploy(), step, many[:64]...))
}
